"""What operators order: whether an operation can begin, and with what."""

from __future__ import annotations

from .aliases import target_of
from .commands import Control
from .destination import Destination
from .message import VOLATILE
from .operating import begin
from .operation import AIMED, OPERATIONS_MAX, REPRIORITIZE, RETRY, Operation
from .operation import problem as problem_of
from .refusal import Refusal
from .shard import Shard
from .subscription import Subscription
from .walk import Walk

Refused = tuple[Refusal, str]
"""Why not, and the particulars."""


def prepare(shard: Shard, source: Destination, command: Control) -> Operation | Refused:
    """The operation, which waits for the next flush."""
    arguments = command.arguments
    if sentence := problem_of(arguments):
        return Refusal.INVALID_SETTING, sentence
    if len(shard.operations.known) >= OPERATIONS_MAX:
        return Refusal.INVALID_SETTING, f"{OPERATIONS_MAX} operations wait or run: wait for one to end, or cancel one"
    if source.owner is not None:
        return Refusal.NOT_SUPPORTED, f"{source.address} is temporary and its connection's own"
    subscription = _subscription(shard, source, arguments.get("subscription"))
    if not isinstance(subscription, Subscription):
        return subscription
    if source.is_topic and arguments["verb"] in (RETRY, REPRIORITIZE):
        return Refusal.NOT_SUPPORTED, f"{arguments['verb']}: a subscription shares its topic's messages with others; move or copy them to a queue"
    if arguments["verb"] in AIMED and (no := _why_not_to(shard, source, arguments["destination"])) is not None:
        return no
    operation = Operation(command.request, source.address, arguments, source.number, subscription.number)
    cursors = [cursor for cursor in subscription.order if not source.is_topic or cursor.index < VOLATILE]
    operation.total = _total(operation, subscription)
    begin(shard, operation, Walk(cursors))
    return operation


def _subscription(shard: Shard, source: Destination, number: int | None) -> Subscription | Refused:
    if not source.is_topic:
        built_in = source.subscriptions[0]
        if number not in (None, built_in.number):
            return Refusal.INVALID_SETTING, "subscription: a queue has none but its own"
        return built_in
    subscription = shard.subscriptions.get(number) if number is not None else None
    if subscription is None or subscription.destination is not source or not subscription.durable:
        return Refusal.INVALID_SETTING, f"subscription: name a durable subscription of {source.address} by its number"
    if subscription.wildcard is not None:
        return Refusal.NOT_SUPPORTED, "subscription: it is one of a pattern's, whose consumers hold messages of many topics"
    return subscription


def _why_not_to(shard: Shard, source: Destination, address: str) -> Refused | None:
    target = shard.destinations.get(target_of(shard, address))
    if target is None:
        return Refusal.NO_SUCH_DESTINATION, address
    if target.is_reserved:
        return Refusal.DESTINATION_RESERVED, f"{address}: what is to go there is made to expire"
    if target.owner is not None:
        return Refusal.NOT_SUPPORTED, f"{address} is temporary: it ends with its connection"
    if target is source:
        return Refusal.INVALID_SETTING, f"destination: {address} is where the messages are"
    return None


def _total(operation: Operation, subscription: Subscription) -> int | None:
    if operation.selected is not None:
        count = sum([len(positions) for positions in operation.selected.values()])
    elif operation.wanted.is_everything:
        count = subscription.depth
    else:
        return None
    return min(count, operation.limit)
