"""What operators and the scheduler ask, applied in order with traffic and answered in the same commit (R22)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from itertools import islice
from typing import Any

from . import compaction, operating, undoing
from .address import DEAD_MESSAGE_QUEUE, is_reserved, is_temporary, is_valid
from .aliases import Alias, find, stands_for, why_not_alias
from .aliases import problem as alias_problem
from .capacity import follow_limits
from .commands import Control, Direction
from .destination import Destination
from .discarding import destroy, destroy_by_hand, purge
from .settings import Settings
from .duplicates import follow_settings
from .definitions import AliasDeleted, PolicyDefined, PolicyDropped
from .outputs import Detached
from .eligibility import rearrange
from .expiring import sweep_expired
from .foreign import follow_foreign
from .founding import end_by_hand, found, look_at_subscriptions
from .grouping import disown_ineligible
from .looking import look
from .levels import Levels, level_warnings, levels_of
from .maintenance import compactable
from .ordering import prepare
from .placing import create, define, why_no_members
from .policy import POLICIES_MAX, Policy, why_not
from .presence import detach, disconnect, list_connections, list_consumers, list_producers, list_transactions, list_unsettled, release
from .prepared import HANDS, resolve_by_hand
from .refusal import Declined, Refusal
from .rescheduling import change
from .settlement import feed
from .shard import Shard
from .subscribing import close, end
from .topics import leave_out

Answer = dict[str, Any]
REAP_MAX = 1000
"""Destinations, and subscriptions, reaped in one request: a commit stays short; the scheduler asks again."""


def control(shard: Shard, command: Control) -> None:
    verb = _VERBS.get(command.verb)
    leave_out(shard)
    try:
        if command.deadline and shard.now > command.deadline:
            raise Declined(Refusal.REQUEST_EXPIRED)
        if verb is None:
            raise Declined(Refusal.NOT_SUPPORTED, command.verb)
        if not isinstance(command.arguments, dict):
            raise Declined(Refusal.INVALID_SETTING, "the arguments must be an object of names and values")
        done, answer = True, verb(shard, command)
    except Declined as no:
        done, answer = False, no.answer
    if answer is not None:
        shard.batch.answers.append((command.request, done, answer))


def _create(shard: Shard, command: Control) -> Answer:
    address = command.address
    if not is_valid(address) or is_reserved(address):
        raise Declined(Refusal.INVALID_DESTINATION, address)
    if not address.startswith(("queue/", "topic/")):
        raise Declined(Refusal.NOT_SUPPORTED, address)
    if address in shard.destinations:
        raise Declined(Refusal.DESTINATION_EXISTS, address)
    if address in shard.aliases:
        raise Declined(Refusal.DESTINATION_EXISTS, stands_for(shard, address))
    if len(shard.destinations) >= shard.limits.destinations_max:
        detail = f"there are {len(shard.destinations)}; destroy some that nobody uses, or restart the nodes with a larger SURETY_DESTINATIONS_MAX"
        raise Declined(Refusal.TOO_MANY_DESTINATIONS, detail)
    if (refusal := why_no_members(shard, address)) is not None:
        raise Declined(refusal, "those that match patterns with which it would begin")
    destination = create(shard, address, _settings(shard.limits.settings, command), automatic=False)
    return _warned({"destination": destination.number}, destination.levels)


def _update(shard: Shard, command: Control) -> Answer:
    destination = find(shard, command)
    before, settings = destination.settings, _settings(destination.settings, command)
    if settings.foreign_link and not before.foreign_link and destination.consumers:
        raise Declined(Refusal.DESTINATION_IN_USE, f"{destination.consumers} consumers have it open: nobody consumes from a queue that is forwarded")
    destination.set(settings)
    destination.automatic = False
    follow_settings(shard, destination)
    follow_limits(shard, destination)
    follow_foreign(shard, destination)
    _let_go(shard, destination, before)
    for subscription in destination.subscriptions if not destination.is_topic else ():
        rearrange(shard, subscription)
        disown_ineligible(shard, subscription)
    if destination.settings.consumer_flow_limit != before.consumer_flow_limit:
        _limit_consumers(shard, destination)
    define(shard, destination)
    return _warned({"settings": destination.settings.as_dict()}, destination.levels)


def _limit_consumers(shard: Shard, destination: Destination) -> None:
    """Those that are open, too; but for those of patterns, which are of many topics."""
    for subscription in destination.subscriptions:
        for link in subscription.links.values() if subscription.wildcard is None else ():
            link.limit(destination.settings.consumer_flow_limit)
            feed(shard, link)


def _let_go(shard: Shard, destination: Destination, before: Settings) -> None:
    """It goes elsewhere now, or nowhere: the forwarder hears of it, and what it holds comes back."""
    settings = destination.settings
    if not before.foreign_link or (before.foreign_link, before.foreign_address) == (settings.foreign_link, settings.foreign_address):
        return
    for link in list(destination.subscriptions[0].links.values()):
        if link.peer.forwards:
            close(shard, link)
            detail = f"{destination.address} is forwarded otherwise"
            shard.batch.outputs.append(Detached(link.peer.number, link.number, Refusal.FOREIGN_DESTINATION, detail))


def _warned(answer: Answer, levels: Levels | None) -> Answer:
    """The answer, and what the operator may not have meant."""
    told = level_warnings(levels)
    return {**answer, "warnings": told} if told else answer


def _set_policy(shard: Shard, command: Control) -> Answer:
    """Settings for a pattern, in place of those that it had. What exists keeps its own."""
    address = command.address
    if sentence := why_not(address):
        raise Declined(Refusal.INVALID_PATTERN, f"{address}: {sentence}")
    if is_reserved(address):
        raise Declined(Refusal.INVALID_PATTERN, f"{address}: names that begin with mq. are the broker's own, and no client creates one")
    if address not in shard.policies and len(shard.policies) >= POLICIES_MAX:
        raise Declined(Refusal.INVALID_SETTING, f"there are {POLICIES_MAX} policies: drop one that nobody needs")
    settings = _settings(shard.limits.settings, command)
    shard.policies[address] = Policy(address, dict(command.arguments))
    shard.batch.definitions.append(PolicyDefined(address, dict(command.arguments)))
    return _warned({"policies": len(shard.policies)}, levels_of(settings))


def _drop_policy(shard: Shard, command: Control) -> Answer:
    if shard.policies.pop(command.address, None) is None:
        raise Declined(Refusal.INVALID_PATTERN, f"there is no policy for {command.address}")
    shard.batch.definitions.append(PolicyDropped(command.address))
    return {"policies": len(shard.policies)}


def _settings(settings: Settings, command: Control) -> Settings:
    problem = Settings.problem(command.arguments, command.address)
    if problem:
        raise Declined(Refusal.INVALID_SETTING, problem)
    changed = replace(settings, **command.arguments)
    if problem := changed.contradiction():
        raise Declined(Refusal.INVALID_SETTING, problem)
    return changed


def _pause(shard: Shard, command: Control) -> Answer:
    destination = find(shard, command)
    if destination.address == DEAD_MESSAGE_QUEUE:
        raise Declined(Refusal.DESTINATION_RESERVED, "the dead message queue cannot be paused")
    destination.state |= _direction(command)
    return _changed(shard, destination)


def _resume(shard: Shard, command: Control) -> Answer:
    destination = find(shard, command)
    destination.state &= ~_direction(command)
    for subscription in destination.subscriptions:
        shard.mark(subscription)
        for link in subscription.links.values():
            feed(shard, link)
    return _changed(shard, destination)


def _changed(shard: Shard, destination: Destination) -> Answer:
    define(shard, destination)
    return {"state": destination.state}


def _direction(command: Control) -> Direction:
    name = str(command.arguments.get("direction", "ALL"))
    if name not in Direction.__members__:
        raise Declined(Refusal.INVALID_SETTING, "direction must be PRODUCERS, CONSUMERS or ALL")
    return Direction[name]


def _resolve(shard: Shard, command: Control) -> Answer:
    """A prepared branch whose transaction manager does not come back, ended by hand; or an outcome of that kind forgotten."""
    number = command.arguments.get("branch")
    branch = shard.branches.numbered.get(number) if isinstance(number, int) else None
    if branch is None:
        raise Declined(Refusal.XAER_NOTA, f"there is no prepared branch {number}")
    refusal, detail = resolve_by_hand(shard, branch, HANDS[command.verb])
    if refusal is not None:
        raise Declined(refusal, detail)
    return {"branch": branch.number, "xid": branch.xid, "account": branch.account, "state": branch.state.name}


def _operate(shard: Shard, command: Control) -> Answer:
    """An operation on many messages begins; it has the request's number."""
    operation = prepare(shard, find(shard, command), command)
    if isinstance(operation, tuple):
        raise Declined(*operation)
    return {"operation": operation.number}


def _cancel(shard: Shard, command: Control) -> Answer:
    number = command.arguments.get("operation")
    operation = shard.operations.known.get(number) if isinstance(number, int) else None
    if operation is None:
        raise Declined(Refusal.INVALID_SETTING, f"there is no operation {number} that waits or runs")
    operating.cancel(shard, operation)
    return {"operation": operation.number, "done": operation.done}


def _expire(shard: Shard, command: Control) -> Answer:
    """Expired messages of every destination; in the dead message queue the end of the retention is an expiration like others (`retain`)."""
    sweep_expired(shard)
    return {"upto": shard.expiry_upto}


def _ledger(shard: Shard, command: Control) -> Answer:
    """The ledger's age and size are the store's affair: the host trims it; the engine only says that the request was taken."""
    return {"taken": True}


def _tell(shard: Shard, command: Control) -> Answer:
    """What was asked of the node itself was done, or refused, before it came here: this answers. Raises Declined."""
    told = command.arguments.get("told")
    if not isinstance(told, dict):
        raise Declined(Refusal.NOT_SUPPORTED, command.verb)
    if "declined" in told:
        refusal, detail = told["declined"]
        raise Declined(Refusal[refusal], detail)
    return told


def _reap(shard: Shard, command: Control) -> Answer:
    """End durable subscriptions that nobody has consumed from for long, destroy destinations that have had neither consumers nor messages for a while:
    automatic ones, and temporary ones that their consumers have left."""
    ended = _end_inactive(shard)
    reaped: list[str] = []
    for destination in list(shard.destinations.values()):
        owner = destination.owner
        passing = destination.automatic if owner is None else destination in owner.deserted
        if not passing or is_reserved(destination.address):
            continue
        if destination.depth or destination.scheduled or destination.is_asked_for or destination.number in shard.records.destinations:
            destination.idle_since = shard.now
        elif shard.now - destination.idle_since >= shard.limits.reap_ms and len(reaped) < REAP_MAX:
            reaped.append(destination.address)
            destroy(shard, destination)
    return {"reaped": len(reaped), "subscriptions": ended}


def _end_inactive(shard: Shard) -> int:
    limit = shard.limits.subscription_inactive_ms
    if not limit:
        return 0
    before = shard.now - limit
    inactive = (s for s in shard.subscriptions.values() if s.name and s.durable and s.wildcard is None and not s.links and s.idle_since <= before)
    ended = list(islice(inactive, REAP_MAX))
    for subscription in ended:
        end(shard, subscription)
    return len(ended)


def _alias(shard: Shard, command: Control) -> Answer:
    """Made, or changed where it is named."""
    address, arguments, known = command.address, command.arguments, shard.aliases.get(command.address)
    creates = command.verb == "create_alias"
    if not is_valid(address) or is_reserved(address) or is_temporary(address):
        raise Declined(Refusal.INVALID_DESTINATION, address)
    if creates and address in shard.destinations:
        raise Declined(Refusal.DESTINATION_EXISTS, address)
    if creates and known is not None:
        raise Declined(Refusal.DESTINATION_EXISTS, stands_for(shard, address))
    if not creates and known is None:
        raise Declined(Refusal.NO_SUCH_DESTINATION, f"{address} is no alias")
    if creates and len(shard.aliases) >= shard.limits.aliases_max:
        raise Declined(Refusal.TOO_MANY_DESTINATIONS, f"there are {len(shard.aliases)} aliases; delete some that nobody uses")
    wrong = alias_problem(arguments) or ("name the target" if creates and "target" not in arguments else "")
    if wrong:
        raise Declined(Refusal.INVALID_SETTING, wrong)
    alias = Alias(**arguments) if known is None else replace(known, **arguments)
    if wrong := why_not_alias(shard, address, alias):
        raise Declined(Refusal.INVALID_SETTING, wrong)
    shard.aliases[address] = alias
    definition = alias.definition(address)
    shard.batch.definitions.append(definition)
    return _warned(asdict(definition), alias.levels)


def _delete_alias(shard: Shard, command: Control) -> Answer:
    """Its target, and who consumes from that, stay."""
    alias = shard.aliases.pop(command.address, None)
    if alias is None:
        raise Declined(Refusal.NO_SUCH_DESTINATION, f"{command.address} is no alias")
    shard.batch.definitions.append(AliasDeleted(command.address))
    return {"target": alias.target}


_VERBS: dict[str, Callable[[Shard, Control], Answer | None]] = {
    "create": _create,
    "update": _update,
    "set_policy": _set_policy,
    "drop_policy": _drop_policy,
    "pause": _pause,
    "resume": _resume,
    "purge": purge,
    "destroy": destroy_by_hand,
    "undo": undoing.undo,
    "give_up": undoing.give_up,
    "subscribe": found,
    "unsubscribe": end_by_hand,
    "subscriptions": look_at_subscriptions,
    "create_alias": _alias,
    "update_alias": _alias,
    "delete_alias": _delete_alias,
    "browse": look,
    "connections": list_connections,
    "consumers": list_consumers,
    "producers": list_producers,
    "transactions": list_transactions,
    "unsettled": list_unsettled,
    "release": release,
    "detach": detach,
    "disconnect": disconnect,
    "delayed": change,
    "commit": _resolve,
    "rollback": _resolve,
    "forget": _resolve,
    "expire": _expire,
    "retain": _expire,
    "reap": _reap,
    "ledger": _ledger,
    "compact": compaction.begin,
    "compactable": compactable,
    **dict.fromkeys(("quiesce", "unquiesce", "drain", "take_over", "pause_listener", "resume_listener"), _tell),
    "operate": _operate,
    "cancel": _cancel,
}
