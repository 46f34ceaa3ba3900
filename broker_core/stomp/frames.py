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
one before it; else its receipt and content-length lines are cut out and the rest is looked up among the sections met before. Only a new
section is decoded, split and validated, and given to `prepare`: what that returns stays with the section as `prepared`.

What is kept between chunks: a header section under way (bounded, joined to the next chunk), or a body under way (a bytearray, never
re-joined; above `large_body_octets` it leaves in parts). Closing the generator keeps what it has not looked at.

The peer's mistakes raise Malformed; the parser must not be used after that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable
from typing import Any

from .escaping import UndefinedEscape, escape, unescape
from .limits import Limits

CLIENT_COMMANDS = frozenset(
    ("SEND", "SUBSCRIBE", "UNSUBSCRIBE", "ACK", "NACK", "BEGIN", "COMMIT", "ABORT", "DISCONNECT", "CONNECT", "STOMP")
)
SERVER_COMMANDS = frozenset(("CONNECTED", "MESSAGE", "RECEIPT", "ERROR"))
WITH_BODY = frozenset(("SEND", "MESSAGE", "ERROR"))
UNESCAPED = frozenset(("CONNECT", "STOMP", "CONNECTED"))
"""Frames whose headers are not escaped, so that a 1.0 peer understands them. STOMP is to be handled as CONNECT is."""

COMMAND_OCTETS_MAX = 16
"""The longest command, UNSUBSCRIBE, has 11. Anything longer is another protocol and is refused before its first line ends."""
IDLE_BODY_OCTETS_MAX = 64
"""Frames without a body may carry stray line ends before their NUL; some clients of the 1.0 days send them."""

_LINE_ENDS = re.compile(rb"(?:\r?\n)*")
_ACK_BY_ID = re.compile(rb"ACK\nid:([0-9A-Za-z.:_-]{1,128})\n\n\0")


class Malformed(Exception):
    """A frame that breaks the protocol: a sentence for the peer, and the receipt it asked for, as on the wire, if known."""

    def __init__(self, sentence: str, receipt: bytes | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.receipt = receipt


class Section:
    """Command and headers of a frame. SEND's receipt and content-length are not among them. Of repeated headers the first counts (1.2)."""

    __slots__ = ("command", "headers", "prepared")

    def __init__(self, command: str, headers: dict[str, str], prepared: Any = None) -> None:
        self.command = command
        self.headers = headers
        self.prepared = prepared


PART = Section("part of a body", {})
ACK_BY_ID = Section("ACK by id", {})

Event = tuple[Section, bytes | None, bytes | None]
Prepare = Callable[[dict[str, str], bytes | None], Any]
"""Given the headers and, if they need no unescaping and none is repeated, their lines as they stood on the wire. May raise Malformed."""


class Parser:
    """Incremental. `commands` are those that the peer may send at present, `otherwise` says why another one is refused."""

    def __init__(self, limits: Limits, commands: frozenset[str], prepare: Prepare | None = None) -> None:
        self.version = "1.0"
        """What the peer speaks, to be set once agreed; until then nothing is unescaped."""
        self.commands = commands
        self.otherwise = "is not a STOMP command"
        self.body_octets = 0
        """Octets of the body under way; at the end of a large one, its length, until the next event."""
        self._limits = limits
        self._large = min(limits.large_body_octets, limits.body_octets_max)
        self._prepare = prepare
        self._kept = b""
        self._section: Section | None = None
        self._receipt: bytes | None = None
        self._length = -1
        self._body = bytearray()
        self._sections: dict[bytes, Section] = {}
        # How the last SEND section began up to its receipt's value, how it went on, what it was and its length. Matches no frame at first.
        self._expected: tuple[bytes, bytes, Section | None, int] = b"\0", b"", None, -1

    @property
    def kept_octets(self) -> int:
        """What is held of frames that have not ended yet."""
        return len(self._kept) + len(self._body)

    def discard(self) -> None:
        """Forget everything held; the parser is not used any more."""
        self._kept = b""
        self._section = self._receipt = None
        self._body = bytearray()
        self._sections.clear()

    def events(self, data: bytes) -> Generator[Event, None, None]:
        """What `data` completes; see the theory of operation. Long because it is the hot loop: one pass over positions of one buffer."""
        buffer = self._kept + data if self._kept else data
        position, size = 0, len(buffer)
        large = self._large
        header_octets_max = self._limits.header_octets_max
        find, startswith = buffer.find, buffer.startswith
        before, after, expected, expected_length = self._expected
        may_send = "SEND" in self.commands
        acks_by_id = self.version == "1.2" and "ACK" in self.commands
        try:
            if self._section is not None:
                ready, position = self._take_body(buffer, 0)
                yield from ready
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
                    end = find(b"\n\n", position, position + header_octets_max)
                    if end > 0:
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
                        if may_send and (receipt is None or receipt.isalnum()) and b"\r" not in block and b"\0" not in block:
                            section, length = self._send_section(block, receipt)
                            expected, expected_length = section, length
                            if receipt is None:
                                before, after = buffer[position:start], b""
                            else:
                                before, after = buffer[position : at + 9], buffer[stop:start]
                elif acks_by_id and startswith(b"ACK\nid:", position):
                    found = _ACK_BY_ID.match(buffer, position)
                    if found is not None:
                        position = found.end()
                        yield ACK_BY_ID, None, found[1]
                        continue
                elif buffer[position] in b"\r\n":
                    skipped = _LINE_ENDS.match(buffer, position).end()  # type: ignore[union-attr]  # it matches nothing as well
                    if skipped > position:
                        position = skipped
                        continue
                    if position + 1 == size:
                        break
                if section is None:
                    read = self._read_header(buffer, position)
                    if read is None:
                        break
                    section, receipt, length, start = read
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
                ready, position = self._take_body(buffer, start)
                yield from ready
        finally:
            self._kept = buffer[position:]
            self._expected = before, after, expected, expected_length

    # -- header sections ----------------------------------------------------------------------------------------------------------------
    def _read_header(self, buffer: bytes, position: int) -> tuple[Section, bytes | None, int, int] | None:
        """The section that starts at `position`, SEND's receipt, the content-length, and where the body starts; None: not complete yet."""
        self._check_command(buffer[position : position + COMMAND_OCTETS_MAX + 2])
        limit = position + self._limits.header_octets_max
        end = buffer.find(b"\n\n", position, limit)
        start = end + 2
        # The blank line of 1.2 may be CRLF. The same is accepted from others, whose own rule would give an endless header section.
        blank = buffer.find(b"\n\r\n", position, end + 1 if end >= 0 else limit)
        if blank >= 0:
            end, start = blank, blank + 3
        nul = buffer.find(b"\0", position, end if end >= 0 else limit)
        if nul >= 0:
            # The specification's own examples of DISCONNECT leave the blank line out: NUL at the start of a line ends the frame.
            if buffer[nul - 1] != 10:
                raise Malformed("a NUL octet stands in a header section")
            end, start = nul - 1, nul
        if end >= 0:
            return (*self._section_of(buffer[position:end]), start)
        if len(buffer) - position >= self._limits.header_octets_max:
            raise Malformed(f"the header section is longer than {self._limits.header_octets_max} octets")
        return None

    def _check_command(self, beginning: bytes) -> None:
        """Refuse what is no frame at all as soon as it can be seen, before more of it is kept."""
        line, ended, _ = beginning.partition(b"\n")
        command = line.removesuffix(b"\r").decode("utf-8", "replace")
        if command.startswith("\0"):
            raise Malformed("a NUL octet stands between frames")
        if "\0" in command or len(line) > COMMAND_OCTETS_MAX:
            raise Malformed("the frame does not start with a command")
        if ended and command not in self.commands:
            shown = "".join(letter if letter.isprintable() else "?" for letter in command)
            raise Malformed(f"'{shown}' {self.otherwise}")

    def _section_of(self, block: bytes) -> tuple[Section, bytes | None, int]:
        if block.startswith((b"SEND\n", b"SEND\r\n")):
            block, receipt = self._cut(block, b"\nreceipt:")
            self._check_receipt(receipt)
            section, length = self._send_section(block, receipt)
            return section, receipt, length
        command, headers = self._parse(block, None)
        value = headers.get("content-length")
        length = -1 if value is None else self._length_of(value.encode(), None)
        if length > 0 and command not in WITH_BODY:
            raise Malformed(f"{command} may not have a body", _wire(headers.get("receipt"), self.version))
        return Section(command, headers), None, length

    def _send_section(self, block: bytes, receipt: bytes | None) -> tuple[Section, int]:
        """A SEND section without its receipt: what it says besides the length, met before or new, and the length."""
        block, value = self._cut(block, b"\ncontent-length:")
        length = -1 if value is None else self._length_of(value, receipt)
        section = self._sections.get(block)
        if section is None:
            command, headers = self._parse(block, receipt)
            headers.pop("content-length", None)
            headers.pop("receipt", None)
            # As many lines and colons as headers: nothing was repeated, left out or escaped, the lines can be stored as they are.
            plain = block.count(b"\n") == block.count(b":") == len(headers) and b"\\" not in block and b"\r" not in block
            section = Section(command, headers)
            if self._prepare is not None:
                try:
                    section.prepared = self._prepare(headers, block[5:] if plain and self.version != "1.0" else None)
                except Malformed as malformed:
                    malformed.receipt = receipt
                    raise
            if len(block) <= self._limits.section_octets_max:
                if len(self._sections) >= self._limits.sections_max:
                    self._sections.clear()
                self._sections[block] = section
        return section, length

    def _cut(self, block: bytes, name: bytes) -> tuple[bytes, bytes | None]:
        """The block without the first line called `name`, and that line's value as on the wire."""
        at = block.find(name)
        if at < 0:
            return block, None
        stop = block.find(b"\n", at + len(name))
        if stop < 0:
            stop = len(block)
        value = block[at + len(name) : stop].removesuffix(b"\r")
        return block[:at] + block[stop:], value.strip(b" \t") if self.version == "1.0" else value

    def _check_receipt(self, receipt: bytes | None) -> None:
        if receipt is None or receipt.isalnum():
            return
        if len(receipt) > self._limits.line_octets_max:
            raise Malformed(f"a header line of SEND is longer than {self._limits.line_octets_max} octets")
        try:
            unescape(receipt.decode(), self.version)
        except UndefinedEscape:
            raise Malformed("header receipt of SEND holds an undefined escape sequence") from None
        except UnicodeDecodeError:
            raise Malformed("the headers of SEND are not valid UTF-8") from None

    def _length_of(self, value: bytes, receipt: bytes | None) -> int:
        if not value.isdigit() or len(value) > 18:
            raise Malformed("header content-length is not a number of octets", receipt)
        length = int(value)
        if length > self._limits.body_octets_max:
            raise Malformed(f"the body of {length} octets is larger than the {self._limits.body_octets_max} allowed", receipt)
        return length

    def _parse(self, block: bytes, receipt: bytes | None) -> tuple[str, dict[str, str]]:
        """Command and headers. Header values are never quoted in an error: one of them may be the passcode."""
        limits = self._limits
        if len(block) > limits.line_octets_max and max(map(len, block.split(b"\n"))) > limits.line_octets_max:
            raise Malformed(f"a header line is longer than {limits.line_octets_max} octets", receipt)
        try:
            command, *lines = block.decode().split("\n")
        except UnicodeDecodeError:
            raise Malformed("the header section is not valid UTF-8", receipt) from None
        command = command.removesuffix("\r")
        if len(lines) > limits.headers_max:
            raise Malformed(f"{command} has more than {limits.headers_max} header lines", receipt)
        headers: dict[str, str] = {}
        version = "1.2" if command in UNESCAPED else self.version
        special = b"\\" in block or b"\r" in block or version == "1.0"
        if not special and block.count(b":") == len(lines):
            # Most likely one colon in each line: split them all at C's speed. What is repeated or wrong is left to the loop below.
            try:
                headers = dict([line.split(":") for line in lines])
            except ValueError:
                headers = {}
            if len(headers) == len(lines) and "" not in headers:
                return command, headers
            headers = {}
        for number, line in enumerate(lines, 1):
            name, colon, value = line.partition(":")
            if special:
                name, value = self._unescape(command, number, name, value.removesuffix("\r"), receipt)
            if not colon or not name:
                raise Malformed(f"header line {number} of {command} has no {'name' if colon else 'colon'}", receipt)
            if name not in headers:
                headers[name] = value
        return command, headers

    def _unescape(self, command: str, number: int, name: str, value: str, receipt: bytes | None) -> tuple[str, str]:
        """1.0 escapes nothing but pads: its examples write "destination: /queue/a". From 1.1 on nothing is ever trimmed."""
        if command in UNESCAPED:
            return name, value
        if self.version == "1.0":
            return name, value.strip()
        try:
            return unescape(name, self.version), unescape(value, self.version)
        except UndefinedEscape:
            raise Malformed(f"header line {number} of {command} holds an undefined escape sequence", receipt) from None

    # -- bodies -------------------------------------------------------------------------------------------------------------------------
    def _take_body(self, buffer: bytes, start: int) -> tuple[list[Event], int]:
        """Take what `buffer` has of the body under way; the events that this completes, and where the next frame starts."""
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
        ready: list[Event] = []
        large = self._large
        if self._length > large or self.body_octets > large:
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
            return ready, stop + 1
        return ready, size

    def _check_body(self, section: Section) -> None:
        if section.command not in WITH_BODY:
            if len(self._body) > IDLE_BODY_OCTETS_MAX or self._body.strip(b"\r\n"):
                raise Malformed(f"{section.command} may not have a body", _wire(section.headers.get("receipt"), self.version))
        elif self.body_octets > self._limits.body_octets_max:
            raise Malformed(f"the body is larger than the {self._limits.body_octets_max} octets allowed", self._receipt)


def _too_long(section: Section, length: int, receipt: bytes | None) -> Malformed:
    return Malformed(f"the body of {section.command} does not end with NUL after its content-length of {length}", receipt)


def _wire(value: str | None, version: str) -> bytes | None:
    return None if value is None else escape(value, version).encode()


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
