"""Frames from octets and to octets, for either end of a connection (transport 2.2 and 2.3, security 5.3.1). Knows the grammar and its bounds, not what
performatives mean.

`Reader.receive(data)` is a generator over one chunk as received. It gives protocol headers and frames in their order; whoever reads decides whether a
protocol header has a place there: what begins with AMQP cannot be a frame, for its size would be beyond a gigabyte. Empty frames say that the peer is
alive, and are not given. Closing the generator keeps what it has not looked at.

What is kept between chunks is a frame under way; it is looked at again when it is complete. `payload` is cut out of it.

The peer's mistakes raise Malformed; the reader must not be used after that.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct

from .composite import read_composite, write_composite
from .per_message import READ, WRITE, Found
from .performatives import (
    Attach, Begin, Close, Detach, Disposition, End, Flow, Open, Performative, SaslChallenge, SaslInit, SaslMechanisms, SaslOutcome, SaslPerformative,
    SaslResponse, Transfer,
)  # fmt: skip
from .types import Malformed

AMQP, TLS, SASL = 0, 2, 3
"""Protocols that a protocol header asks for."""
AMQP_HEADER, SASL_HEADER = b"AMQP\0\1\0\0", b"AMQP\3\1\0\0"
FRAMING_ERROR = "amqp:connection:framing-error"
FRAME_OCTETS_MIN = 512
"""Every peer takes frames as large as this."""
EMPTY_FRAME = b"\0\0\0\x08\x02\0\0\0"
"""Says that we are alive."""

_AMQP_FRAME, _SASL_FRAME = 0, 1
_HEAD = Struct(">IBBH")
HEAD_OCTETS = _HEAD.size
OCTETS_A_MICROSECOND = 4
"""Of a performative that is read by the table: a value of two octets takes half of one."""
_USUAL, USUAL_OCTETS, USUAL_FORM = Struct(">IHH3s").unpack_from, 11, 0x0200
"""The head of a frame of AMQP that has nothing more in it, and the descriptor behind it."""
_U32 = Struct(">I").unpack_from
_MAY_STAND: dict[int, frozenset[type]] = {
    _AMQP_FRAME: frozenset((Open, Begin, Attach, Flow, Transfer, Disposition, Detach, End, Close)),
    _SASL_FRAME: frozenset((SaslMechanisms, SaslInit, SaslChallenge, SaslResponse, SaslOutcome)),
}


@dataclass(slots=True)
class ProtocolHeader:
    protocol: int
    """AMQP, TLS, SASL, or what else the peer has said."""
    version: tuple[int, int, int]


@dataclass(slots=True)
class Frame:
    channel: int
    """0 in frames of SASL."""
    performative: Performative | SaslPerformative
    payload: bytes = b""
    """What follows the performative: of a transfer, part of a message."""


class Reader:
    """Incremental."""

    def __init__(self, max_frame_size: int) -> None:
        self.max_frame_size = max_frame_size
        """Octets; what the peer was told."""
        self.exhausted = True
        """All that was received has been looked at: nobody closed the generator before its end."""
        self.effort = 0
        """Microseconds, about, that performatives took which are read by the table; whoever bounds it sets it back."""
        self._kept = bytearray()
        self._wanted = 0
        """Octets of the frame under way, as far as is known."""
        self._greeted = False

    @property
    def kept_octets(self) -> int:
        """What is held of a frame that has not ended yet."""
        return len(self._kept)

    def discard(self) -> None:
        """Forget everything held; the reader is not used any more."""
        self._kept = bytearray()

    def receive(self, data: bytes) -> Iterator[Frame | ProtocolHeader]:
        """What `data` completes. Raises Malformed."""
        octets, behind = data, 0
        if self._kept:
            behind = self._wanted - len(self._kept)
            if behind > len(data):
                self._kept += data
                self.exhausted = True
                return
            if self._wanted <= HEAD_OCTETS:  # nothing is known of it
                octets = data = bytes(self._kept) + data
            else:  # that frame alone is put together
                octets = bytes(self._kept) + data[:behind]
            self._kept = bytearray()
        self.exhausted = False
        at, size, most = 0, len(octets), self.max_frame_size
        self._wanted = HEAD_OCTETS
        try:
            while True:
                if size - at > USUAL_OCTETS:
                    count, form, channel, descriptor = _USUAL(octets, at)
                    stop = at + count
                    is_usual = form == USUAL_FORM and descriptor in READ and USUAL_OCTETS < count <= most and stop <= size and self._greeted
                    if is_usual and (found := _read_usual(octets, descriptor, at + USUAL_OCTETS, stop)) is not None:
                        at = stop
                        yield Frame(channel, found[0], octets[found[1] : stop])
                        continue
                if size - at >= HEAD_OCTETS and (stop := self._whole(octets, at, size)):
                    start, at = at, stop
                    if (each := self._any(octets, start, stop)) is not None:
                        yield each
                elif octets is data:
                    break
                else:
                    octets, at, size = data, behind, len(data)
            self.exhausted = True
        finally:
            if at < size:
                self._kept += memoryview(octets)[at:]
            if octets is not data:
                self._kept += memoryview(data)[behind:]
        if not self._greeted and not b"AMQP".startswith(data[at : at + 4]):
            raise _no_protocol_header()

    def _whole(self, octets: bytes, at: int, size: int) -> int:
        """Where the frame or the protocol header ends that begins there; 0: it has not ended."""
        (count,) = _U32(octets, at)
        if not HEAD_OCTETS <= count <= self.max_frame_size or not self._greeted:
            return at + HEAD_OCTETS
        if at + count > size:
            self._wanted = count
            return 0
        return int(at + count)

    def _any(self, data: bytes, at: int, stop: int) -> Frame | ProtocolHeader | None:
        """The frame or the protocol header. None: it is an empty frame. Raises Malformed."""
        octets, offset, kind, channel = _HEAD.unpack_from(data, at)
        if at + octets != stop or not self._greeted:
            return self._protocol_header(data, at, octets)
        start = at + 4 * offset
        if start == stop and offset >= 2 and kind == _AMQP_FRAME:
            return None
        if start >= stop or offset < 2:
            raise Malformed("a frame has no place for what its head says", FRAMING_ERROR)
        if kind not in (_AMQP_FRAME, _SASL_FRAME):
            raise Malformed(f"a frame is of type {kind}", FRAMING_ERROR)
        found = _any_frame(data, start, stop, kind, channel if kind == _AMQP_FRAME else 0)
        self.effort += (stop - start - len(found.payload)) // OCTETS_A_MICROSECOND
        return found

    def _protocol_header(self, data: bytes, at: int, octets: int) -> ProtocolHeader:
        if data.startswith(b"AMQP", at):
            self._greeted = True
            return ProtocolHeader(data[at + 4], (data[at + 5], data[at + 6], data[at + 7]))
        if not self._greeted:
            raise _no_protocol_header()
        raise Malformed(f"a frame of {octets} octets; there must be at least 8, and at most {self.max_frame_size} are allowed", FRAMING_ERROR)


def _no_protocol_header() -> Malformed:
    return Malformed("the connection does not begin with a protocol header of AMQP", FRAMING_ERROR)


def _read_usual(octets: bytes, descriptor: bytes, at: int, stop: int) -> Found | None:
    """None: it is left to the table, which says what is wrong if something is."""
    try:
        return READ[descriptor](octets, at, stop)
    except (IndexError, struct.error):
        return None


def _any_frame(data: bytes, start: int, stop: int, kind: int, channel: int) -> Frame:
    performative, at = read_composite(data, start, stop)
    said: type = performative.__class__
    if said not in _MAY_STAND[kind]:
        raise Malformed(f"{said.__name__} is no performative of {'SASL' if kind == _SASL_FRAME else 'AMQP'}")
    if at < stop and said is not Transfer:
        raise Malformed(f"something follows {said.__name__} in its frame", FRAMING_ERROR)
    return Frame(channel, performative, data[at:stop])


# -- writing --------------------------------------------------------------------------------------------------------------------------
def frame(channel: int, performative: Performative, *payload: bytes) -> bytes:
    """One frame, its payload joined from pieces; its size is the caller's matter. Raises ValueError if a field cannot be said."""
    said = WRITE.get(performative.__class__, write_composite)(performative)
    if not payload:
        return _HEAD.pack(8 + len(said), 2, _AMQP_FRAME, channel) + said
    octets = sum(map(len, payload))
    return b"".join((_HEAD.pack(8 + len(said) + octets, 2, _AMQP_FRAME, channel), said, *payload))


def sasl_frame(performative: SaslPerformative) -> bytes:
    said = write_composite(performative)
    return _HEAD.pack(8 + len(said), 2, _SASL_FRAME, 0) + said
