"""Consumers come and go: the links of queues, the subscriptions of topics (JMS 6.11, checklist items 40 to 46 and 91 to 98)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from . import browsing
from .access import CONSUME, CREATE, is_allowed
from .accounting import empty, give_back_octets
from .address import is_temporary, is_topic
from .aliases import follow
from .commands import Attach, Detach, Lookup, Unsubscribe
from .destination import Destination
from .dispatch import settle_presettled
from .definitions import SubscriptionDestroyed
from .outcome import Outcome
from .outputs import Attached, Confirmed, Detached, Found, Refused
from .eligibility import admit, dismiss
from .foreign import why_not_consume
from .grouping import disown, disown_ineligible
from .link import Link, Peer
from .matching import MEMBER_EFFORT, begin_wildcard, end_wildcard, forget_unused, matches_of, part
from .pattern import has_wildcards, problem
from .placing import obtain, why_not_create
from .refusal import Refusal
from .registering import begin, count_selector, definition, forget
from .scanning import join, leave
from .settlement import feed, release_all
from .settings import UNLIMITED
from .shard import Shard
from .subscription import Subscription
from .temporary import is_own
from .topics import leave_out
from .wildcard import WildcardSubscription

ATTACH_EFFORT = 5


# -- links --------------------------------------------------------------------------------------------------------------------------
def attach(shard: Shard, command: Attach) -> None:
    peer = shard.peers.get(command.peer)
    if peer is None:
        return  # it was lost while this waited behind a large body: there is nobody to deliver to, and nobody to tell
    follow(shard, command)
    refusal, detail = _why_not_attach(shard, peer, command)
    if refusal is not None:
        forget_unused(shard, command.address)
        shard.batch.outputs.append(Refused(command.peer, command.token, refusal, detail, command.link))
        return
    shard.effort += ATTACH_EFFORT
    subscription = subscribe(shard, peer, command) if is_topic(command.address) else _queue(shard, command)
    destination = subscription.destination
    link = Link(
        command.link, peer, subscription, command.credit, command.replenish, command.presettled, command.exclusive, command.priority, command.threshold
    )  # fmt: skip
    link.limit(destination.settings.consumer_flow_limit)
    credit = link.credit
    link.unacknowledged = command.presettled or command.settled_by_peer
    if not subscription.links:
        for one in subscription.parts():
            _occupy(shard, one)
        if destination.is_topic:
            _is_idle_since(shard, subscription, 0)
    shard.links[link.number] = peer.links[link.number] = subscription.links[link.number] = link
    if command.wanted and not is_topic(command.address):
        join(link, command.wanted)
        link.selector_octets = command.wanted.octets
        count_selector(shard, peer.account, link.selector_octets)
    admit(subscription, link)
    if link.exclusive:
        disown_ineligible(shard, subscription)
    shard.watched[destination] = None
    feed(shard, link)
    if command.token is not None:
        outputs = shard.batch.outputs
        outputs.append(Confirmed(command.peer, command.token) if credit == command.credit else Attached(command.peer, command.token, credit))


def _queue(shard: Shard, command: Attach) -> Subscription:
    return obtain(shard, command.peer, command.address).subscriptions[0]


def _occupy(shard: Shard, subscription: Subscription) -> None:
    """It gets its first consumer."""
    destination = subscription.destination
    if destination.is_topic:
        subscription.idle_since = 0
        destination.routes.activate(subscription)
    if destination.owner is not None:
        destination.owner.deserted.pop(destination, None)
    if subscription.wildcard is not None and not subscription.is_idle:
        shard.mark(subscription)


def _why_not_attach(shard: Shard, peer: Peer, command: Attach) -> tuple[Refusal | None, str]:
    """And the particulars."""
    address = command.address
    if command.link in shard.links:
        return Refusal.LINK_IN_USE, address
    if is_temporary(address) and not is_own(peer, address):
        return Refusal.NOT_THE_OWNER, address
    if is_temporary(address) and command.durable:
        return Refusal.NOT_DURABLE, address
    if shard.access is not None and not is_allowed(shard, command.peer, CONSUME, address):
        return Refusal.ACCESS_DENIED, f"{CONSUME} {address}"
    if has_wildcards(address):
        if sentence := problem(address):
            return Refusal.INVALID_PATTERN, f"{address}: {sentence}"
        return why_not_subscribe(shard, peer, command)
    if address not in shard.destinations and (refusal := why_not_create(shard, command.peer, address)) is not None:
        return refusal, f"{CREATE} {address}" if refusal is Refusal.ACCESS_DENIED else address
    if is_topic(address):
        return why_not_subscribe(shard, peer, command)
    if (shard.foreign or shard.policies or peer.forwards) and (detail := why_not_consume(shard, peer, command)) is not None:
        return Refusal.FOREIGN_DESTINATION, detail
    if (detail := _too_many_consumers(shard, command)) is not None:
        return Refusal.TOO_MANY_CONSUMERS, detail
    return _too_much_text(shard, peer, command, None)


def _too_many_consumers(shard: Shard, command: Attach) -> str | None:
    """The particulars; None: the queue may have one more."""
    queue = shard.destinations.get(command.address)
    active, backup = (queue.settings.max_active_consumers, queue.settings.max_backup_consumers) if queue is not None else (UNLIMITED, UNLIMITED)
    if queue is None or UNLIMITED in (active, backup) or queue.consumers < active + backup:
        return None
    return f"{command.address} has {queue.consumers}, max_active_consumers is {active}, max_backup_consumers {backup}"


def detach(shard: Shard, command: Detach) -> None:
    link = shard.links.get(command.link)
    browser = shard.browsing.browsers.get(command.link)
    if browser is not None and browser.peer.number == command.peer:
        browsing.close(shard, browser)
    elif link is not None and link.peer.number == command.peer:
        close(shard, link, command.outcome)
    else:
        shard.batch.outputs.append(Refused(command.peer, command.token, Refusal.NO_SUCH_LINK, link=command.link))
        return
    if command.token is not None:
        shard.batch.outputs.append(Confirmed(command.peer, command.token))


def expel(shard: Shard, link: Link, refusal: Refusal, detail: str) -> None:
    """It ends, and its peer is told why. Of what a peer settles as it leaves the peer alone knows what has left, and must not come twice: it answers with
    Detach behind that."""
    if link.presettled or not link.unacknowledged:
        close(shard, link)
    shard.batch.outputs.append(Detached(link.peer.number, link.number, refusal, detail))


def close(shard: Shard, link: Link, outcome: Outcome = Outcome.RELEASED) -> None:
    """What it held comes back; with its last consumer a subscription that is not durable ends."""
    subscription = link.subscription
    del shard.links[link.number], link.peer.links[link.number], subscription.links[link.number]
    dismiss(shard, subscription, link)
    if subscription.eligibility is not None:  # an exclusive one may have become active
        disown_ineligible(shard, subscription)
    leave(shard, link)
    count_selector(shard, link.peer.account, -link.selector_octets)
    if link.presettled:
        settle_presettled(shard)
    release_all(shard, link, outcome)
    disown(shard, subscription, link)
    destination = subscription.destination
    shard.watched[destination] = None
    if subscription.links:
        return
    for one in subscription.parts():
        _desert(shard, one)
    if destination.is_topic:
        _is_idle_since(shard, subscription, shard.now)
        if not subscription.durable:
            end(shard, subscription)


def _desert(shard: Shard, subscription: Subscription) -> None:
    """It has no consumers any more."""
    destination = subscription.destination
    shard.watched[destination] = None
    if destination.is_topic:
        subscription.idle_since = shard.now
        destination.routes.deactivate(subscription)
    if not destination.routes.active:
        destination.idle_since = shard.now
        if destination.owner is not None:
            destination.owner.deserted[destination] = None


def _is_idle_since(shard: Shard, subscription: Subscription, instant: int) -> None:
    subscription.idle_since = instant
    if subscription.durable:
        shard.changed_subscriptions[subscription] = None


# -- subscriptions of topics ----------------------------------------------------------------------------------------------------------
def why_not_subscribe(shard: Shard, peer: Peer, command: Attach) -> tuple[Refusal | None, str]:
    """And the particulars."""
    if command.name and not command.shared and not peer.client_id:
        return Refusal.CLIENT_ID_REQUIRED, command.address
    known = shard.named.get((_client_of(peer, command), command.name)) if command.name else None
    if known is not None and known.account != peer.account:
        return Refusal.SUBSCRIPTION_OF_ANOTHER, command.name
    as_asked = known is not None and _is_as_asked(known, command)
    if known is not None and known.links and not (as_asked and known.shared and command.shared) and not _may_steal(peer, command, known):
        return Refusal.SUBSCRIPTION_IN_USE, command.name
    return (None, "") if as_asked else _why_no_room(shard, peer, command, known)


def _client_of(peer: Peer, command: Attach | Unsubscribe | Lookup) -> str:
    """Whose the subscription is that is meant."""
    return "" if command.of_any_client else peer.client_id


def _may_steal(peer: Peer, command: Attach, known: Subscription) -> bool:
    """Its consumer may lose it to another connection of the client, not to the same one."""
    return command.steals and known.durable and not known.shared and all(link.peer is not peer for link in known.links.values())


def _why_no_room(shard: Shard, peer: Peer, command: Attach, replaced: Subscription | None) -> tuple[Refusal | None, str]:
    """For one subscription more, of a pattern for one of each topic besides, less what it replaces."""
    limits, known = shard.limits, shard.destinations.get(command.address)
    topics: Iterable[Destination] = (known,) if known is not None else ()
    size = 1
    if has_wildcards(command.address):
        topics = matches_of(shard, command.address).topics
        size += len(topics)
    freed = replaced.size if replaced is not None else 0
    durables = shard.durables[peer.account] - (freed if replaced is not None and replaced.durable else 0)
    full = next((topic for topic in topics if len(topic.subscriptions) >= limits.topic_subscriptions_max), None)
    if full is not None and (replaced is None or replaced.destination is not full):
        detail = f"{full.address} has {len(full.subscriptions)}"
    elif known is not None and known.routes.asks_more(command.wanted) and known.routes.asked >= limits.topic_filters_max:
        detail = f"{known.address} has {known.routes.asked} different filters"
    elif shard.topic_subscriptions - freed + size > limits.subscriptions_max:
        detail = f"the topics have {shard.topic_subscriptions} together"
    elif command.durable and durables + size > limits.account_subscriptions_max:
        detail = f"account {peer.account} has {durables} durable ones"
    elif len(shard.patterns) > limits.patterns_max:
        detail = f"there are {limits.patterns_max} patterns"
    else:
        return _too_much_text(shard, peer, command, replaced)
    return Refusal.TOO_MANY_SUBSCRIPTIONS, detail


def _too_much_text(shard: Shard, peer: Peer, command: Attach, replaced: Subscription | None) -> tuple[Refusal | None, str]:
    """Why the account may not have one selector more; None: it may."""
    octets, most = command.wanted.octets, shard.limits.account_selector_octets_max
    known = shard.selector_octets[peer.account] - (replaced.wanted.octets if replaced is not None else 0)
    if not octets or known + octets <= most:
        return None, ""
    return Refusal.TOO_MANY_SELECTORS, f"those of account {peer.account} have {known} octets, this one {octets}, and {most} are allowed"


def _is_as_asked(known: Subscription, command: Attach) -> bool:
    return (
        known.destination.address == command.address
        and known.wanted == command.wanted
        and known.durable == command.durable
    )


def subscribe(shard: Shard, peer: Peer, command: Attach) -> Subscription:
    """The one of this name if it is as asked; one that is not is redefined (JMS 6.11.3): what it kept is discarded, as its client ended it."""
    client_id = _client_of(peer, command)
    known = shard.named.get((client_id, command.name)) if command.name else None
    if known is not None:
        if known.links and not known.shared:
            _steal(shard, known)  # durable it is: without its consumers it is there still
        if _is_as_asked(known, command):
            if known.shared != command.shared:
                for one in (known, *known.parts()):
                    one.shared = command.shared
                shard.batch.definitions += [definition(known)] if known.durable else []
            return known
        end(shard, known)
    number = shard.next_subscription(durable=command.durable)
    how: dict[str, Any] = {"durable": command.durable, "shared": command.shared, "wanted": command.wanted}
    if has_wildcards(command.address):
        matches_of(shard, command.address)  # which the end of what this replaces may have forgotten
        wildcard = WildcardSubscription(number, command.address, command.name, client_id, peer.account, **how)
        begin_wildcard(shard, wildcard)
        return wildcard
    subscription = Subscription(number, obtain(shard, command.peer, command.address), command.name, client_id, peer.account, **how)
    begin(shard, subscription)
    return subscription


def _steal(shard: Shard, subscription: Subscription) -> None:
    """From the consumers that it has."""
    for link in list(subscription.links.values()):
        close(shard, link)
        shard.batch.outputs.append(Detached(link.peer.number, link.number, Refusal.LINK_STOLEN, subscription.name))


def lookup(shard: Shard, command: Lookup) -> None:
    peer = shard.peers.get(command.peer)
    if peer is None:
        return
    subscription = shard.named.get((_client_of(peer, command), command.name))
    if subscription is None or subscription.account != peer.account:
        refusal = Refusal.NO_SUCH_SUBSCRIPTION if subscription is None else Refusal.SUBSCRIPTION_OF_ANOTHER
        shard.batch.outputs.append(Refused(command.peer, command.token, refusal, command.name))
        return
    address, wanted = subscription.destination.address, subscription.wanted
    shard.batch.outputs.append(Found(command.peer, command.token, address, wanted, subscription.shared, subscription.durable))


def unsubscribe(shard: Shard, command: Unsubscribe) -> None:
    peer = shard.peers.get(command.peer)
    if peer is None:
        return
    subscription = shard.named.get((_client_of(peer, command), command.name))
    refusal = _why_not_unsubscribe(peer, subscription)
    if subscription is None or refusal is not None:
        shard.batch.outputs.append(Refused(command.peer, command.token, refusal or Refusal.NO_SUCH_SUBSCRIPTION, command.name))
        return
    end(shard, subscription)
    if command.token is not None:
        shard.batch.outputs.append(Confirmed(command.peer, command.token))


def _why_not_unsubscribe(peer: Peer, subscription: Subscription | None) -> Refusal | None:
    if subscription is None:
        return Refusal.NO_SUCH_SUBSCRIPTION
    if subscription.account != peer.account:
        return Refusal.SUBSCRIPTION_OF_ANOTHER
    return Refusal.SUBSCRIPTION_IN_USE if subscription.links else None


def end(shard: Shard, subscription: Subscription) -> None:
    """Without consumers, for good. What it kept is discarded, never to the dead message queue (checklist item 76)."""
    if isinstance(subscription, WildcardSubscription):
        for member in list(subscription.members.values()):
            _end(shard, member)
            part(member)
        end_wildcard(shard, subscription)
    _end(shard, subscription)


def _end(shard: Shard, subscription: Subscription) -> None:
    destination = subscription.destination
    destination.idle_since = shard.now
    shard.effort += MEMBER_EFFORT + sum([len(cursor.ready) for cursor in subscription.order])
    leave_out(shard)
    give_back_octets(subscription)
    for cursor in subscription.order:
        empty(shard, cursor)
    if destination.number:
        destination.leave(subscription)
        destination.routes.leave(subscription)
    forget(shard, subscription)
    shard.batch.touched[destination] = None
    if subscription.durable:
        shard.batch.definitions.append(SubscriptionDestroyed(subscription.number))
