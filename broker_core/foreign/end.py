"""One of a carrier's two connections: the handshake, heart-beats, frames from octets. It knows nothing of the other one."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field

from broker_core.stomp.escaping import header_line
from broker_core.stomp.frames import Event, Parser, serialise
from broker_core.stomp.heartbeat import HeartBeat
from broker_core.stomp.limits import Limits
from broker_core.stomp.sections import SERVER_COMMANDS, Section

PART_OCTETS = 64 << 10
LIMITS = Limits(
    header_octets_max=256 << 10, headers_max=1024, line_octets_max=64 << 10, body_octets_max=1 << 30, large_body_octets=PART_OCTETS, part_octets_max=PART_OCTETS
)
"""Wider than what this broker takes, as it is the one that says precisely what it does not take. Bodies above 64 KiB pass through in parts."""
CONNECT_MS_MAX = 10_000
"""From the opened socket to CONNECTED."""
VERSION = "1.2"


@dataclass(slots=True, frozen=True)
class Access:
    """How to log in to a broker, and what to call it in a sentence."""

    broker: str
    login: str = ""
    passcode: str = field(default="", repr=False)
    virtual_host: str = "/"
    heart_beat_ms: int = 0
    kind: str = ""
    """See definition.KINDS."""


class Ended(Exception):
    """The connection is of no more use; the argument is a sentence."""


class End:
    def __init__(self, access: Access, now: int) -> None:
        self.access = access
        self.is_open = False
        self.amid_frame = False
        """What was written last is the beginning of a frame."""
        self.idle = False
        """The driver does not read from it, so its silence is not its own."""
        self._deadline = now + CONNECT_MS_MAX
        self._parser = Parser(LIMITS, SERVER_COMMANDS)
        self._heart = HeartBeat(0, 0, now)
        self._out: list[bytes] = []
        beat = access.heart_beat_ms
        headers = [("accept-version", VERSION), ("host", access.virtual_host), ("heart-beat", f"{beat},{beat}")]
        if access.login:
            headers += [("login", access.login), ("passcode", access.passcode)]
        self._out.append(serialise("CONNECT", headers))

    # -- out ----------------------------------------------------------------------------------------------------------------------------
    def write(self, command: str, headers: list[tuple[str, str]], body: bytes = b"") -> None:
        self.begin(command, headers)
        self._out.append(body)
        self.finish()

    def begin(self, command: str, headers: list[tuple[str, str]]) -> None:
        """A frame whose body follows in parts."""
        lines = [command, *(header_line(name, value, VERSION) for name, value in headers)]
        self._out.append(("\n".join(lines) + "\n\n").encode())
        self.amid_frame = True

    def go_on(self, part: bytes) -> None:
        self._out.append(part)

    def finish(self) -> None:
        self._out.append(b"\0")
        self.amid_frame = False

    def take(self, now: int) -> bytes:
        """What is to be written now; not given twice."""
        out = b"".join(self._out)
        if out:
            self._out.clear()
            self._heart.sent_at = now
        return out

    # -- in -----------------------------------------------------------------------------------------------------------------------------
    def events(self, data: bytes, now: int) -> Generator[Event, None, None]:
        """What has come; whoever leaves off early asks again with nothing. Raises Malformed."""
        self._heart.received_at = now
        return self._parser.events(data)

    @property
    def exhausted(self) -> bool:
        """All that came has been looked at."""
        return self._parser.exhausted

    @property
    def part_of(self) -> Section:
        """The frame of whose body a part was just given."""
        assert self._parser.part_of is not None
        return self._parser.part_of

    @property
    def kept_octets(self) -> int:
        """Octets received and held."""
        return self._parser.kept_octets

    def connected(self, headers: dict[str, str], now: int) -> None:
        """The broker has let us in. Raises Ended."""
        if headers.get("version") != VERSION:
            raise Ended(f"{self.access.broker} speaks STOMP {headers.get('version', '1.0')}, not {VERSION}")
        self.is_open = True
        self._parser.version = VERSION
        ours = self.access.heart_beat_ms
        sends, wants = _beats(headers.get("heart-beat", "0,0"))
        self._heart = HeartBeat(max(ours, wants) if ours and wants else 0, max(ours, sends) if ours and sends else 0, now)

    # -- time ---------------------------------------------------------------------------------------------------------------------------
    def tick(self, now: int, *, excused: bool = False) -> None:
        """`excused`: nothing of it is looked at now. Raises Ended."""
        if not self.is_open:
            if now >= self._deadline:
                raise Ended(f"{self.access.broker} did not answer CONNECT within {CONNECT_MS_MAX} ms")
            return
        if self.idle or excused:
            self._heart.received_at = now
        if self._heart.is_silent(now):
            raise Ended(f"{self.access.broker} has sent neither a heart-beat nor a frame for {self._heart.silence_ms} ms")
        if self._heart.send_due(now) and not self.amid_frame:
            self._out.append(b"\n")

    def next_deadline(self) -> int | None:
        return self._heart.next_deadline() if self.is_open else self._deadline


def _beats(value: str) -> tuple[int, int]:
    """What the broker can do, and wants. What is no pair of numbers is none."""
    sends, _, wants = value.partition(",")
    if not (sends.isascii() and sends.isdigit() and wants.isascii() and wants.isdigit() and len(value) < 20):
        return 0, 0
    return int(sends), int(wants)
