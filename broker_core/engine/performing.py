"""What each verb of an operation does with the messages that it concerns: all of one lane, in order, none of them with a consumer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from . import undoing
from .accounting import discard_body
from .address import is_reserved, is_temporary, is_valid
from .aliases import target_of
from .bulk import Parcel, give_back, is_wanted, place_all, publish_all, settle_all, why_no_room
from .cursor import Cursor
from .dead import ADDED, EXPIRATION, ORIGIN, REASON, REPLAYED, SUBSCRIPTION, TRUNCATED, bury
from .destination import Destination
from .message import VOLATILE, Message
from .operation import COPY, DELETE, DONE, EXPIRE, FAILED, MOVE, PURGE, REPRIORITIZE, RETRY, SKIPPED, Operation
from .outcome import Outcome
from .placing import create, why_no_members
from .policy import settings_for
from .progress import ranges
from .properties import Value, read_annotations
from .settings import UNLIMITED
from .shard import Shard
from .subscription import Subscription
from .waiting import withdraw

LEFT_OUT = 3
"""Microseconds, about, that it takes to settle for a subscription of a topic what another has back: it has a range of the ledger."""
EXPIRED_BY_HAND = "an operator had the message expire"


def perform(shard: Shard, operation: Operation, cursor: Cursor, messages: list[Message]) -> None:
    _VERBS[operation.verb](shard, operation, cursor, messages)


def fail(operation: Operation, cursor: Cursor, messages: Sequence[Message], why: str) -> None:
    """They could not be dealt with."""
    operation.failed += len(messages)
    operation.error = operation.error or why
    operation.tell(FAILED, cursor.index, messages, why)


def succeed(operation: Operation, cursor: Cursor, messages: Sequence[Message]) -> None:
    operation.done += len(messages)
    operation.tell(DONE, cursor.index, messages)


def take_out(shard: Shard, cursor: Cursor, message: Message) -> Message:
    """From where it waits: the very object. It must be settled now."""
    if cursor.stored and message.position >= cursor.loaded and message.position not in cursor.gone:
        return message
    waiting = withdraw(shard, cursor, message)
    assert waiting is not None, f"position {message.position} waits nowhere"
    return waiting


def _discard(shard: Shard, operation: Operation, cursor: Cursor, messages: list[Message]) -> None:
    if operation.undoes and cursor.durable:
        _keep_for_undo(shard, operation, cursor, messages)
    taken = [take_out(shard, cursor, message) for message in messages]
    settle_all(shard, cursor, taken, Outcome.PURGED)
    if not cursor.stored:
        for message in taken:
            discard_body(shard, message)
    succeed(operation, cursor, taken)


def _keep_for_undo(shard: Shard, operation: Operation, cursor: Cursor, messages: list[Message]) -> None:
    number = operation.number
    record = shard.records.known.get(number) or undoing.begin(shard, number, operation.verb, cursor.subscription.destination)
    if record is not None:
        failed = [message.position for message in messages if message.position in cursor.failures]
        for first, last in ranges([message.position for message in messages]):
            undoing.keep(shard, record, cursor, first, last, failed)
    operation.undoes = record is not None and undoing.write(shard, record, sum([message.size for message in messages]))


def _expire(shard: Shard, operation: Operation, cursor: Cursor, messages: list[Message]) -> None:
    """As if its time to live had passed: to the dead message queue, or as its destination and its sender say."""
    for message in messages:
        taken = take_out(shard, cursor, message)
        taken.failures = cursor.failures.get(taken.position, 0)
        bury(shard, cursor, taken, Outcome.EXPIRED, EXPIRED_BY_HAND)
    succeed(operation, cursor, messages)


def _move(shard: Shard, operation: Operation, cursor: Cursor, messages: list[Message]) -> None:
    target = shard.destinations.get(target_of(shard, operation.target))
    if target is None:
        fail(operation, cursor, messages, f"{operation.target} does not exist")
        return
    _send(shard, operation, cursor, [Parcel(message) for message in messages], target)


def _reprioritize(shard: Shard, operation: Operation, cursor: Cursor, messages: list[Message]) -> None:
    index = operation.priority + (0 if cursor.stored else VOLATILE)
    if index == cursor.index:
        operation.skipped += len(messages)
        operation.tell(SKIPPED, cursor.index, messages, "it has that priority")
        return
    taken = [take_out(shard, cursor, message) for message in messages]
    place_all(shard, cursor, [Parcel(message) for message in taken], cursor.subscription.destination, index, moved=True)
    settle_all(shard, cursor, taken, Outcome.MOVED)
    succeed(operation, cursor, taken)


def _send(shard: Shard, operation: Operation, cursor: Cursor, parcels: list[Parcel], target: Destination) -> None:
    """To another destination; those for which there is no room stay."""
    accepted: list[Parcel] = []
    for parcel in parcels:
        for_all = target.is_topic and parcel.subscription is None
        why = f"nobody subscribes to {target.address}" if for_all and not is_wanted(shard, target, parcel.message) else ""
        if why := why or why_no_room(shard, target, parcel.message.size):
            fail(operation, cursor, [parcel.message], why)
        else:
            accepted.append(parcel)
    if not accepted:
        return
    moved = operation.verb != COPY
    if moved:
        for parcel in accepted:
            parcel.message = take_out(shard, cursor, parcel.message)
    if target.is_topic:
        if published := [parcel for parcel in accepted if parcel.subscription is None]:
            publish_all(shard, cursor, published, target, moved=moved)
        if given_back := [parcel for parcel in accepted if parcel.subscription is not None]:
            give_back(shard, cursor, given_back, target)
            operation.owed += LEFT_OUT * len(target.subscriptions)
    else:
        place_all(shard, cursor, accepted, target, cursor.index, moved=moved)
    if moved:
        settle_all(shard, cursor, [parcel.message for parcel in accepted], Outcome.MOVED)
    succeed(operation, cursor, [parcel.message for parcel in accepted])


# -- back to where it died ----------------------------------------------------------------------------------------------------------------
def _retry(shard: Shard, operation: Operation, cursor: Cursor, messages: list[Message]) -> None:
    """Each to the destination where it died, as it was before: what the broker added is taken away, so that it may die again. What failed in one subscription
    of a topic goes back to that one."""
    by_death: dict[str, list[Message]] = {}
    for message in messages:
        by_death.setdefault(message.header.annotations, []).append(message)
    by_origin: dict[str, list[tuple[Mapping[str, Value], list[Message]]]] = {}
    for text, dead in by_death.items():
        added = read_annotations(text) if REASON in text else {}
        origin = added.get(ORIGIN)
        if not isinstance(origin, str):
            fail(operation, cursor, dead, "a message that has not died has nowhere to go back to")
        elif added.get(TRUNCATED):
            fail(operation, cursor, dead, "the body of a message was discarded when it died")
        else:
            by_origin.setdefault(origin, []).append((added, dead))
    for address, deaths in by_origin.items():
        target, why = _origin(shard, cursor, address)
        if target is None:
            fail(operation, cursor, [message for _, dead in deaths for message in dead], why)
            continue
        parcels: list[Parcel] = []
        for added, dead in deaths:
            subscription, why = _failed_in(shard, cursor, target, added)
            if why:
                fail(operation, cursor, dead, why)
                continue
            expiration, kept = _revived(shard, target, added)
            parcels += [Parcel(message, expiration, kept, subscription) for message in dead]
        if len(deaths) > 1:
            parcels.sort(key=_position)
        _send(shard, operation, cursor, parcels, target)


def _position(parcel: Parcel) -> int:
    return parcel.message.position


def _origin(shard: Shard, cursor: Cursor, address: str) -> tuple[Destination | None, str]:
    """Made if clients' use would make it. Else why not."""
    address = target_of(shard, address)
    if not is_valid(address) or is_temporary(address) or is_reserved(address):
        return None, f"nothing goes back to {address}"
    known = shard.destinations.get(address)
    if known is cursor.subscription.destination:
        return None, f"{address} is where it is"
    if known is not None:
        return known, ""
    full = len(shard.destinations) >= shard.limits.destinations_max or why_no_members(shard, address) is not None
    if full or not shard.limits.auto_create:
        return None, f"{address} does not exist"
    return create(shard, address, settings_for(shard, address), automatic=True), ""


def _failed_in(shard: Shard, cursor: Cursor, target: Destination, added: Mapping[str, Value]) -> tuple[Subscription | None, str]:
    """The subscription of a topic to which it goes back, as the others may have consumed it; None: whoever subscribes. Or why it cannot."""
    number = added.get(SUBSCRIPTION)
    if not isinstance(number, int):
        return None, ""
    if cursor.stored and number < 0:  # whose number another may have after a restart, and whose rows nobody keeps
        return None, "a message that is stored does not go back to a subscription that is not durable: move it to publish it to all"
    subscription = shard.subscriptions.get(number)
    if subscription is None or subscription.destination is not target:
        return None, f"the subscription of {target.address} in which a message failed is gone: move the message to publish it to all"
    return subscription, ""


def _revived(shard: Shard, target: Destination, added: Mapping[str, Value]) -> tuple[int, str]:
    """Expiration and annotations of one that comes back. Its time to live is what it was, if that has not passed; else it has what the destination says."""
    before = added.get(EXPIRATION)
    expiration = before if isinstance(before, int) and before > shard.now else 0
    settings = target.settings
    if not expiration and settings.time_to_live_ms != UNLIMITED:
        expiration = shard.now + settings.time_to_live_ms
    if settings.time_to_live_max_ms != UNLIMITED:
        latest = shard.now + settings.time_to_live_max_ms
        expiration = min(expiration or latest, latest)
    kept = {name: value for name, value in added.items() if name not in ADDED or name == REPLAYED}
    return expiration, json.dumps(kept, ensure_ascii=False, separators=(",", ":")) if kept else ""


_VERBS: dict[str, Callable[[Shard, Operation, Cursor, list[Message]], None]] = {
    COPY: _move,
    MOVE: _move,
    RETRY: _retry,
    DELETE: _discard,
    PURGE: _discard,
    EXPIRE: _expire,
    REPRIORITIZE: _reprioritize,
}
