"""Random traffic that two stores are asked to keep alike. Seeded; it knows what the engine would know: which rows exist and where."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from broker_core.engine.branch import State
from broker_core.engine.definitions import DestinationDefined, DestinationDestroyed, SegmentClosed, SubscriptionDefined
from broker_core.engine.message import VOLATILE, Header, Message
from broker_core.engine.outcome import Outcome
from broker_core.engine.reads import RETAINED, ExpiredWanted, PageWanted, PositionsWanted, ScheduledWanted
from broker_core.engine.upkeep import CompactSegment, SweepRetained, TrimDuplicates
from broker_core.engine.writes import BulkCopy, Checkpoint, Commit, Copy, PreparedBranch

DESTINATIONS = (1, 2, 3)
PRIORITIES = (0, 4, 9)


@dataclass(slots=True)
class Place:
    """Where a stored row is."""

    segment: int
    key: tuple[int, int, int]
    size: int


@dataclass
class Traffic:
    random: Random
    number: int = 0
    sequence: int = 0
    segment: int = 1
    tails: dict[tuple[int, int], int] = field(default_factory=dict)
    rows: list[Place] = field(default_factory=list)
    open_lanes: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    closed: dict[int, SegmentClosed] = field(default_factory=dict)
    next_destination: int = 10
    branches: list[int] = field(default_factory=list)
    """That have rows."""
    waiting: list[int] = field(default_factory=list)
    """Numbers in the schedule; those that went with a term or a discard are still here."""

    def step(self) -> tuple[str, Any]:
        """A method of the store and its argument."""
        if not self.number:
            return self._begin()
        makers = [self.commit] * 6 + [
            self.checkpoint, self.page, self.page, self.page, self.positions, self.expired, self.compact, self.drop, self.sweep,
            self.scheduled, self.scheduled, self.discard, self.trim,
        ]  # fmt: skip
        made = self.random.choice(makers)()
        return made if made is not None else self.commit()

    def _begin(self) -> tuple[str, Commit]:
        self.number = 1
        commit = Commit(1, 1000, 0, True, 1)
        for number in range(1, self.next_destination + 1):
            commit.definitions += [DestinationDefined(number, f"queue/{number}", 1, True, 0, {}), SubscriptionDefined(number, number)]
        return "commit", commit

    # -- writes -------------------------------------------------------------------------------------------------------------------------
    def commit(self) -> tuple[str, Commit]:
        random = self.random
        bulk = self._bulk() if self.rows and random.random() < 0.3 else None
        copies = [self._copy(place) for place in random.sample(self.rows, min(len(self.rows), random.choice((0, 0, 1, 5))))]
        rows = [self._message(random.choice((0, 3, 4))) for _ in range(random.choice((0, 1, 3, 30)))]
        spilled = [self._message(1) for _ in range(random.choice((0, 0, 0, 8)))]
        self.number += 1
        commit = Commit(self.number, 1000 + self.number, self.sequence, random.random() < 0.5, self.segment, rows, spilled=spilled, copies=copies)
        commit.messages = [row for row in rows if row.header.lane < VOLATILE]
        commit.spilled += [row for row in rows if row.header.lane >= VOLATILE]
        commit.spilled.sort(key=lambda row: row.sequence)
        commit.bulk_copies = [bulk[0]] if bulk else []
        for row in [*(bulk[1] if bulk else ()), *commit.messages, *(copy.target for copy in copies)]:
            self._account(commit, row)
        if random.random() < 0.5:
            commit.settled = [(random.randint(1, 9), random.choice(PRIORITIES), 1, random.randint(1, 99), random.choice(list(Outcome)))]
            commit.offered = [(1, 4, 1, random.randint(1, 99), 1 << random.randint(0, 60)) for _ in range(random.randint(0, 3))]
            commit.failures = [(1, 4, random.randint(1, 99), random.randint(1, 9))]
            commit.octets = [(d, random.randint(-99, 99), random.randint(0, 99)) for d in DESTINATIONS]
            commit.blocked = [(d, 900, random.randint(901, 1000)) for d in random.sample(DESTINATIONS, random.choice((0, 0, 1, 2)))]
        self._define(commit)
        self._schedule(commit)
        self._prepare(commit)
        for destination in random.sample(DESTINATIONS, random.choice((0, 0, 1, 3))):
            commit.remembered.append((destination, [random.choice(("a", "it's", '"\\{}', "ü")) for _ in range(random.randint(1, 5))]))
        return "commit", commit

    def _schedule(self, commit: Commit) -> None:
        random = self.random
        commit.due = random.sample(self.waiting, min(len(self.waiting), random.choice((0, 0, 1, 9))))
        self.waiting = [number for number in self.waiting if number not in commit.due]
        for _ in range(random.choice((0, 0, 2, 20))):
            self.sequence += 1
            message = self._made(random.choice((1, 2, 3, 4)))
            message.destination, message.sequence = random.choice(DESTINATIONS), self.sequence
            message.position, message.accepted_at = 0, random.randint(1, 50)
            commit.scheduled.append(message)
            self.waiting.append(message.sequence)

    def _prepare(self, commit: Commit) -> None:
        """Branches, and outcomes: of those of this commit, too."""
        random = self.random
        for _ in range(random.choice((0, 0, 0, 1, 3))):
            self.sequence += 1
            sends = [(f"queue/{random.choice(DESTINATIONS)}", self._made(random.choice((1, 2, 3, 4)))) for _ in range(random.choice((0, 1, 20)))]
            for _, message in sends:
                message.accepted_at = random.randint(1, 50)
            settled = [(random.randint(1, 9), random.choice(list(Outcome)), self._acknowledged()) for _ in range(random.choice((0, 1, 5)))]
            commit.prepared.append(PreparedBranch(self.sequence, "1.aa.", random.choice(("it's", "ü")), self.number, State.PREPARED, 9, sends, settled))
            self.branches.append(self.sequence)
        for branch in random.sample(self.branches, min(len(self.branches), random.choice((0, 0, 1, 2)))):
            state = random.choice((0, 0, State.HEURISTICALLY_COMMITTED, State.HEURISTICALLY_ROLLED_BACK))
            commit.resolved.append((branch, state))
            if not state:
                self.branches.remove(branch)

    def _acknowledged(self) -> Message:
        random, message = self.random, self._made(self.random.choice((3, 4)))
        message.destination, message.sequence, message.position = random.choice(DESTINATIONS), random.randint(1, 99), random.randint(1, 99)
        message.accepted_at, message.body = random.randint(1, 50), None
        return message

    def _message(self, reliability: int) -> Message:
        return self._place(self._made(reliability))

    def _made(self, reliability: int) -> Message:
        random = self.random
        header = Header(
            random.randbytes(random.choice((0, 20, 300))), random.choice(PRIORITIES), reliability, random.choice((0, 0, 500, 1000, 2000)),
            random.choice((0, 1)), random.choice(("", "ID:1", "it's")), random.choice(("", "ü")), random.choice(("", '{"a":"\\"b\\""}')),
        )  # fmt: skip
        body = random.randbytes(random.choice((0, 1, 100, 3000)))
        return Message(header, body, len(header.octets) + len(body))

    def _copy(self, source: Place) -> Copy:
        header = Header(b"", self.random.choice(PRIORITIES), 4, self.random.choice((0, 700)), 0, "ID:copy", "", "{}")
        cut = self.random.random() < 0.3
        return Copy(source.segment, source.key, self._place(Message(header, None, 7 if cut else source.size)), cut)

    def _bulk(self) -> tuple[BulkCopy, list[Message]]:
        """Neighbours in the making, and what is known of them."""
        random, one = self.random, self.random.choice(self.rows)
        sizes = {place.key[2]: place.size for place in self.rows if (place.segment, place.key[:2]) == (one.segment, one.key[:2])}
        positions = sorted(random.sample(sorted(sizes), random.randint(1, min(len(sizes), 6))))
        destination, lane, sequence = random.choice(DESTINATIONS), random.choice(PRIORITIES), self.sequence + 1
        position = self.tails.get((destination, lane), 1)
        self.tails[destination, lane] = position + len(positions)
        self.sequence += len(positions)
        bulk = BulkCopy(one.segment, one.key[:2], positions, destination, lane, sequence, position, 1000 + sequence, 0, "ID:me-")
        bulk.octets = sum(sizes[each] for each in positions)
        if random.random() < 0.5:
            bulk.expirations = [random.choice((0, 700)) for _ in positions]
            bulk.annotations = [random.choice(("", '{"a":"\\"b\\""}')) for _ in positions]
        known = [Message(Header(b"", lane, 4), None, sizes[each]) for each in positions]
        for number, row in enumerate(known):
            row.destination, row.position = destination, position + number
        return bulk, known

    def _place(self, message: Message) -> Message:
        self.sequence += 1
        message.destination = self.random.choice(DESTINATIONS)
        key = (message.destination, message.header.lane)
        message.sequence, message.accepted_at = self.sequence, 1000 + self.sequence
        message.position = self.tails.get(key, 1)
        self.tails[key] = message.position + 1
        return message

    def _account(self, commit: Commit, row: Message) -> None:
        key = (row.destination, row.header.lane)
        known = next((n for n, range_ in enumerate(commit.accepted) if range_[:2] == key), None)
        if known is None:
            commit.accepted.append((*key, row.position, row.position))
        else:
            first, last = commit.accepted[known][2:]
            commit.accepted[known] = (*key, min(first, row.position), max(last, row.position))
        first, last = self.open_lanes.get(key, (row.position, row.position))
        self.open_lanes[key] = (min(first, row.position), max(last, row.position))
        self.rows.append(Place(self.segment, (*key, row.position), row.size))

    def _define(self, commit: Commit) -> None:
        if self.random.random() < 0.1:
            number = self.next_destination = self.next_destination + 1
            commit.definitions += [DestinationDefined(number, f"queue/{number}", 1, True, 0, {"n": number}), SubscriptionDefined(number, number)]
            commit.definitions += [DestinationDestroyed(number - 1)]
        if self.random.random() < 0.15:
            self.closed[self.segment] = SegmentClosed(self.segment, self.sequence, dict(self.open_lanes))
            commit.definitions.append(self.closed[self.segment])
            self.segment += 1
            self.open_lanes.clear()

    def checkpoint(self) -> tuple[str, Checkpoint]:
        random = self.random
        return "checkpoint", Checkpoint(
            self.number, 1000 + self.number, self.sequence,
            lanes=[(*key, tail) for key, tail in self.tails.items() if key[1] < VOLATILE],
            cursors=[(random.randint(10, self.next_destination), 4, random.randint(0, 9), 9)],
            blocks=[(random.randint(10, self.next_destination), 4, random.randint(0, 1), random.choice((b"", random.randbytes(512))))],
            failures=[(random.randint(10, self.next_destination), 4, random.randint(0, 3), random.randint(0, 2))],
            counters=[(random.randint(10, self.next_destination), *(random.randint(0, 99) for _ in range(6)))],  # type: ignore[list-item]
        )  # fmt: skip

    # -- reads --------------------------------------------------------------------------------------------------------------------------
    def _segments(self) -> list[int]:
        return [RETAINED, *self.closed, self.segment]

    def page(self) -> tuple[str, PageWanted]:
        random = self.random
        lane = random.choice(PRIORITIES) + random.choice((0, 0, 0, VOLATILE))
        after = random.randint(0, 60)
        limit, octets = random.choice((1, 3, 1000)), random.choice((1, 2000, 1 << 20))
        return "read", PageWanted(1, random.choice(DESTINATIONS), lane, after, after + random.randint(0, 60), limit, octets, self._segments())

    def positions(self) -> tuple[str, PositionsWanted]:
        wanted = self.random.sample(range(1, 80), 12)
        return "read", PositionsWanted(1, self.random.choice(DESTINATIONS), self.random.choice(PRIORITIES), wanted, self._segments())

    def expired(self) -> tuple[str, ExpiredWanted]:
        after = (self.random.choice((0, 500, 1000)), self.random.randint(0, 50))
        choice = self.random.choice
        return "read", ExpiredWanted(1, after, choice((600, 1500)), choice((2, 1000)), self._segments(), choice((300, 1 << 20)), choice((True, False)))

    def scheduled(self) -> tuple[str, ScheduledWanted]:
        random = self.random
        after = (random.randint(0, 40), random.randint(0, 500))
        return "read", ScheduledWanted(1, after, random.randint(20, 60), random.choice((1, 3, 1000)), random.choice((1, 2000, 1 << 20)))

    # -- maintenance --------------------------------------------------------------------------------------------------------------------
    def compact(self) -> tuple[str, CompactSegment] | None:
        if not self.closed:
            return None
        segment = self.random.choice(list(self.closed))
        del self.closed[segment]
        mine = [place for place in self.rows if place.segment == segment]
        kept = self.random.sample(mine, len(mine) // 3)
        self.rows = [place for place in self.rows if place.segment != segment] + kept
        for place in kept:
            place.segment = RETAINED
        survivors = [(*place.key, place.key[2]) for place in kept]
        return "compact_segment", CompactSegment(segment, survivors)

    def drop(self) -> tuple[str, int] | None:
        if not self.closed:
            return None
        segment = self.random.choice(list(self.closed))
        del self.closed[segment]
        self.rows = [place for place in self.rows if place.segment != segment]
        return "drop_segment", segment

    def sweep(self) -> tuple[str, SweepRetained]:
        """Of a lane all up to some position, of another one two parts between others."""
        places = self.random.sample([(destination, lane) for destination in DESTINATIONS for lane in PRIORITIES], 2)
        first, second, third, fourth, upto = sorted(self.random.sample(range(1, 51), 5))
        settled = [(*places[0], 1, upto), (*places[1], first, second), (*places[1], third, fourth)]
        self.rows = [p for p in self.rows if p.segment != RETAINED or not any(p.key[:2] == s[:2] and s[2] <= p.key[2] <= s[3] for s in settled)]
        return "sweep_retained", SweepRetained(settled)

    def discard(self) -> tuple[str, int]:
        return "discard_scheduled", self.random.choice((*DESTINATIONS, 99))

    def trim(self) -> tuple[str, TrimDuplicates]:
        some = self.random.sample((*DESTINATIONS, 99), self.random.randint(1, 3))
        return "trim_duplicates", TrimDuplicates([(destination, 1000 + self.random.randint(0, self.number + 1)) for destination in some])
