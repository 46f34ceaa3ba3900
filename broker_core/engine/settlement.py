"""Settling deliveries: acknowledged, rejected, released, failed; and giving back what a lost link held."""

from __future__ import annotations

from collections import deque

from .accounting import discard_body, forget_failures
from .commands import Settle
from .cursor import Cursor
from .dead import bury, expire
from .link import ALWAYS, Link, Peer
from .message import Message, Reliability, StoredBody
from .observing import note_acknowledged
from .outcome import Outcome
from .outputs import Confirmed, Output, Refused
from .pins import is_of_browser
from .progress import ranges
from .refusal import Refusal
from .shard import Shard
from .subscription import Subscription
from .waiting import put_back, put_delayed, put_missing
from .wildcard import WildcardSubscription

GIVE_UP_EFFORT = 6
RETURN_STEPS = 4
"""What the return of a message weighs: it becomes another object."""


def settle(shard: Shard, command: Settle) -> None:
    link = shard.links.get(command.link)
    if link is None or link.peer.number != command.peer:
        if not is_of_browser(shard, command):
            shard.batch.outputs.append(Refused(command.peer, command.token, Refusal.NO_SUCH_LINK, link=command.link))
        elif command.token is not None:
            shard.batch.outputs.append(Confirmed(command.peer, command.token))
        return
    unsettled, token = link.unsettled, command.token
    tags = link.tags_upto(command.upto) if command.upto else command.tags
    if len(tags) == 1:
        message = unsettled.pop(tags[0], None)
        messages = [] if message is None else [message]
    else:
        messages = [unsettled.pop(tag) for tag in tags if tag in unsettled]
    if len(messages) < len(tags) or not messages:
        detail = ", ".join(str(tag) for tag in tags if tag) or str(command.upto)
        shard.batch.outputs.append(Refused(command.peer, token, Refusal.NO_SUCH_DELIVERY, detail, command.link))
        token = None
    elif token is not None and command.outcome is Outcome.ACCEPTED:
        shard.batch.outputs.append(Confirmed(command.peer, token))
    if not messages:
        return
    if command.outcome is Outcome.ACCEPTED:
        link.octets -= acknowledge(shard, link.subscription, messages)
    else:
        _give_up_all(shard, link, messages, command.outcome, command.comment)
        if token is not None:
            answer(shard, link.peer, Confirmed(command.peer, token))
    if link.resumes_at != ALWAYS:
        link.regain(len(messages))
    elif link.replenish:
        link.credit += len(messages)
    feed(shard, link)


def feed(shard: Shard, link: Link) -> None:
    """The link may have become able to receive: queue it to be served."""
    if link.credit > 0 and not link.hungry and not link.peer.stopped:
        link.hungry = True
        link.tier.append(link)
    if not link.source.is_idle:
        shard.mark(link.subscription)


def acknowledge(shard: Shard, subscription: Subscription, messages: list[Message]) -> int:
    """Collect the positions; flush marks them in bulk. Returns the octets of the messages."""
    if subscription.__class__ is WildcardSubscription:
        octets = 0
        for member, run in subscription.by_member(messages):
            octets += acknowledge(shard, member, run)
            subscription.supply(member)
        return octets
    octets = volatile = 0
    header = cursor = None
    for message in messages:
        octets += message.size
        if message.header is not header:  # neighbours share it, mostly
            header = message.header
            cursor = subscription.cursors[header.lane]
            shard.batch.settling[cursor] = message  # type: ignore[index]
            if header.reliability == Reliability.ASSURED:
                shard.batch.synchronous = True
        assert cursor is not None
        cursor.accepted.append(message.position)
        if not cursor.durable:
            volatile += message.size
            if not cursor.stored and message.body.__class__ is StoredBody:
                discard_body(shard, message)
    destination = subscription.destination
    destination.octets -= octets
    destination.octets_volatile -= volatile
    destination.settled += len(messages)
    shard.effort += len(messages) // 2
    shard.settled += len(messages)
    shard.batch.touched[destination] = None
    return octets


def settle_accepted(shard: Shard) -> None:
    """At flush: turn the collected positions into ranges, for progress and ledger alike."""
    batch = shard.batch
    for cursor, message in batch.settling.items():
        number, index, progress = cursor.subscription.number, cursor.index, cursor.progress
        if cursor.failures:
            for position in cursor.accepted:
                forget_failures(cursor, position)
        if accepted := cursor.accepted:
            note_acknowledged(shard, cursor.subscription.destination, message, len(accepted))
            for first, last in ranges(accepted) if len(accepted) > 1 else ((accepted[0], accepted[0]),):
                progress.settle(first, last)
                if cursor.durable:
                    batch.settled.append((number, index, first, last, Outcome.ACCEPTED))
            if cursor.gone:
                for position in accepted:
                    cursor.forget_gone(position)
            cursor.accepted = []
        if cursor.loaded < progress.floor:  # a scan took all that was being read here: lower priorities wait for it no more
            shard.mark(cursor.subscription)
        if not cursor.changed:
            shard.change(cursor)
    batch.settling = {}


def give_up(shard: Shard, subscription: Subscription, message: Message, outcome: Outcome, comment: str = "") -> None:
    """The message was delivered and not consumed."""
    shard.effort += GIVE_UP_EFFORT
    cursor = subscription.cursor_of(message)
    assert cursor is not None
    if outcome is Outcome.RELEASED:
        come_back(shard, cursor, message)
    elif outcome is Outcome.UNUSED:
        come_back(shard, cursor, message, flagged=False)
    elif outcome is Outcome.REJECTED:
        bury(shard, cursor, message, outcome, comment or "the consumer rejected the message")
    else:
        fail(shard, cursor, message, comment)
    if isinstance(subscription, WildcardSubscription):
        subscription.supply(cursor.subscription)


def _give_up_all(shard: Shard, link: Link, messages: list[Message], outcome: Outcome, comment: str) -> None:
    """One after the other, or portion by portion if there are very many."""
    subscription, batch = link.subscription, shard.batch
    link.octets -= sum([message.size for message in messages])
    if len(messages) == 1:
        give_up(shard, subscription, messages[0], outcome, comment)
        return
    if len(messages) <= batch.returns:
        batch.returns -= len(messages)
        for message in messages:
            give_up(shard, subscription, message, outcome, comment)
        return
    for message in messages:
        cursor = subscription.cursor_of(message)
        assert cursor is not None
        cursor.reserved[message.position] = message
    shard.handing.append(Returning(subscription, messages, outcome, link.peer, comment))


def answer(shard: Shard, peer: Peer, output: Output) -> None:
    """Tell the peer that what it asked for is done, when everything that it gave back has come back."""
    (peer.answers if peer.returning else shard.batch.outputs).append(output)


def fail(shard: Shard, cursor: Cursor, message: Message, why: str = "") -> None:
    """One failure more: back after its back-off, or dead when the maximum is reached (R9)."""
    settings = cursor.subscription.destination.settings
    message = message.again()
    message.failures += 1
    if 0 <= settings.redelivery_max < message.failures:
        comment = f"delivery failed {message.failures} times; redelivery maximum {settings.redelivery_max}{why and '; '}{why}"
        bury(shard, cursor, message, Outcome.UNDELIVERABLE, comment)
        return
    if _is_expired(shard, message):
        expire(shard, cursor, message)
        return
    position = message.position
    cursor.failures[position] = message.failures
    if cursor.durable:
        cursor.failures_changed[position] = None
        shard.change(cursor)
        shard.batch.failures.append((cursor.subscription.number, cursor.index, position, message.failures))
        if message.header.reliability == Reliability.ASSURED:
            shard.batch.synchronous = True
    delay = settings.delay_ms(message.failures)
    if delay:
        message.redelivered = True
        put_delayed(shard, cursor, message, shard.now + delay)
    else:
        come_back(shard, cursor, message)


def _is_expired(shard: Shard, message: Message) -> bool:
    """While it was delivered nobody ended it (dead.expire_found)."""
    return 0 < message.header.expiration <= shard.now


def come_back(shard: Shard, cursor: Cursor, message: Message, *, flagged: bool = True) -> None:
    """To the head of its lane, flagged unless nobody has looked at it, if it has not expired. A new object: the old one may still be on its way out to the
    lost link."""
    if _is_expired(shard, message):
        expire(shard, cursor, message)
        return
    back = message.again()
    if flagged:
        back.redelivered = True
        cursor.subscription.destination.redelivered += 1
        shard.redelivered += 1
    if back.body is None:
        put_missing(cursor, back)
    else:
        put_back(shard, cursor, back)
    shard.mark(cursor.subscription)


def release_all(shard: Shard, link: Link, outcome: Outcome) -> None:
    """The link is gone: all it held comes back, none of it counted as a failure (R9); much of it portion by portion."""
    subscription, held, link.unsettled = link.subscription, link.unsettled, {}
    batch = shard.batch
    portions = len(held) > batch.returns
    for message in held.values():
        cursor = subscription.cursor_of(message)
        assert cursor is not None
        if portions:
            cursor.reserved[message.position] = message
        else:
            come_back(shard, cursor, message, flagged=outcome is Outcome.RELEASED)
    if portions:
        shard.handing.append(Returning(subscription, list(held.values()), outcome))
    else:
        batch.returns -= len(held)


def give_back(shard: Shard, subscription: Subscription, messages: list[Message], outcome: Outcome, peer: Peer | None) -> None:
    """What a transaction has reserved: much of it portion by portion. The peer's answers wait for it; None: nobody waits."""
    batch = shard.batch
    if len(messages) > batch.returns:
        shard.handing.append(Returning(subscription, messages, outcome, peer))
        return
    batch.returns -= len(messages)
    for message in messages:
        if unreserve(subscription, message):
            give_up(shard, subscription, message, outcome)


class Returning:
    """What a link that is gone held, or a transaction, or what was given up by one NACK, and what was more than one batch has time for. Until it has
    come back it is reserved, and its subscription is not served: what comes back comes before what was never delivered."""

    __slots__ = ("_comment", "_messages", "_outcome", "_peer", "_subscription", "octets")

    def __init__(self, subscription: Subscription, messages: list[Message], outcome: Outcome, peer: Peer | None = None, comment: str = "") -> None:
        """`peer`: who is told when all of it has come back."""
        self._peer = peer
        if peer is not None:
            peer.returning += 1
        self._subscription = subscription
        self._messages = deque(messages)
        self._outcome, self._comment = outcome, comment
        self.octets = 0
        subscription.returning += 1

    def proceed(self, shard: Shard, steps: int) -> int:
        """Do so much. What is left of the steps; 0 or less: they were not enough."""
        subscription = self._subscription
        if subscription.number not in shard.subscriptions:
            self._messages.clear()
        while self._messages and steps > 0:
            message = self._messages.popleft()
            steps -= RETURN_STEPS
            if unreserve(subscription, message):
                give_up(shard, subscription, message, self._outcome, self._comment)
        if not self._messages:
            self._tell(shard)
            subscription.returning -= 1
            if subscription.number in shard.subscriptions:
                shard.mark(subscription)
        return steps

    def _tell(self, shard: Shard) -> None:
        peer = self._peer
        if peer is not None:
            peer.returning -= 1
            if not peer.returning:
                shard.batch.outputs += peer.answers
                peer.answers = []

    @property
    def is_over(self) -> bool:
        return not self._messages


def unreserve(subscription: Subscription, message: Message) -> bool:
    """False if the subscription ended meanwhile, or its destination did."""
    cursor = subscription.cursor_of(message)
    return cursor is not None and cursor.reserved.pop(message.position, None) is message
