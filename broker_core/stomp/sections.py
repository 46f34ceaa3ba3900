"""Header sections: the lines from a command to the blank line, validated, unescaped, and remembered if they are a SEND's.

Producers repeat themselves: but for the receipt and the length, most of their header sections are the same. Both lines are cut out and the
rest is looked up; only what is new is decoded, split and given to `prepare`.
"""

from __future__ import annotations

from collections.abc import Callable
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

TEMPORARY = b"/temp-"
"""How the names of temporary destinations begin, in whatever header."""
DUPLICATE_IDS = ("duplicate-id", "_AMQ_DUPL_ID")
"""Ours, Artemis's. Delivered as any header: who sends on what he received twice names it alike."""
UNREPEATED = tuple([b"\n%b:" % name.encode() for name in DUPLICATE_IDS])
"""How lines begin that are other ones in every message: their sections would only take the place of those that repeat."""
COMMAND_OCTETS_MAX = 16
"""The longest command, UNSUBSCRIBE, has 11. Anything longer is another protocol and is refused before its first line ends."""


class Malformed(Exception):
    """A frame that breaks the protocol: a sentence for the peer, and the receipt it asked for, as on the wire, if known."""

    def __init__(self, sentence: str, receipt: bytes | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.receipt = receipt


class Section:
    """Command and headers of a frame. SEND's receipt and content-length are not among them, and none at all if something was prepared of them.
    Of repeated headers the first counts (1.2)."""

    __slots__ = ("command", "headers", "prepared", "transaction")

    def __init__(self, command: str, headers: dict[str, str], prepared: Any = None, transaction: bytes | None = None) -> None:
        self.command = command
        self.headers = headers
        self.prepared = prepared
        self.transaction = transaction
        """Of a SEND, as it stood on the wire."""

    def within(self, transaction: bytes | None) -> Section:
        """The same in a transaction."""
        return Section(self.command, self.headers, self.prepared, transaction)


Prepare = Callable[[dict[str, str], bytes | None], Any]
"""Given the headers and, if they need no unescaping and none is repeated, their lines as they stood on the wire. May raise Malformed."""


class SectionMemory:
    """SEND sections that the connections of a node remember together, one table a version: ten thousand queues, written to by a hundred
    producers, are parsed ten thousand times and not at every message. Bounded; a flood of new sections only costs their parsing."""

    def __init__(self, sections_max: int = 32_768) -> None:
        self.sections_max = sections_max
        """In each of the two tables; about 1.5 KiB each at most: 96 MiB."""
        self._tables: dict[str, tuple[dict[bytes, Section], dict[bytes, tuple[Section, int]]]] = {}

    def tables(self, version: str) -> tuple[dict[bytes, Section], dict[bytes, tuple[Section, int]]]:
        """Sections less receipt and content-length; and less the receipt only, with the length."""
        return self._tables.setdefault(version, ({}, {}))


class Sections:
    """Reads the sections of one peer. `commands` are those that it may send at present, `otherwise` says why another one is refused."""

    def __init__(self, limits: Limits, commands: frozenset[str], prepare: Prepare | None) -> None:
        self.version = "1.0"
        self.commands = commands
        self.otherwise = "is not a STOMP command"
        self._limits = limits
        self._prepare = prepare
        self._known: dict[bytes, Section] = {}
        self._transacted: Section | None = None
        """The last one within a transaction."""
        self._known_max = limits.sections_max
        self._own: dict[bytes, Section] = {}
        """Sections that name a temporary destination: they mean another one on every connection."""
        self.whole: dict[bytes, tuple[Section, int]] = {}
        """SEND sections, less their receipt, that came before with the same content-length: what of_send gave for them."""

    def share(self, memory: SectionMemory) -> None:
        """Remember with others; only if what `prepare` makes depends on nothing but the section and the version. What names a temporary destination
        is still remembered here alone."""
        self._known, self.whole = memory.tables(self.version)
        self._known_max = memory.sections_max

    def forget(self) -> None:
        self._known, self._own, self.whole, self._known_max = {}, {}, {}, self._limits.sections_max

    def read(self, buffer: bytes, position: int) -> tuple[Section, bytes | None, int, int] | None:
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
        if block.startswith((b"SEND\n", b"SEND\r\n")) or block in (b"SEND", b"SEND\r"):
            block, receipt = self._cut(block, b"\nreceipt:")
            self._check_line(receipt, "receipt")
            section, length = self.of_send(block, receipt)
            return section, receipt, length
        command, headers = self._parse(block, None)
        value = headers.get("content-length")
        receipt = on_wire(headers.get("receipt"), self.version)
        length = -1 if value is None else self._length_of(value.strip().encode() if command in UNESCAPED else value.encode(), receipt)
        if length > 0 and command not in WITH_BODY:
            raise Malformed(f"{command} may not have a body", receipt)
        return Section(command, headers), None, length

    def of_send(self, block: bytes, receipt: bytes | None) -> tuple[Section, int]:
        """A SEND section without its receipt: what it says besides the length, met before or new, and the length."""
        said = block
        block, value = self._cut(block, b"\ncontent-length:")
        length = -1 if value is None else self._length_of(value, receipt)
        if b"\ntransaction:" in block:
            # Every transaction has another name: the rest is what repeats.
            block, transaction = self._cut(block, b"\ntransaction:")
            self._check_line(transaction, "transaction", receipt)
            if transaction is not None and not transaction.isalnum():  # as BEGIN's is written: names compare by what they mean
                transaction = on_wire(unescape(transaction.decode(), self.version), self.version)
            return self._within(self._section(block, receipt), transaction), length
        met = block in self._known
        section = self._section(block, receipt)
        if met and length >= 0 and len(said) <= self._limits.section_octets_max:
            if len(self.whole) >= self._known_max:
                self.whole.clear()
            self.whole[said] = section, length
        return section, length

    def _within(self, section: Section, transaction: bytes | None) -> Section:
        """One for all that a transaction sends with the same headers: the parser tells by it that a section repeats."""
        last = self._transacted
        if last is None or last.transaction != transaction or last.prepared is None or last.prepared is not section.prepared:
            last = self._transacted = section.within(transaction)
        return last

    def _section(self, block: bytes, receipt: bytes | None) -> Section:
        """What it says besides receipt, length and transaction, met before or new."""
        known, known_max = (self._known, self._known_max) if TEMPORARY not in block else (self._own, self._limits.sections_max)
        section = known.get(block)
        if section is None:
            command, headers = self._parse(block, receipt)
            headers.pop("content-length", None)
            headers.pop("receipt", None)
            headers.pop("transaction", None)
            # As many lines and colons as headers: nothing was repeated, left out or escaped, the lines can be stored as they are.
            plain = block.count(b"\n") == block.count(b":") == len(headers) and b"\\" not in block and b"\r" not in block
            if self._prepare is None:
                section = Section(command, headers)
            else:
                try:
                    prepared = self._prepare(headers, block[5:] if plain and self.version != "1.0" else None)
                except Malformed as malformed:
                    malformed.receipt = receipt
                    raise
                # Without the headers: 1 KiB of lines of one letter would be 40 KiB of strings to remember.
                section = Section(command, {} if prepared is not None else headers, prepared)
                if prepared is None:  # nothing that anybody says often
                    return section
            if len(block) <= self._limits.section_octets_max and not any(line in block for line in UNREPEATED):
                if len(known) >= known_max:
                    known.clear()
                known[block] = section
        return section

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

    def _check_line(self, value: bytes | None, name: str, receipt: bytes | None = None) -> None:
        """A line of SEND that was cut out and is not parsed with the rest."""
        if value is None or value.isalnum():
            return
        if len(value) > self._limits.line_octets_max:
            raise Malformed(f"a header line of SEND is longer than {self._limits.line_octets_max} octets", receipt)
        try:
            unescape(value.decode(), self.version)
        except UndefinedEscape:
            raise Malformed(f"header {name} of SEND holds an undefined escape sequence", receipt) from None
        except UnicodeDecodeError:
            raise Malformed("the headers of SEND are not valid UTF-8", receipt) from None

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


def on_wire(value: str | None, version: str) -> bytes | None:
    """A header value as the peer must have written it."""
    return None if value is None else escape(value, version).encode()
