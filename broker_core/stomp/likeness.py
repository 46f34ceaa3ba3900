"""A SEND section like the last one but for its receipt and its length: recognised by comparing pieces, nothing is split or looked up."""

from __future__ import annotations

from .sections import Section


class Likeness:
    """`octets` is a whole section, blank line included, that has a content-length and perhaps a receipt, and was read as `section`."""

    __slots__ = ("_between", "_end", "_length_max", "_receipt_first", "_section", "_start")

    def __init__(self, octets: bytes, section: Section, length_max: int) -> None:
        self._section = section
        self._length_max = length_max
        receipt, length = octets.find(b"\nreceipt:") + 9, octets.find(b"\ncontent-length:") + 16
        self._receipt_first = 9 <= receipt < length
        first, second = (receipt, length) if receipt < length else (length, receipt)
        self._between = b""
        if first < 9:  # there is no receipt
            first = second
        else:
            self._between = octets[octets.find(b"\n", first) : second]
        self._start = octets[:first]
        self._end = octets[octets.find(b"\n", second if self._between else first) :]

    def read(self, buffer: bytes, position: int) -> tuple[Section, bytes | None, int, int] | None:
        """If such a section starts at `position`: it, the receipt, the content-length, and where the body starts.
        None: it is another one, or has something about it that needs a closer look."""
        if not buffer.startswith(self._start, position):
            return None
        at = position + len(self._start)
        stop = buffer.find(b"\n", at)
        length = buffer[at:stop]
        receipt = None
        if self._between:
            if not buffer.startswith(self._between, stop):
                return None
            at = stop + len(self._between)
            stop = buffer.find(b"\n", at)
            receipt = buffer[at:stop]
            if self._receipt_first:
                receipt, length = length, receipt
            if not receipt.isalnum():
                return None
        if not buffer.startswith(self._end, stop) or not length.isdigit() or len(length) > 18:
            return None
        octets = int(length)
        return (self._section, receipt, octets, stop + len(self._end)) if octets <= self._length_max else None
