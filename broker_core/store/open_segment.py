"""Where each lane began in the segment being written, and how full that is: known from the commits as they pass, so that nobody ever has to count rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from broker_core.engine.message import VOLATILE
from broker_core.engine.writes import Commit

Lane = tuple[int, int]


class OpenSegment:
    """Follows the commits; tells, for any commit since the last checkpoint, what the segment was like after it."""

    def __init__(self, number: int, segment: int, firsts: dict[Lane, int], rows: int, octets: int) -> None:
        """As recovered: the state after commit `number`, the last there is."""
        self.segment, self.rows, self.octets = segment, rows, octets
        self._firsts = {segment: firsts}
        self._commits = deque([(number, segment, rows, octets)])

    def follow(self, commit: Commit, octets: int) -> None:
        """A durable commit."""
        if commit.segment != self.segment:
            self.segment, self.rows, self.octets = commit.segment, 0, 0
            self._firsts[commit.segment] = {}
        firsts = self._firsts[self.segment]
        for destination, lane, first, _last in commit.accepted:
            if lane < VOLATILE:
                firsts.setdefault((destination, lane), first)
        self.rows += len(commit.messages) + len(commit.copies) + sum(len(bulk.positions) for bulk in commit.bulk_copies)
        self.octets += octets
        self._commits.append((commit.number, self.segment, self.rows, self.octets))

    def after(self, number: int) -> tuple[int, int, int]:
        """(segment, rows, octets) after commit `number`; earlier ones are forgotten."""
        commits = self._commits
        assert commits[0][0] <= number, f"a checkpoint of commit {number} after one of {commits[0][0]}"
        while len(commits) > 1 and commits[1][0] <= number:
            commits.popleft()
        _, segment, rows, octets = commits[0]
        for old in [old for old in self._firsts if old < segment]:
            del self._firsts[old]
        return segment, rows, octets

    def firsts(self, segment: int, lanes: Iterable[tuple[int, int, int]]) -> list[int | None]:
        """For each (destination, lane, tail): the lane's first position in the segment, None if it has none below the tail."""
        firsts = self._firsts[segment]
        return [first if (first := firsts.get((destination, lane))) is not None and first < tail else None for destination, lane, tail in lanes]
