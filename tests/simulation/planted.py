"""Bugs that the simulator must find: each is one function of the product made wrong, as an honest mistake would."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from broker_core.engine import (
    accounting,
    administration,
    browsing,
    dead,
    delivering,
    duplicates,
    eligibility,
    engine,
    expiring,
    fan_out,
    group_dispatch,
    maintenance,
    paging,
    recovery,
    reporting,
    scanning,
    segments,
    selection,
    sending,
    settlement,
    subscribing,
    topics,
    transactions,
    walk,
)
from broker_core.engine.commands import CreateTemporary
from broker_core.engine.cursor import Cursor
from broker_core.engine.effects import Confirmed, Effects, Outcome
from broker_core.engine.progress import Progress
from broker_core.engine.schedule import Schedule
from broker_core.engine.waiting import put_back
from broker_core.server.host import Host
from broker_core.stomp import sections

from . import term


class Plant:
    """Replaces attributes until it is pulled."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []

    def put(self, thing: Any, name: str, wrong: Any) -> None:
        self._before.append((thing, name, getattr(thing, name)))
        setattr(thing, name, wrong)

    def pull(self) -> None:
        for thing, name, right in reversed(self._before):
            setattr(thing, name, right)


Bug = Callable[[Plant], None]


def speak_before_write(plant: Plant) -> None:
    """Receipts leave while the commit that carries what they promise is on its way."""
    flush = term.Watched.flush

    def eager(self: Any, now: int, **how: Any) -> Effects:
        effects = flush(self, now, **how)
        self.host._release([output for output in effects.outputs if isinstance(output, Confirmed)])
        effects.outputs = [output for output in effects.outputs if not isinstance(output, Confirmed)]
        return effects

    plant.put(term.Watched, "flush", eager)


def sequence_reused(plant: Plant) -> None:
    """After a recovery positions start where the checkpoint left them, whatever the ledger took since."""
    right = recovery._replay

    def replay(shard: Any, row: Any) -> None:
        row.accepted = []
        right(shard, row)

    plant.put(recovery, "_replay", replay)


def offered_mark_lost(plant: Plant) -> None:
    """What left is not in the ledger: after a crash it is delivered again without its flag."""
    right = delivering._offer

    def offer(shard: Any, link: Any, cursor: Any, messages: Any, *, ahead: bool) -> None:
        right(shard, link, cursor, messages, ahead=ahead)
        shard.batch.offered.clear()

    plant.put(delivering, "_offer", offer)


def page_race(plant: Plant) -> None:
    """The rows of a page win over what was settled while it was read."""

    def is_settled(_self: Progress, _position: int) -> bool:
        return False

    right = paging._take_page

    def take_page(shard: Any, cursor: Any, read: Any, command: Any) -> None:
        before = Progress.is_settled
        Progress.is_settled = is_settled  # type: ignore[method-assign]
        try:
            right(shard, cursor, read, command)
        finally:
            Progress.is_settled = before  # type: ignore[method-assign]

    plant.put(paging, "_take_page", take_page)


def floor_raised_too_far(plant: Plant) -> None:
    """The floor steps over one unsettled position when it runs up."""
    right = Progress._raise_floor

    def raise_floor(self: Progress, floor: int) -> None:
        over = floor + 1
        right(self, over if self.ahead and self.is_settled(over) else floor)

    plant.put(Progress, "_raise_floor", raise_floor)


def settled_without_ledger(plant: Plant) -> None:
    """Acknowledgements are known to the engine and to its checkpoint, and are missing in the ledger."""
    right = settlement.settle_accepted

    def settle_accepted(shard: Any) -> None:
        kept = len(shard.batch.settled)
        right(shard)
        del shard.batch.settled[kept:]

    plant.put(engine, "settle_accepted", settle_accepted)


def live_segment_dropped(plant: Plant) -> None:
    """A segment goes although something in it is unsettled: only the lane looked at first counts."""

    def is_live(shard: Any, segment: Any) -> bool:
        key = next(iter(segment.lanes))
        return bool(maintenance._unsettled(shard, key, *segment.lanes[key], at_most=1))

    plant.put(maintenance, "_is_live", is_live)


def survivors_left_behind(plant: Plant) -> None:
    """Compaction copies all survivors but the last."""
    right = maintenance._compact

    def compact(shard: Any) -> Any:
        step = right(shard)
        if step is not None and len(step.survivors) > 1:
            step.survivors.pop()
        return step

    plant.put(maintenance, "_compact", compact)


def failures_not_durable(plant: Plant) -> None:
    """Failures are forgotten when their message is read again, so that the maximum is never reached."""
    right = settlement.fail

    def fail(shard: Any, cursor: Any, message: Any) -> None:
        message.failures = 0
        right(shard, cursor, message)

    plant.put(settlement, "fail", fail)


def checkpoint_ahead(plant: Plant) -> None:
    """A checkpoint is written while the commit that it includes is on its way."""
    right = Host._commit

    async def commit(self: Host, what: Any) -> None:
        shard = self._engine.shard
        if shard.changed_cursors and not self._reporting:
            point = reporting.checkpoint(shard)
            if point is not None:
                self._reporting = True
                await self._patiently(lambda: self._store.checkpoint(point))
                self._reporting = False
        await right(self, what)

    plant.put(Host, "_commit", commit)


def dead_copy_dropped(plant: Plant) -> None:
    """What dies is settled and never copied to the dead message queue."""
    right = dead.bury

    def bury(shard: Any, cursor: Any, message: Any, outcome: Any, comment: str) -> None:
        settings = cursor.subscription.destination.settings
        object.__setattr__(settings, "use_dead", False)
        try:
            right(shard, cursor, message, outcome, comment)
        finally:
            object.__setattr__(settings, "use_dead", True)

    plant.put(settlement, "bury", bury)


def ledger_ignored(plant: Plant) -> None:
    """Recovery believes the checkpoint and does not replay what was settled after it."""
    right = recovery._replay

    def replay(shard: Any, row: Any) -> None:
        row.settled = []
        right(shard, row)

    plant.put(recovery, "_replay", replay)


def offered_forgotten_at_recovery(plant: Plant) -> None:
    """Recovery takes the offered mark and flags nothing by it."""
    right = term.recover

    def recover(*found: Any) -> Any:
        made = right(*found)
        for subscription in made.shard.subscriptions.values():
            for cursor in subscription.order:
                cursor.offered_before = -1
        return made

    plant.put(term, "recover", recover)


def purged_messages_stay(plant: Plant) -> None:
    """A purge settles what waits in memory and leaves it there."""
    right = administration._purge_cursor

    def purge(shard: Any, cursor: Any) -> int:
        ready = list(cursor.ready)
        count = right(shard, cursor)
        cursor.ready.extend(ready)
        return count

    plant.put(administration, "_purge_cursor", purge)


def reader_forgotten(plant: Plant) -> None:
    """A segment is dropped while a read of it is on its way."""

    def begin_read(self: Any, read: int, numbers: Any) -> None:
        self._reads[read] = []

    plant.put(segments.Segments, "begin_read", begin_read)


def back_without_flag(plant: Plant) -> None:
    """What a lost link held comes back unflagged."""
    right = settlement.come_back

    def come_back(shard: Any, cursor: Any, message: Any) -> None:
        right(shard, cursor, message)
        if message.position in cursor.returned:
            cursor.returned[message.position].redelivered = False

    plant.put(settlement, "come_back", come_back)


def bodies_of_the_volatile_kept(plant: Plant) -> None:
    """Large bodies of volatile messages stay in the store after their acknowledgement."""
    plant.put(settlement, "discard_body", lambda _shard, _message: None)


def bodies_on_disk_forgotten(plant: Plant) -> None:
    """A purge discards the large bodies of volatile messages in memory, and not of those that spilled."""
    plant.put(accounting, "bodies_behind", lambda _cursor: [])


def set_aside_for_ever(plant: Plant) -> None:
    """What is set aside for the owner of a message group does not come back when that is gone."""
    right = subscribing.disown

    def disown(shard: Any, subscription: Any, link: Any) -> None:
        if subscription.owners is not None:
            subscription.owners.queues.pop(link, None)
        right(shard, subscription, link)

    plant.put(subscribing, "disown", disown)


def set_aside_and_left(plant: Plant) -> None:
    """What was set aside for the owner of a message group waits for everybody as well, once its owner has it."""
    right = group_dispatch.take_aside

    def take_aside(shard: Any, link: Any, cursor: Any, message: Any) -> None:
        right(shard, link, cursor, message)
        put_back(shard, cursor, message)

    plant.put(group_dispatch, "take_aside", take_aside)


def aborted_sends_appear(plant: Plant) -> None:
    """What a transaction sent is placed although it is rolled back."""
    right = transactions.roll_back

    def roll_back(shard: Any, transaction: Any) -> None:
        for send in transaction.sends:
            if transactions.why_not(shard, send) is None:
                destination = transactions.obtain(shard, send.peer, send.address)
                transactions.accept(shard, destination, send.message, send.message.accepted_at)
        right(shard, transaction)

    plant.put(transactions, "roll_back", roll_back)


def transaction_torn(plant: Plant) -> None:
    """A commit leaves out the last of several sends."""
    right = transactions._commit

    def commit(shard: Any, transaction: Any) -> None:
        if len(transaction.sends) > 1:
            transaction.sends.pop()
        right(shard, transaction)

    plant.put(transactions, "_commit", commit)


def reserved_forgotten(plant: Plant) -> None:
    """What a transaction acknowledged stays reserved when it is rolled back."""
    plant.put(transactions, "unreserve", lambda _subscription, _message: False)


def excluded_not_in_the_ledger(plant: Plant) -> None:
    """What a selector left out is settled in memory only: after a recovery it is delivered."""
    right = topics.leave_out

    def leave_out(shard: Any) -> None:
        right(shard)
        shard.batch.settled = [row for row in shard.batch.settled if row[4] is not Outcome.EXCLUDED]

    plant.put(engine, "leave_out", leave_out)


def exclusive_one_of_many(plant: Plant) -> None:
    """Those who stand by are served when the exclusive consumer has no room."""
    right = eligibility._take_turns

    def take_turns(subscription: Any, known: Any) -> None:
        right(subscription, known)
        subscription.turns = [*(link.tier for link in known.exclusives), *known.tiers.values()]

    plant.put(eligibility, "_take_turns", take_turns)


def newest_exclusive_consumer_leads(plant: Plant) -> None:
    """Of exclusive consumers of equal priority the last to register is served."""
    plant.put(eligibility, "insort_right", bisect.insort_left)


def browser_consumes(plant: Plant) -> None:
    """What was shown is settled."""
    right = browsing._take_page

    def take_page(browser: Any, page: Any) -> list[Any]:
        progress = browser.walk.lanes[0][0].progress
        messages = right(browser, page)
        for message in messages:
            progress.settle(message.position, message.position)
        return messages

    plant.put(browsing, "_take_page", take_page)


def browser_shows_what_is_over(plant: Plant) -> None:
    """The rows of a page are shown whatever was settled since, or before."""
    right = browsing._take_page

    def take_page(browser: Any, page: Any) -> list[Any]:
        before = Progress.is_settled
        Progress.is_settled = lambda _self, _position: False  # type: ignore[method-assign]
        try:
            return right(browser, page)
        finally:
            Progress.is_settled = before  # type: ignore[method-assign]

    plant.put(browsing, "_take_page", take_page)


def browser_skips_a_row(plant: Plant) -> None:
    """Each page begins one row too late."""
    right = walk.Walk.interval

    def interval(self: Any, rows: int) -> tuple[int, int]:
        first, last = right(self, rows)
        return min(first + 1, last), last

    plant.put(walk.Walk, "interval", interval)


def replies_of_another_connection(plant: Plant) -> None:
    """Header sections that name a temporary destination are remembered by all connections together."""
    plant.put(sections, "TEMPORARY", b"\xff")


def temporary_queue_outlives_its_connection(plant: Plant) -> None:
    """What a lost connection made stays, with what it holds."""
    plant.put(engine, "end_temporaries", lambda _shard, _peer: None)


def reply_before_the_queue_is_there(plant: Plant) -> None:
    """Only a consumer makes a temporary queue: a fast responder finds none."""
    plant.put(engine, "_HANDLERS", {**engine._HANDLERS, CreateTemporary: lambda _shard, _command: None})


def accounts_forgotten(plant: Plant) -> None:
    """Everybody is taken for the owner of every subscription."""
    right = engine.Peer

    def peer(number: int, _account: str, *rest: str) -> Any:
        return right(number, "guest", *rest)

    plant.put(engine, "Peer", peer)


def burials_forgotten(plant: Plant) -> None:
    """What expired for one subscription before a crash is buried again when it expires for another after it."""
    right = recovery.recover

    def recover(*found: Any) -> Any:
        recovered = right(*found)
        for destination in recovered.shard.destinations.values():
            for lane in destination.lanes:
                if lane is not None:
                    lane.buried = Progress()
        return recovered

    plant.put(term, "recover", recover)


def portions_pass_what_is_on_disk(plant: Plant) -> None:
    """Who is behind when his portion comes goes on from there."""
    right = fan_out.give

    def give(shard: Any, subscription: Any, work: Any) -> None:
        for lane, message in work:
            cursor = subscription.cursors[lane.index]
            cursor.loaded = max(cursor.loaded, message.position)
        right(shard, subscription, work)

    plant.put(fan_out, "give", give)


def expiry_ends_with_the_flush(plant: Plant) -> None:
    """What one flush has no steps left for is taken for ended."""
    right = expiring._end

    def end(shard: Any, run: Any, steps: int) -> int:
        left = right(shard, run, steps)
        for subscription in run.rest:
            cursor = subscription.cursors[run.lane.index]
            cursor.progress.settle(run.first, run.last)
        return max(left, 1)

    plant.put(expiring, "_end", end)


def due_too_early(plant: Plant) -> None:
    """What is read ahead becomes visible when it is in memory."""
    right = Schedule.pop_due

    def pop_due(self: Schedule, now: int) -> Any:
        return right(self, now + term.LIMITS.schedule_ahead_ms)

    plant.put(Schedule, "pop_due", pop_due)


def row_stays_in_the_schedule(plant: Plant) -> None:
    """What has become visible is not deleted from the schedule: after a crash it becomes visible again."""
    right = engine.place_due

    def place_due(shard: Any) -> None:
        right(shard)
        shard.batch.due.clear()

    plant.put(engine, "place_due", place_due)


def arrival_within_a_read_forgotten(plant: Plant) -> None:
    """A delayed message that comes while its interval is being read is in neither the answer nor memory."""
    right = Schedule.add

    def add(self: Schedule, message: Any, known_until: int) -> None:
        owned, self.owned = self.owned, None
        right(self, message, known_until)
        self.owned = owned

    plant.put(Schedule, "add", add)


def scans_skip_what_came_back(plant: Plant) -> None:
    """A scan begins with what was never delivered, wherever else something waits."""
    right = selection.Scan.__init__

    def begin(self: Any, *of: Any) -> None:
        right(self, *of)
        self.unseen.clear()

    plant.put(selection.Scan, "__init__", begin)


def page_brings_what_a_scan_took(plant: Plant) -> None:
    """A page delivers once more what a selective consumer holds."""
    right = paging._take_page

    def take_page(shard: Any, cursor: Any, read: Any, command: Any) -> None:
        gone, cursor.gone = cursor.gone, {}
        right(shard, cursor, read, command)
        cursor.gone = {position: None for position in gone if position >= cursor.loaded}

    plant.put(paging, "_take_page", take_page)


def candidates_are_not_asked_again(plant: Plant) -> None:
    """What a scan found is delivered although somebody else took it meanwhile."""
    right = Cursor.holds

    def holds(self: Any, message: Any) -> bool:
        return right(self, message) or not self.progress.is_settled(message.position)

    plant.put(Cursor, "holds", holds)


def scans_pass_what_finds_no_room(plant: Plant) -> None:
    """A candidate too many is forgotten."""
    right = scanning._add

    def add(shard: Any, scan: Any, message: Any) -> bool:
        right(shard, scan, message)
        return True

    plant.put(scanning, "_add", add)


def names_forgotten_at_recovery(plant: Plant) -> None:
    """After a crash what was accepted before is accepted again."""
    plant.put(recovery, "restore", lambda *_: None)


def names_deleted_too_early(plant: Plant) -> None:
    """Rows of what is still remembered are deleted: the next term does not know them."""
    right = maintenance.trims

    def trims(shard: Any) -> Any:
        steps = right(shard)
        for step in steps:
            step.before = [(destination, shard.now) for destination, _ in step.before]
        return steps

    plant.put(maintenance, "trims", trims)


def named_before_the_commit(plant: Plant) -> None:
    """What a transaction was told is remembered at once, and still when it was rolled back."""
    right = transactions._send

    def send(shard: Any, transaction: Any, command: Any, sent: Any) -> None:
        right(shard, transaction, command, sent)
        destination, name = shard.destinations.get(sent.address), sent.message.header.duplicate_id
        if name and destination is not None and destination.known_ids is not None and transaction.refusal is None:
            duplicates.remember(shard, destination, name, stored=False)

    def commit(shard: Any, destination: Any, message: Any, sent_at: int) -> None:
        known, destination.known_ids = destination.known_ids, None
        accept(shard, destination, message, sent_at)
        destination.known_ids = known

    accept = transactions.accept
    plant.put(transactions, "_send", send)
    plant.put(transactions, "accept", commit)


def twice_in_one_batch(plant: Plant) -> None:
    """What the open batch has accepted is not known yet."""
    right = sending.is_duplicate

    def is_duplicate(shard: Any, destination: Any, message: Any) -> bool:
        open_batch = message.header.duplicate_id in shard.batch.remembered.get(destination, ())
        return not open_batch and right(shard, destination, message)

    plant.put(sending, "is_duplicate", is_duplicate)


BUGS: tuple[Bug, ...] = (
    names_forgotten_at_recovery,
    names_deleted_too_early,
    named_before_the_commit,
    twice_in_one_batch,
    due_too_early,
    row_stays_in_the_schedule,
    arrival_within_a_read_forgotten,
    accounts_forgotten,
    burials_forgotten,
    portions_pass_what_is_on_disk,
    expiry_ends_with_the_flush,
    scans_skip_what_came_back,
    page_brings_what_a_scan_took,
    candidates_are_not_asked_again,
    scans_pass_what_finds_no_room,
    browser_consumes,
    browser_shows_what_is_over,
    browser_skips_a_row,
    replies_of_another_connection,
    temporary_queue_outlives_its_connection,
    reply_before_the_queue_is_there,
    exclusive_one_of_many,
    newest_exclusive_consumer_leads,
    set_aside_for_ever,
    set_aside_and_left,
    aborted_sends_appear,
    transaction_torn,
    reserved_forgotten,
    excluded_not_in_the_ledger,
    speak_before_write,
    sequence_reused,
    offered_mark_lost,
    offered_forgotten_at_recovery,
    page_race,
    floor_raised_too_far,
    settled_without_ledger,
    live_segment_dropped,
    survivors_left_behind,
    failures_not_durable,
    checkpoint_ahead,
    dead_copy_dropped,
    ledger_ignored,
    purged_messages_stay,
    reader_forgotten,
    back_without_flag,
    bodies_of_the_volatile_kept,
    bodies_on_disk_forgotten,
)


@contextmanager
def planted(bug: Bug, *, blind: bool) -> Iterator[None]:
    """With the bug. `blind`: the invariants are not looked at, so that only what clients see can tell."""
    plant = Plant()
    bug(plant)
    if blind:
        plant.put(term, "check", lambda _engine: None)
    try:
        yield
    finally:
        plant.pull()

