"""The engine: commands in, effects out (see the package's docstring). Here is only the dispatch table and the order of a flush."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import blocking, browsing, duplicates, operating
from . import commands as c
from .accounting import correct_octets
from .administration import control
from .branches import begin_branch, end_branch, list_branches, lose_branches
from .capacity import forget_producer, forget_waiting
from .compaction import compacted
from .dispatch import drain, look_again, settle_presettled
from .effects import Effects
from .expiring import end_expired, fire_timers, page_of_expired
from .fan_out import hand_out
from .guarding import set_access
from .holding import let_in, may_let_in
from .keeping import tend
from .link import Peer
from .looking import mark_deliveries
from .maintenance import maintain
from .message import VOLATILE
from .operation import Operation
from .outputs import Confirmed
from .paging import loaded, want_next, want_pages
from .reads import PageWanted
from .removing import relieve
from .reporting import checkpoint, statistics
from .rescheduling import row_loaded
from .scan_reading import loaded as scan_loaded
from .scan_reading import proceed, want
from .scheduling import next_deadline, place_due, scheduled_loaded
from .selection import Scan
from .sending import may_produce, request, send, take_over
from .serving import serve
from .settlement import answer, feed, settle, settle_accepted
from .shard import Batch, Shard
from .subscribing import attach, close, detach, lookup, unsubscribe
from .subscription import Subscription
from .temporary import create_temporary, end_own, end_temporaries
from .topics import leave_out
from .transactions import begin, end, roll_back_all, time_out, transacted
from .undoing import lapse
from .writes import Commit

PRESETTLED_LINGER_MS = 50
"""Presettled deliveries that have left are marked settled by the next flush; when nothing else causes one, after so long."""


class Engine:
    """Deterministic: the same recovered state, commands and instants give the same effects."""

    __slots__ = ("shard",)

    def __init__(self, shard: Shard) -> None:
        self.shard = shard

    def apply(self, command: c.Command, now: int) -> None:
        """Take one command into the open batch. `now`: ms since the epoch, never decreasing."""
        self.shard.now = now
        _HANDLERS[type(command)](self.shard, command)

    def next_deadline(self) -> int | None:
        """The instant at which a flush is due even if no command comes; None: none."""
        shard = self.shard
        if shard.overfull or shard.expiring or shard.unfinished or shard.unserved or shard.handing or shard.browsing.turns:
            return shard.now
        if shard.blocked and not shard.schedule.paused and may_let_in(shard):
            return shard.now
        if shard.operations.known and not shard.schedule.paused and shard.operations.is_due:
            return shard.now
        deadline = shard.timers.next_deadline()
        if shard.schedule.is_waiting and (due := next_deadline(shard)) is not None:
            deadline = due if deadline is None else min(deadline, due)
        if shard.left:
            linger = shard.now + PRESETTLED_LINGER_MS
            deadline = linger if deadline is None else min(deadline, linger)
        if shard.scanning and not shard.scan_began:
            return shard.scan_at if deadline is None else min(deadline, shard.scan_at)
        return deadline

    def released(self) -> None:
        """The outputs of the oldest flush not yet released have left: what they carried to presettled links counts as acknowledged."""
        shard = self.shard
        presettled, browsers = shard.unreleased.popleft()
        shard.left += presettled
        for browser in browsers:
            browsing.released(shard, browser)

    def work_ahead(self, now: int, *, space_low: bool = False) -> bool:
        """Take the next step of operators' operations into the open batch, so that the next flush has none to take. The host says so when a commit is on
        its way: the database has work meanwhile. Returns whether a flush is due."""
        shard = self.shard
        if not shard.operations.known or space_low:
            return False
        shard.now = now
        settle_accepted(shard)
        return operating.work_ahead(shard)

    def flush(self, now: int, *, report: bool = False, tell: bool = False, space_low: bool = False) -> Effects:
        """Close the open batch: fire timers, hand out what can be delivered, and say what must be durable, told and read.

        The host says `released` when it has released what an earlier flush returned.
        `report`: add a checkpoint, statistics and maintenance. `tell`: add statistics. `space_low`: delayed messages that are due must wait (R21).
        """
        shard = self.shard
        shard.now = now
        for subscription in shard.unfinished:
            shard.mark(subscription)
        shard.unfinished = {}
        settle_presettled(shard)
        shard.schedule.paused = space_low
        if shard.schedule.is_waiting:
            place_due(shard)
        settle_accepted(shard)
        fire_timers(shard)
        if shard.operations.known and not space_low:
            operating.proceed(shard)
        leave_out(shard)
        end_expired(shard)
        if shard.handing:
            hand_out(shard)
        if report:
            time_out(shard)
            tend(shard)
            look_again(shard)
            mark_deliveries(shard)
            blocking.note_lasting(shard)
            if shard.records.known:
                lapse(shard, space_low=space_low)
        batch = shard.batch
        marked = serve(shard)
        if shard.overfull or shard.blocked:
            marked += _make_room(shard, space_low=space_low)
        shard.accepted_before = shard.accepted
        marked += batch.served
        _record_lanes(shard)
        rows = statistics(shard) if report or tell else []
        for cursor in batch.wanted:
            want_next(shard, cursor)
        for subscription in marked:
            want_pages(shard, subscription)
            if subscription.selections:
                want(shard, subscription)
            if subscription.wildcard is not None:
                subscription.wildcard.look_at(subscription)
            for link in subscription.links.values() if subscription.draining else ():
                if link.drain:
                    drain(shard, link)
        if shard.browsing.turns:
            browsing.proceed(shard)
        proceed(shard)
        if shard.operations.running:
            operating.read_on(shard)
        commit = _commit(shard)
        shard.batch = Batch(shard.limits)
        shard.unreleased.append((shard.presettled, shard.browsing.sending))
        shard.presettled, shard.browsing.sending = [], []
        effects = Effects(commit, batch.outputs, batch.reads, batch.discarded, statistics=rows, noted=batch.noted, noted_more=batch.noted_more)
        effects.dismissed, effects.given_up = batch.dismissed, batch.given_up
        if report:
            effects.checkpoint = checkpoint(shard)
            effects.maintenance = maintain(shard)
            effects.unlisted, shard.unlisted = shard.unlisted, []
        return effects


# -- the order of a flush -------------------------------------------------------------------------------------------------------------
def _make_room(shard: Shard, *, space_low: bool) -> list[Subscription]:
    """What is too much goes, and what waits for room comes in; whose turn it was again."""
    served: list[Subscription] = []
    if shard.overfull and relieve(shard):
        served += serve(shard)
    if shard.blocked and not space_low and let_in(shard):
        leave_out(shard)
        served += serve(shard)
    return served


def _record_lanes(shard: Shard) -> None:
    """The open segment's ranges grow by what the batch placed, before any read can ask where rows are."""
    batch, segments = shard.batch, shard.segments
    for lane, first in batch.firsts.items():
        segments.add((lane.destination.number, lane.index), first, lane.tail - 1)
        if lane.index < VOLATILE:
            shard.changed_lanes[lane] = None
    segments.rows += len(batch.messages) + len(batch.copies) + len(batch.spilled) + sum([len(bulk.positions) for bulk in batch.bulk_copies])
    segments.octets += sum([message.size for message in batch.messages])
    segments.octets += sum([message.size for message in batch.spilled]) + sum([copy.target.size for copy in batch.copies])
    segments.octets += sum([bulk.octets for bulk in batch.bulk_copies])


def _commit(shard: Shard) -> Commit | None:
    batch, segments = shard.batch, shard.segments
    octets = []
    shard.watched.update(batch.touched)
    shard.changed_destinations.update(batch.touched)
    for destination in batch.touched:
        if destination.estimated:
            correct_octets(destination)
        change = destination.octets - destination.octets_volatile - destination.octets_committed
        if change or destination.octets_arrived:
            octets.append((destination.number, change, destination.octets_arrived))
            destination.octets_committed += change
            destination.octets_arrived = 0
    durable = batch.messages or batch.settled or batch.offered or batch.failures or batch.copies or batch.definitions or batch.answers
    operated = batch.bulk_copies or shard.operations.changed
    others = batch.spilled or batch.scheduled or batch.due or batch.taken or batch.prepared or batch.resolved
    if not (durable or operated or others or (shard.untold and blocking.is_urgent(shard))):
        return None
    shard.commit_number += 1
    commit = Commit(
        number=shard.commit_number,
        at=shard.now,
        sequence=shard.sequence,
        synchronous=batch.synchronous or bool(batch.definitions),
        segment=segments.current,
        messages=batch.messages,
        accepted=[(ln.destination.number, ln.index, first, ln.tail - 1) for ln, first in batch.firsts.items() if ln.index < VOLATILE],
        offered=batch.offered,
        settled=batch.settled,
        scheduled=batch.scheduled,
        due=batch.due,
        taken=batch.taken,
        failures=batch.failures,
        spilled=batch.spilled,
        octets=octets,
        blocked=shard.untold,
        copies=batch.copies,
        bulk_copies=batch.bulk_copies,
        traces=batch.traces,
        operations=operating.rows(shard) if shard.operations.changed else [],
        remembered=duplicates.rows(shard) if batch.remembered else [],
        prepared=batch.prepared,
        resolved=batch.resolved,
        definitions=batch.definitions,
        answers=batch.answers,
    )
    shard.untold = []
    if segments.rows >= shard.limits.segment_rows or segments.octets >= shard.limits.segment_octets:
        commit.definitions.append(segments.close(shard.sequence))
    return commit


# -- peers and links ------------------------------------------------------------------------------------------------------------------
def _open(shard: Shard, command: c.Open) -> None:
    how = {"forwards": command.forwards, "detaches": command.detaches}
    peer = shard.peers[command.peer] = Peer(command.peer, command.account, command.client_id, command.session, **how)
    peer.since = shard.now


def _stop(shard: Shard, command: c.Stop) -> None:
    if peer := shard.peers.get(command.peer):
        peer.stopped = True


def _start(shard: Shard, command: c.Start) -> None:
    if peer := shard.peers.get(command.peer):
        peer.stopped = False
        for link in peer.links.values():
            feed(shard, link)
        browsing.resume(shard, peer)


def _sync(shard: Shard, command: c.Sync) -> None:
    peer, confirmed = shard.peers.get(command.peer), Confirmed(command.peer, command.token)
    if peer is None:
        shard.batch.outputs.append(confirmed)
    elif peer.blocked:
        peer.syncs.append(confirmed)
    else:
        answer(shard, peer, confirmed)


def _peer_lost(shard: Shard, command: c.PeerLost) -> None:
    peer = shard.peers.pop(command.peer, None)
    if peer is not None:
        if peer.blocked:
            forget_waiting(shard, peer)
        forget_producer(peer)
        roll_back_all(shard, peer.transactions.values())
        lose_branches(shard, peer)
        for link in list(peer.links.values()):
            close(shard, link)
        browsing.close_all(shard, peer)
        end_temporaries(shard, peer)


def _grant(shard: Shard, command: c.Grant) -> None:
    if link := shard.links.get(command.link):
        link.credit = command.credit if command.counted is None else max(command.credit - (link.tag - command.counted), 0)
        link.drain = command.drain
        link.subscription.draining = link.subscription.draining or command.drain > 0
        feed(shard, link)
    elif browser := shard.browsing.browsers.get(command.link):
        browsing.grant(shard, browser, command)


# -- the store's answers --------------------------------------------------------------------------------------------------------------
def _page_loaded(shard: Shard, command: c.PageLoaded) -> None:
    browsed = shard.browsing.read
    if browsed is not None and command.read == browsed.read:
        browsing.loaded(shard, command)
        return
    if command.read == shard.expiry_read:
        page_of_expired(shard, command)
        return
    if command.read == shard.schedule.read:
        scheduled_loaded(shard, command)
        return
    if command.read in shard.schedule.asked:
        shard.batch.answers.append(row_loaded(shard, command))
        return
    owner, read = shard.end_read(command.read)
    if isinstance(owner, Scan):
        scan_loaded(shard, owner, read, command)
    elif isinstance(owner, Operation):
        assert isinstance(read, PageWanted)
        operating.loaded(shard, owner, read, command)
    else:
        loaded(shard, owner, read, command)


def _segment_dropped(shard: Shard, command: c.SegmentDropped) -> None:
    shard.segments.dropped(command.segment)


def _segment_compacted(shard: Shard, command: c.SegmentCompacted) -> None:
    shard.segments.compacted(command.segment)
    compacted(shard, command)


_HANDLERS: dict[type, Callable[[Shard, Any], None]] = {
    c.Send: send,
    c.Request: request,
    c.TakeOver: take_over,
    c.Settle: settle,
    c.Open: _open,
    c.Stop: _stop,
    c.Start: _start,
    c.Sync: _sync,
    c.PeerLost: _peer_lost,
    c.CreateTemporary: create_temporary,
    c.EndTemporary: end_own,
    c.Attach: attach,
    c.Browse: browsing.browse,
    c.Unsubscribe: unsubscribe,
    c.Lookup: lookup,
    c.MayProduce: may_produce,
    c.Grant: _grant,
    c.Begin: begin,
    c.Transacted: transacted,
    c.End: end,
    c.BeginBranch: begin_branch,
    c.EndBranch: end_branch,
    c.ListBranches: list_branches,
    c.Detach: detach,
    c.PageLoaded: _page_loaded,
    c.SegmentDropped: _segment_dropped,
    c.SegmentCompacted: _segment_compacted,
    c.SetAccess: set_access,
    c.Control: control,
}
