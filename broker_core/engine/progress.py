"""What one subscription has settled in one lane: a floor, below which all is settled, and a bitmap above it.

One bit a position, in blocks, so that a message held for a week costs bits and not objects for the millions settled behind it.
A block is a Python int of BLOCK bits: marking a range is one shift and one or, whatever its length.
"""

from __future__ import annotations

from collections.abc import Iterator

BLOCK = 4096
"""Positions per block: 512 octets, one small row of a checkpoint."""
_FULL = (1 << BLOCK) - 1


class Progress:
    __slots__ = ("ahead", "blocks", "dirty", "floor")

    def __init__(self, floor: int = 0) -> None:
        self.floor = floor
        self.blocks: dict[int, int] = {}
        """Block number -> bits of the positions settled above the floor. Never an empty block, never one wholly below the floor."""
        self.ahead = 0
        """Positions settled above the floor."""
        self.dirty: dict[int, None] = {}
        """Blocks changed since the last checkpoint, in order of change."""

    def is_settled(self, position: int) -> bool:
        if position < self.floor:
            return True
        bits = self.blocks.get(position // BLOCK)
        return bits is not None and bool(bits >> (position % BLOCK) & 1)

    def settle(self, first: int, last: int) -> None:
        """Mark first to last, inclusive, as settled; what was settled already stays so."""
        if last < self.floor:
            return
        if first <= self.floor:
            if self.blocks:
                self._raise_floor(last + 1)
            else:
                self.floor = last + 1
            return
        for number in range(first // BLOCK, last // BLOCK + 1):
            base = number * BLOCK
            low, high = max(first - base, 0), min(last - base, BLOCK - 1)
            before = self.blocks.get(number, 0)
            after = before | ((1 << (high - low + 1)) - 1) << low
            if after != before:
                self.ahead += after.bit_count() - before.bit_count()
                self.blocks[number] = after
                self.dirty[number] = None

    def unsettle(self, first: int, last: int) -> None:
        """Mark first to last, inclusive, as not settled; costs a step for each block between there and the floor."""
        floor = self.floor
        if first < floor:
            self.floor = first
            if last + 1 < floor:
                self._fill(last + 1, floor - 1)
                return
            first = floor
        for number in range(first // BLOCK, last // BLOCK + 1):
            before = self.blocks.get(number)
            if before is None:
                continue
            base = number * BLOCK
            low, high = max(first - base, 0), min(last - base, BLOCK - 1)
            after = before & ~(((1 << (high - low + 1)) - 1) << low)
            self._reduce(number, after)

    def _fill(self, first: int, last: int) -> None:
        """Settled so far because they lay below the floor."""
        for number in range(first // BLOCK, last // BLOCK + 1):
            base = number * BLOCK
            low, high = max(first - base, 0), min(last - base, BLOCK - 1)
            self.blocks[number] = self.blocks.get(number, 0) | (_FULL if high - low + 1 == BLOCK else ((1 << (high - low + 1)) - 1) << low)
            self.dirty[number] = None
        self.ahead += last - first + 1

    def _raise_floor(self, floor: int) -> None:
        """Move the floor up, then on over whatever is settled right above it."""
        for number in range(self.floor // BLOCK, floor // BLOCK):
            if number in self.blocks:
                self._forget(number)
        number = floor // BLOCK
        while (bits := self.blocks.get(number)) is not None:
            offset = floor - number * BLOCK
            run = _trailing_ones(bits >> offset)
            floor += run
            if offset + run < BLOCK:
                self._clear_below(number, offset + run)
                break
            self._forget(number)
            number += 1
        self.floor = floor

    def _forget(self, number: int) -> None:
        self.ahead -= self.blocks.pop(number).bit_count()
        self.dirty[number] = None

    def _clear_below(self, number: int, offset: int) -> None:
        self._reduce(number, self.blocks[number] >> offset << offset)

    def _reduce(self, number: int, after: int) -> None:
        """The block has no bits but these of its own left."""
        before = self.blocks[number]
        if after == before:
            return
        self.ahead -= before.bit_count() - after.bit_count()
        self.dirty[number] = None
        if after:
            self.blocks[number] = after
        else:
            del self.blocks[number]

    def unsettled(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """The unsettled ranges within first to last, inclusive, in order."""
        position = max(first, self.floor)
        while position <= last:
            skip = _trailing_ones(self.blocks.get(position // BLOCK, 0) >> (position % BLOCK))
            if skip:
                position += skip
                continue
            start = position
            position = self._next_settled(position, last)
            yield start, position - 1

    def scattered(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """The same for who wants very many: each costs a tenth, but a block is read as it is when its first is asked for."""
        start = -1
        position = max(first, self.floor)
        while position <= last:
            number, offset = divmod(position, BLOCK)
            base, position = position - offset, min(position - offset + BLOCK, last + 1)
            end = position - base
            bits = f"{self.blocks.get(number, 0):0{BLOCK}b}"[::-1]  # str.find looks at a bit in a nanosecond, and a shift copies the block
            while offset >= 0:
                if start < 0 and (offset := bits.find("0", offset, end)) >= 0:
                    start = base + offset
                if start >= 0 and (offset := bits.find("1", offset, end)) >= 0:
                    yield start, base + offset - 1
                    start = -1
        if start >= 0:
            yield start, last

    def unsettled_down(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """The same ranges, the highest first. Whoever takes one only has waited for all blocks that it goes through."""
        first = max(first, self.floor)
        pending: tuple[int, int] | None = None
        while last >= first:
            base = max(last // BLOCK * BLOCK, first)
            runs = [(base, last)] if last // BLOCK not in self.blocks else reversed(list(self.unsettled(base, last)))
            for low, high in runs:
                if pending is not None and high + 1 == pending[0]:
                    pending = (low, pending[1])
                    continue
                if pending is not None:
                    yield pending
                pending = (low, high)
            last = base - 1
        if pending is not None:
            yield pending

    def _next_settled(self, position: int, last: int) -> int:
        """The lowest settled position above `position`, or last + 1."""
        while position <= last:
            number = position // BLOCK
            bits = self.blocks.get(number, 0) >> (position % BLOCK)
            if bits:
                return min(position + _trailing_zeros(bits), last + 1)
            position = (number + 1) * BLOCK
        return last + 1

    def count_unsettled(self, first: int, last: int) -> int:
        return sum(high - low + 1 for low, high in self.unsettled(first, last))

    def load(self, number: int, bits: bytes) -> None:
        """Take a block from a checkpoint; whatever lies below the floor is dropped."""
        value = int.from_bytes(bits, "little")
        below = self.floor - number * BLOCK
        if below > 0:
            value = value >> below << below
        if value:
            self.blocks[number] = value
            self.ahead += value.bit_count()

    def changed_blocks(self) -> list[tuple[int, bytes]]:
        """Blocks changed since the last call, as a checkpoint keeps them; empty octets mean the block is gone."""
        changed = [(n, self.blocks[n].to_bytes(BLOCK // 8, "little") if n in self.blocks else b"") for n in self.dirty]
        self.dirty = {}
        return changed


def _trailing_ones(bits: int) -> int:
    return _trailing_zeros(~bits)


def _trailing_zeros(bits: int) -> int:
    """Of a number that is not 0."""
    return (bits & -bits).bit_length() - 1


def ranges(positions: list[int]) -> list[tuple[int, int]]:
    """Sorts `positions` (distinct) in place; its maximal runs, inclusive."""
    positions.sort()
    first, last = positions[0], positions[-1]
    if last - first + 1 == len(positions):
        return [(first, last)]
    runs = []
    previous = first
    for position in positions[1:]:
        if position != previous + 1:
            runs.append((first, previous))
            first = position
        previous = position
    runs.append((first, previous))
    return runs
