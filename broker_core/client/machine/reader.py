"""What the broker says, from octets: the client's side of the codec.

MESSAGE and RECEIPT are nearly all that comes, so they are cut out with a few searches and their header sections left unread: a message's is
split when the application asks for a field. All else is read by the sections of the shared codec, which knows the whole grammar.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from broker_core.client.properties import header_line
from broker_core.stomp.escaping import escape
from broker_core.stomp.limits import Limits
from broker_core.stomp.sections import SERVER_COMMANDS, Malformed, Sections

LIMITS = Limits(header_octets_max=1 << 20, headers_max=4096, line_octets_max=1 << 20, body_octets_max=1 << 30)
"""Wider than the broker's own, which is trusted to keep to what it lets others send; a bound all the same."""


@dataclass(slots=True, eq=False)
class Delivery:
    """A MESSAGE; and afterwards, that it was delivered."""

    subscription: bytes
    ack: bytes
    """What an ACK of it says; empty: it is acknowledged."""
    section: bytes
    body: bytes
    octets: int
    """Of the section and the body; of one that waits for the application to acknowledge it, as the broker counts them."""
    consumer: Any = None
    """Whose it is, and on which of the machine's successive connections it came; the machine says both."""
    epoch: int = 0

    def as_counted(self) -> int:
        """Octets that the broker counts against its bound: the sender's headers, without the lines that it wrote around them itself, and the body."""
        section = self.section
        start, stop = section.find(b"\n", section.find(b"\ntimestamp:") + 1), section.rfind(b"\ncontent-length:")
        return max(stop - start - 1, 0) + len(self.body)


@dataclass(slots=True)
class Frame:
    """CONNECTED and ERROR."""

    command: str
    headers: dict[str, str]
    body: bytes


class Reader:
    """Incremental: `feed`, then take what `frames` gives. The broker's mistakes raise Malformed."""

    def __init__(self) -> None:
        self._sections = Sections(LIMITS, SERVER_COMMANDS, None)
        self._sections.version = "1.2"
        self._buffer = b""
        self._position = 0
        self._arrived: list[bytes] = []
        self._wanted = 0
        """Octets that must arrive before the frame under way can be complete: a large body is not searched, nor joined, at every read."""

    def feed(self, data: bytes) -> None:
        self._arrived.append(data)
        self._wanted -= len(data)

    def frames(self) -> Iterator[Delivery | bytes | Frame]:
        """Those that are complete; of a RECEIPT, its receipt-id as on the wire. May be left at any frame, and asked again."""
        if self._wanted > 0:
            return
        if self._arrived:
            self._buffer = b"".join([self._buffer[self._position :], *self._arrived])
            self._position = 0
            self._arrived = []
        buffer, position, size = self._buffer, self._position, len(self._buffer)
        find, startswith = buffer.find, buffer.startswith
        try:
            while position < size:
                if startswith(b"RECEIPT\nreceipt-id:", position):
                    end = find(b"\n", position + 19)
                    if startswith(b"\n\n\0", end):
                        receipt = buffer[position + 19 : end]
                        position = end + 3
                        yield receipt
                        continue
                elif startswith(b"MESSAGE\n", position):
                    end = find(b"\n\n", position, position + LIMITS.header_octets_max)
                    # Without an end it is not complete, or its blank line is another one.
                    read = self._general(buffer, position) if end < 0 else self._message(buffer, position, end)
                    if read is None:
                        break
                    position, frame = read
                    yield frame
                    continue
                elif buffer[position] in b"\r\n":
                    position += 1  # a heart-beat
                    continue
                read = self._general(buffer, position)
                if read is None:
                    break
                position, frame = read
                yield frame
        finally:
            self._position = position

    def _message(self, buffer: bytes, position: int, end: int) -> tuple[int, Delivery | Frame] | None:
        section = buffer[position:end]
        if b"\r" in section:
            return self._general(buffer, position)
        length = _line(section, b"\ncontent-length:")
        if not length.isdigit() or len(length) > 10:
            return self._general(buffer, position)
        start = end + 2
        stop = start + int(length)
        if not self._has(buffer, stop):
            return None
        if buffer[stop]:
            raise Malformed(f"the body of MESSAGE does not end with NUL after its content-length of {int(length)}")
        ack = _line(section, b"\nack:")
        if b"\\" in ack:
            return self._general(buffer, position)
        return stop + 1, Delivery(_line(section, b"\nsubscription:"), ack, section, buffer[start:stop], stop - position)

    def _has(self, buffer: bytes, at: int) -> bool:
        """Whether the octet at `at` has come; if not, nothing is looked at before it has."""
        if at < len(buffer):
            return True
        if at > LIMITS.body_octets_max:
            raise Malformed(f"a frame is larger than {LIMITS.body_octets_max} octets")
        self._wanted = at + 1 - len(buffer)
        return False

    def _general(self, buffer: bytes, position: int) -> tuple[int, Delivery | Frame] | None:
        """Any frame, by the grammar. A RECEIPT too: as a Frame."""
        read = self._sections.read(buffer, position)
        if read is None:
            return None
        section, _, length, start = read
        stop = start + length if length >= 0 else buffer.find(b"\0", start)
        if stop < 0 or not self._has(buffer, stop):
            return None
        if buffer[stop]:
            raise Malformed(f"the body of {section.command} does not end with NUL after its content-length of {length}")
        headers, body = section.headers, buffer[start:stop]
        if section.command != "MESSAGE":
            return stop + 1, Frame(section.command, headers, body)
        # Written again as the machine keeps them: no CR, escaped as in 1.2.
        lines = "".join([header_line(name, value) for name, value in headers.items()])
        subscription, ack = headers.get("subscription", "").encode(), headers.get("ack", "")
        return stop + 1, Delivery(subscription, escape(ack, "1.2").encode(), f"MESSAGE{lines}".encode(), body, stop - position)


def _line(section: bytes, name: bytes) -> bytes:
    """The value of the first header line of this name; empty: there is none."""
    at = section.find(name)
    if at < 0:
        return b""
    start = at + len(name)
    stop = section.find(b"\n", start)
    return section[start:] if stop < 0 else section[start:stop]
