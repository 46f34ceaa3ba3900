"""STOMP frames from bytes and to bytes, for either end of a connection. Knows the grammar and its bounds, not what frames mean.

Theory of operation
-------------------
`Parser.events(data)` is a generator over one chunk as received. Each event is a tuple `(section, receipt, body)`:

    a frame                      (its Section, receipt, octets of the body)
    part of a large body         (PART, None, octets)
    the end of such a frame      (its Section, receipt, None); `Parser.body_octets` tells the body's length
    1.2: ACK with only an id     (ACK_BY_ID, None, octets of the id)

`receipt` is the value of a SEND's `receipt` header exactly as it stood on the wire, or None; the receipt-id of the answer is written the
same way, so it needs no decoding. In all other frames `receipt` stays among the headers.

A producer sends the same header section again and again, but for the receipt and perhaps the length. So a SEND is first compared with the
one that came twice in a row, then with the same but for the length (see `likeness`); else its receipt line is cut out and the rest looked up
among the sections met before, then the content-length too. Only a new section is decoded, split and validated, and given to `prepare`: what
that returns stays with the section as `prepared`. One frame of 1 KiB takes the parser 0.8, 1.6, 1.6, 3.2 and 6.6 us
in these five cases.

What is kept between chunks: a header section under way (bounded, joined to the next chunk), or a body under way (a bytearray, never
re-joined; above `large_body_octets` it leaves in parts). Closing the generator keeps what it has not looked at.

The peer's mistakes raise Malformed; the parser must not be used after that.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Generator, Iterable

from .escaping import escape
from .likeness import Likeness
from .limits import Limits
from .sections import UNESCAPED, WITH_BODY, Malformed, Prepare, Section, SectionMemory, Sections, on_wire

IDLE_BODY_OCTETS_MAX = 64
"""Frames without a body may carry stray line ends before their NUL; some clients of the 1.0 days send them."""

_LINE_ENDS = re.compile(rb"(?:\r?\n)*")
_ACK_BY_ID = re.compile(rb"ACK\nid:([0-9A-Za-z.:_-]{1,128})\n\n\0")
_PLAIN = re.compile(rb"(BEGIN|COMMIT|ABORT|ACK|NACK)\n((?:(?:transaction|receipt|id):[0-9A-Za-z._-]{1,128}\n){1,3})\n\0")
"""Frames of transactions as clients write them: nothing to unescape, trim or check in their headers."""

PART = Section("part of a body", {})
ACK_BY_ID = Section("ACK by id", {})

Event = tuple[Section, bytes | None, bytes | None]


class Parser:
    """Incremental. `commands` are those that the peer may send."""

    def __init__(self, limits: Limits, commands: frozenset[str], prepare: Prepare | None = None) -> None:
        self.body_octets = 0
        """Octets of the body under way; at the end of a large one, its length, until the next event."""
        self.exhausted = True
        """All that was received has been looked at: nobody closed the generator before its end."""
        self.part_of: Section | None = None
        """While a PART is given: what it is the body of."""
        self.turned: list[Section] = []
        """SENDs' sections that are not the one before, so that each that ever came has been among them. Whoever reads them empties it."""
        self._limits = limits
        self._large = min(limits.large_body_octets, limits.body_octets_max)
        self._sections = Sections(limits, commands, prepare)
        self._kept = b""
        self._section: Section | None = None
        self._receipt: bytes | None = None
        self._length = -1
        self._body = bytearray()
        self._ready: deque[Event] = deque()
        """Of a body that came in several chunks: complete, and not given yet."""
        self._likeness: Likeness | None = None
        # How the SEND section that came twice in a row began up to its receipt's value, how it went on, what it was and its length.
        # Matches no frame at first.
        self._expected: tuple[bytes, bytes, Section | None, int] = b"\0", b"", None, -1
        self._last: tuple[Section | None, int] = None, -1

    @property
    def version(self) -> str:
        """What the peer speaks; 1.0 until agreed otherwise."""
        return self._sections.version

    @version.setter
    def version(self, version: str) -> None:
        self._sections.version = version

    def expect(self, commands: frozenset[str], otherwise: str) -> None:
        """From now on only `commands` are allowed; `otherwise` goes on after the name of another one: "is not ...", "comes before ..."."""
        self._sections.commands = commands
        self._sections.otherwise = otherwise

    def share(self, memory: SectionMemory) -> None:
        """See Sections.share."""
        self._sections.share(memory)

    @property
    def kept_octets(self) -> int:
        """What is held of frames that have not ended yet."""
        return len(self._kept) + len(self._body)

    def discard(self) -> None:
        """Forget everything held; the parser is not used any more."""
        self._kept = b""
        self._ready.clear()
        self._section = self._receipt = None
        self._body = bytearray()
        self._expected = b"\0", b"", None, -1
        self._last = None, -1
        self._likeness = None
        self._sections.forget()

    def events(self, data: bytes) -> Generator[Event, None, None]:
        """What `data` completes; see the theory of operation. Long because it is the hot loop: one pass over positions of one buffer."""
        buffer = self._kept + data if self._kept else data
        position, size = 0, len(buffer)
        large = self._large
        header_octets_max = self._limits.header_octets_max
        find, startswith, sections = buffer.find, buffer.startswith, self._sections
        before, after, expected, expected_length = self._expected
        last, last_length = self._last
        whole = sections.whole.get
        may_send = "SEND" in sections.commands
        acks_by_id = sections.version == "1.2" and "ACK" in sections.commands
        self.exhausted = False
        try:
            if self._ready:
                yield from self._give()
            if self._section is not None:
                position = self._take_body(buffer, 0)
                yield from self._give()
            while position < size:
                section = receipt = None
                if startswith(before, position):
                    # Most likely the section is the last one again: compare two pieces around the receipt, find only its end.
                    start = position + len(before)
                    if after:
                        stop = find(b"\n", start)
                        if startswith(after, stop):
                            receipt = buffer[start:stop]
                            if receipt.isalnum():
                                section, length = expected, expected_length
                                start = stop + len(after)
                    else:
                        section, length = expected, expected_length
                if section is not None:
                    pass
                elif startswith(b"SEND\n", position):
                    if self._likeness is not None and (as_before := self._likeness.read(buffer, position)) is not None:
                        section, receipt, length, start = as_before
                    elif (end := find(b"\n\n", position, position + header_octets_max)) > 0:
                        start = end + 2
                        at = find(b"\nreceipt:", position, end)
                        if at > 0:
                            stop = find(b"\n", at + 9, end)
                            if stop < 0:
                                stop = end
                            receipt = buffer[at + 9 : stop]
                            block = buffer[position:at] + buffer[stop:end]
                        else:
                            block = buffer[position:end]
                        if may_send and (receipt is None or receipt.isalnum()):
                            if (met := whole(block)) is not None:
                                section, length = met
                            elif b"\r" not in block and b"\0" not in block:
                                section, length = sections.of_send(block, receipt)
                        if section is not None:
                            if section is last and length != last_length:
                                if length >= 0:  # the length is what differs; a section without one is like none
                                    self._likeness = Likeness(buffer[position:start], section, self._limits.body_octets_max)
                            elif section is last or section.transaction is not None:  # of a transaction the first one tells how the rest begin
                                if receipt is None:
                                    before, after, expected, expected_length = buffer[position:start], b"", section, length
                                else:
                                    before, after, expected, expected_length = buffer[position : at + 9], buffer[stop:start], section, length
                            if section is not last and section.prepared is not None:
                                self.turned.append(section)
                            last, last_length = section, length
                elif acks_by_id and startswith(b"ACK\nid:", position):
                    found = _ACK_BY_ID.match(buffer, position)
                    if found is not None:
                        position = found.end()
                        yield ACK_BY_ID, None, found[1]
                        continue
                elif acks_by_id and (found := _PLAIN.match(buffer, position)) is not None:
                    headers = dict([line.split(":") for line in found[2].decode().splitlines()])
                    if len(headers) == found[2].count(b"\n"):  # none is repeated
                        position = found.end()
                        yield Section(found[1].decode(), headers), None, b""
                        continue
                elif buffer[position] in b"\r\n":
                    skipped = _LINE_ENDS.match(buffer, position).end()  # type: ignore[union-attr]  # it matches nothing as well
                    if skipped > position:
                        position = skipped
                        continue
                    if position + 1 == size:
                        break
                if section is None:
                    read = sections.read(buffer, position)
                    if read is None:
                        break
                    section, receipt, length, start = read
                    if section.prepared is not None and (not self.turned or self.turned[-1] is not section):
                        self.turned.append(section)
                if length >= 0:
                    stop = start + length
                    if stop < size and length <= large:
                        if buffer[stop]:
                            raise _too_long(section, length, receipt)
                        position = stop + 1
                        yield section, receipt, buffer[start:stop]
                        continue
                else:
                    stop = find(b"\0", start)
                    if stop == start or (start < stop <= start + large and section.command in WITH_BODY):
                        position = stop + 1
                        yield section, receipt, buffer[start:stop]
                        continue
                self._section, self._receipt, self._length, self.body_octets = section, receipt, length, 0
                position = self._take_body(buffer, start)
                yield from self._give()
            self.exhausted = True
        finally:
            self._kept = buffer[position:]
            self._expected = before, after, expected, expected_length
            self._last = last, last_length

    # -- bodies -------------------------------------------------------------------------------------------------------------------------
    def _give(self) -> Generator[Event, None, None]:
        """What is ready; what nobody takes now is given first the next time."""
        ready = self._ready
        while ready:
            yield ready.popleft()

    def _take_body(self, buffer: bytes, start: int) -> int:
        """Take what `buffer` has of the body under way; where the next frame starts. What this completes is ready."""
        section, limits, size = self._section, self._limits, len(buffer)
        assert section is not None
        stop = start + self._length - self.body_octets if self._length >= 0 else buffer.find(b"\0", start)
        ended = 0 <= stop < size
        if not ended:
            stop = size
        elif buffer[stop]:
            raise _too_long(section, self._length, self._receipt)
        self.body_octets += stop - start
        self._body += memoryview(buffer)[start:stop]
        self._check_body(section)
        ready = self._ready
        large = self._large
        if self._length > large or self.body_octets > large:
            self.part_of = section
            while len(self._body) > large or (ended and self._body):
                ready.append((PART, None, bytes(self._body[: limits.part_octets_max])))
                del self._body[: limits.part_octets_max]
            body = None
        else:
            body = self._body
        if ended:
            ready.append((section, self._receipt, None if body is None else bytes(body)))
            self._body = bytearray()
            self._section = self._receipt = None
            return stop + 1
        return size

    def _check_body(self, section: Section) -> None:
        if section.command not in WITH_BODY:
            if len(self._body) > IDLE_BODY_OCTETS_MAX or self._body.strip(b"\r\n"):
                raise Malformed(f"{section.command} may not have a body", on_wire(section.headers.get("receipt"), self.version))
        elif self.body_octets > self._limits.body_octets_max:
            raise Malformed(f"the body is larger than the {self._limits.body_octets_max} octets allowed", self._receipt)


def _too_long(section: Section, length: int, receipt: bytes | None) -> Malformed:
    return Malformed(f"the body of {section.command} does not end with NUL after its content-length of {length}", receipt)


def serialise(command: str, headers: Iterable[tuple[str, str]], body: bytes = b"", version: str = "1.2") -> bytes:
    """One frame. Raises ValueError if a header cannot be said: LF in a frame without escapes, a colon in such a header's name."""
    if command in UNESCAPED:
        version = "1.0"
    lines = [command]
    for name, value in headers:
        if not name or (version == "1.0" and ("\n" in name or ":" in name or "\n" in value)):
            raise ValueError(f"header {name!r} cannot be written in a frame without escapes")
        lines.append(f"{escape(name, version)}:{escape(value, version)}")
    return "\n".join(lines).encode() + b"\n\n" + body + b"\0"
