"""Operations of operators, done a step at each flush: a bounded number of messages is looked at and dealt with, and all of it, with the operation's progress,
is in that flush's commit. So a crash leaves nothing half done, and nothing is done twice.

Stored messages are read ahead without their bodies, a page at a time, and looked at again when it is their turn: what was settled, delivered or
reserved meanwhile is left alone. Whatever the operation, messages that are there when it begins are all it concerns.
"""

from __future__ import annotations

from collections.abc import Mapping

from .commands import PageLoaded
from .cursor import Cursor
from .destination import Destination
from .message import Header, Message, weight_as_read
from .message_group import recognize
from .operation import DELETE, EXPIRE, PURGE, SKIPPED, Operation, Page
from .operations import RUNNING_MAX
from .paging import as_placed
from .performing import perform
from .properties import Properties, Value
from .reads import PageWanted
from .shard import Shard
from .subscription import Subscription
from .undoing import finish
from .walk import Walk, may_come_again
from .writes import OperationRow, OperationState

LOOK = 5
"""What looking at a message takes, about, in microseconds: when it was read its filter has been asked, if that depends on its sections only."""
FILTER = 8
"""What asking the filter takes, if it must be asked of each message."""
COSTS = {DELETE: 2, PURGE: 2, EXPIRE: 55}
COST = 15
"""What dealing with one takes the node and the database: of most verbs."""
VERDICTS_MAX = 2_000
"""That are remembered; then they are asked anew."""
DRY_TOLD_MS = 500
"""What changes nothing is written down so often: more would be commits for their own sake."""
PAGES_MAX = 2
"""Read, and not worked off."""


def begin(shard: Shard, operation: Operation, walk: Walk) -> None:
    operation.walk = walk
    operations = shard.operations
    operations.known[operation.number] = operation
    operations.waiting.append(operation)
    operations.changed[operation.number] = operation


def cancel(shard: Shard, operation: Operation) -> None:
    """What it has done stays done."""
    _end(shard, operation, OperationState.CANCELLED)


def restore(shard: Shard, row: OperationRow) -> None:
    """It waits or runs since before a crash; it goes on with the first flush."""
    destination = shard.destinations.get(row.address)
    subscription = shard.subscriptions.get(row.place["subscription"])
    of = destination.number if destination is not None else 0
    operation = Operation(row.operation, row.address, row.arguments, of, row.place["subscription"])
    operation.looked_at, operation.done, operation.skipped, operation.failed = row.looked_at, row.done, row.skipped, row.failed
    operation.total, operation.started_at, operation.error = row.total, row.started_at, row.error
    operation.results = {(result, why): [(lane, position) for lane, position in places] for result, why, places in row.results}
    walk = Walk(())
    for index, tail, at in row.place["lanes"]:
        cursor = subscription.cursors[index] if subscription is not None else None
        if cursor is not None:
            walk.at = at if not walk.lanes else walk.at
            walk.lanes.append((cursor, tail))
    operation.undoes = operation.undoes and (not operation.done or operation.number in shard.records.known)
    begin(shard, operation, walk)


# -- at flush, or ahead of it ------------------------------------------------------------------------------------------------------------
def proceed(shard: Shard) -> None:
    """The next step of the next operation: one a batch, whoever asked for it."""
    batch = shard.batch
    _proceed(shard, bool(batch.messages or batch.settled or batch.outputs or batch.dirty))


def work_ahead(shard: Shard) -> bool:
    """The same while others may still come to the batch: as many as came to the last one, it is guessed. Returns whether it was taken."""
    return _proceed(shard, shard.operations.beside)


def _proceed(shard: Shard, beside: bool) -> bool:
    operations = shard.operations
    if shard.batch.stepped:
        return False
    while operations.waiting and len(operations.running) < RUNNING_MAX:
        operation = operations.waiting.popleft()
        operation.state = OperationState.RUNNING
        operation.started_at = operation.started_at or shard.now
        operations.running.append(operation)
        operations.changed[operation.number] = operation
    for _ in range(len(operations.running)):
        operation = operations.running[0]
        operations.running.rotate(-1)
        if _source(shard, operation) is None:
            _end(shard, operation, OperationState.FAILED, f"{operation.address} is gone, or the subscription")
        elif operation.pages:
            _step(shard, operation, _effort(shard, beside))
            shard.batch.stepped = True
            return True
    return False


def read_on(shard: Shard) -> None:
    """At the end of a flush, when it is known where its rows will be: ask for pages, and end what has nothing more to do."""
    shard.operations.beside = bool(shard.batch.outputs)
    for operation in list(shard.operations.running):
        while not operation.reading and len(operation.pages) < PAGES_MAX and _want(shard, operation):
            pass
        if not operation.reading and not operation.pages:
            _end(shard, operation, OperationState.DONE)


def rows(shard: Shard) -> list[OperationRow]:
    """Of those that have changed since the last flush."""
    changed, shard.operations.changed = shard.operations.changed, {}
    return [operation.row for operation in changed.values()]


def _source(shard: Shard, operation: Operation) -> Subscription | None:
    destination = shard.numbered.get(operation.destination)
    subscription = shard.subscriptions.get(operation.subscription)
    return subscription if destination is not None and subscription is not None and subscription.destination is destination else None


def _end(shard: Shard, operation: Operation, state: OperationState, error: str = "") -> None:
    operations = shard.operations
    operation.state, operation.ended_at = state, shard.now
    operation.error = error or operation.error
    for page in operation.pages:
        shard.memory -= page.octets
    operation.pages.clear()
    del operations.known[operation.number]
    for line in (operations.running, operations.waiting):
        if operation in line:
            line.remove(operation)
    operations.changed[operation.number] = operation
    if (record := shard.records.known.get(operation.number)) is not None:
        finish(shard, record)


# -- reading ----------------------------------------------------------------------------------------------------------------------------
def _want(shard: Shard, operation: Operation) -> bool:
    """Whether there may be more to ask for at once."""
    walk = operation.walk
    assert walk is not None
    cursor = _seek(operation, walk)
    if cursor is None:
        return False
    limits, tail = shard.limits, walk.lanes[0][1]
    if walk.is_in_memory():
        first = walk.at
        messages = _wanted(shard, operation, walk.from_memory(limits.operation_rows, limits.page_octets))
        operation.pages.append(Page(cursor, tail, first, walk.at, messages, 0))
        return True
    first, last = walk.interval(limits.operation_rows)
    key = (cursor.lane.destination.number, cursor.index)
    segments = shard.segments.overlapping(key, first, last)
    sifts = operation.sifts if cursor.stored else None
    octets = limits.page_octets // 4
    shard.begin_read(operation, PageWanted(shard.next_read(), *key, first - 1, last, limits.operation_rows, octets, segments, sifts), octets)
    return False


def _seek(operation: Operation, walk: Walk) -> Cursor | None:
    """To the next message that may be concerned."""
    while (cursor := walk.seek()) is not None:
        if operation.selected is None:
            return cursor
        following = next((position for position in operation.selected.get(cursor.index, ()) if position >= walk.at), None)
        if following == walk.at:
            return cursor
        walk.at = walk.lanes[0][1] if following is None else following
    return None


def loaded(shard: Shard, operation: Operation, read: PageWanted, command: PageLoaded) -> None:
    """A page that it asked for."""
    walk = operation.walk
    if operation.is_over or walk is None or not walk.lanes:
        return
    cursor, tail = walk.lanes[0]
    messages = command.messages
    end = read.upto + 1 if command.complete else messages[-1].position + 1
    messages = _wanted(shard, operation, messages)  # now, while the database works, and not when others wait for the flush
    octets = sum(map(weight_as_read, messages))
    recognize(shard, messages)
    operation.pages.append(Page(cursor, tail, read.after + 1, end, messages, octets))
    shard.memory += octets
    walk.at = end


def _wanted(shard: Shard, operation: Operation, messages: list[Message]) -> list[Message]:
    """Less what the filter leaves out, if that can be said without knowing what has befallen them."""
    if operation.takes_all or not operation.is_of_sections:
        return messages
    found, verdicts = [], operation.verdicts
    for message in messages:
        header = message.header
        key = header.octets, header.encoding, header.annotations
        verdict = verdicts.get(key)
        if verdict is None:
            if len(verdicts) >= VERDICTS_MAX:
                verdicts.clear()
            verdict = verdicts[key] = operation.wanted.matches(message, Properties(shard, message).__getitem__, operation.started_at)
        if verdict:
            found.append(message)
    return found


# -- a step -----------------------------------------------------------------------------------------------------------------------------
def _step(shard: Shard, operation: Operation, effort: int) -> None:
    """Look at so many messages of the first page, and deal with those that are concerned."""
    page = operation.pages[0]
    cursor = page.cursor
    destination = cursor.subscription.destination
    if destination.fan_out is not None:  # it gives out what an operation would have taken
        return
    effort, operation.owed = effort - operation.owed, max(operation.owed - effort, 0)
    found: list[Message] = []
    knowing = None if operation.takes_all or operation.is_of_sections else Knowing(shard)
    while page.messages and effort > 0 and operation.done + len(found) < operation.limit:
        message = page.messages.popleft()
        if not _is_meant(operation, cursor, message):
            continue
        as_placed(cursor, message)
        effort -= LOOK if knowing is None else LOOK + FILTER + (operation.wanted.effort(message) if operation.wanted.needs_body else 0)
        if knowing is None or _is_wanted(shard, operation, cursor, message, knowing):
            if why := _why_not_free(shard, cursor, message):
                operation.skipped += 1
                operation.tell(SKIPPED, cursor.index, [message], why)
                continue
            effort -= 0 if operation.is_dry else COSTS.get(operation.verb, COST)
            found.append(message)
    end = page.messages[0].position if page.messages else page.end
    operation.looked_at += _passed(operation, cursor, page.at, end)
    page.at = end
    if operation.is_dry:
        operation.done += len(found)
    elif found:
        _take(shard, operation, cursor, destination, found)
    if not page.messages:
        shard.memory -= page.octets
        operation.pages.popleft()
    if operation.done >= operation.limit:
        _end(shard, operation, OperationState.DONE)
    elif not operation.is_dry or shard.now - operation.told_at >= DRY_TOLD_MS:
        operation.told_at = shard.now
        shard.operations.changed[operation.number] = operation


def _effort(shard: Shard, beside: bool) -> int:
    """What others do in this batch they shall not wait for long."""
    limits = shard.limits
    return min(limits.operation_effort, limits.operation_effort_beside) if beside else limits.operation_effort


def _is_meant(operation: Operation, cursor: Cursor, message: Message) -> bool:
    """It was there when the page was read; it may be over by now. Or it is a neighbour of one that is meant."""
    if cursor.progress.is_settled(message.position):
        return False
    return operation.selected is None or message.position in operation.selected.get(cursor.index, ())


class Knowing:
    """What selectors see of messages, for a step: most of them have the same header section as others, which is decoded once."""

    __slots__ = ("_decode", "_known", "message_id")

    def __init__(self, shard: Shard) -> None:
        self._decode = shard.decode
        self._known: dict[tuple[bytes, int], Mapping[str, Value]] = {}
        self.message_id = shard.message_id

    def decode(self, header: Header) -> Mapping[str, Value]:
        key = header.octets, header.encoding
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._decode(header)
        return known


def _is_wanted(shard: Shard, operation: Operation, cursor: Cursor, message: Message, knowing: Knowing) -> bool:
    if may_come_again(cursor, message.position):
        message.redelivered = True
    # Ages count from the beginning, or more would be meant the longer it takes.
    return operation.wanted.matches(message, Properties(knowing, message).__getitem__, operation.started_at)


def _why_not_free(shard: Shard, cursor: Cursor, message: Message) -> str:
    """Why it is left alone; empty: it is not."""
    if 0 < message.header.expiration <= shard.now:
        return "it is about to expire"
    return "" if cursor.is_free(message.position) else "a consumer has it, or a transaction"


def _passed(operation: Operation, cursor: Cursor, first: int, end: int) -> int:
    if operation.selected is None:
        return cursor.progress.count_unsettled(first, end - 1)
    is_settled = cursor.progress.is_settled
    return sum(first <= position < end and not is_settled(position) for position in operation.selected.get(cursor.index, ()))


def _take(shard: Shard, operation: Operation, cursor: Cursor, destination: Destination, found: list[Message]) -> None:
    """Deal with them; those that could not be stay."""
    perform(shard, operation, cursor, found)
    if cursor.subscription.links:
        shard.mark(cursor.subscription)
    shard.batch.touched[destination] = None

