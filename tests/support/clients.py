"""A STOMP client of our own over a plain socket: what a test wants to say, octet for octet, and what came back. Blocking."""

from __future__ import annotations

import contextlib
import random
import select
import socket
import struct
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Self

RECEIVE_OCTETS = 1 << 18
BACK_OFF_SECONDS = 0.05
BACK_OFF_SECONDS_MAX = 1.0

_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", ":": "\\c"}
_MEANINGS = {"\\\\": "\\", "\\n": "\n", "\\r": "\r", "\\c": ":"}


class ConnectionLost(Exception):
    """The broker is gone or closed the connection; what was not confirmed is in doubt."""


class ErrorReceived(ConnectionLost):
    """The broker sent an ERROR frame; it closes the connection after it (STOMP 1.2, ERROR)."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        super().__init__(f"ERROR {frame.headers} {frame.body[:500]!r}")


@dataclass(slots=True)
class Frame:
    command: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


def encode(command: str, headers: Mapping[str, str] | Iterable[tuple[str, str]] = (), body: bytes = b"") -> bytes:
    """A frame's octets; header names and values escaped, except in CONNECT (STOMP 1.2, Value Encoding)."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    escaped = (lambda text: text) if command in ("CONNECT", "CONNECTED") else _escape
    lines = [command, *(f"{escaped(name)}:{escaped(value)}" for name, value in pairs)]
    if body:
        lines.append(f"content-length:{len(body)}")
    return "\n".join(lines).encode() + b"\n\n" + body + b"\0"


def _escape(text: str) -> str:
    return "".join(_ESCAPES.get(character, character) for character in text)


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    parts, at = [], 0
    while at < len(text):
        pair = text[at : at + 2]
        parts.append(_MEANINGS[pair] if text[at] == "\\" else text[at])
        at += 2 if text[at] == "\\" else 1
    return "".join(parts)


class FrameReader:
    """Octets in, frames out. Ends of line between frames are heart-beats and only counted."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self.heart_beats = 0

    def feed(self, octets: bytes) -> list[Frame]:
        self._buffer += octets
        frames = []
        while (frame := self._next()) is not None:
            frames.append(frame)
        return frames

    def _next(self) -> Frame | None:
        buffer = self._buffer
        start = 0
        while start < len(buffer) and buffer[start] in b"\r\n":
            start += 1
        self.heart_beats += buffer.count(b"\n", 0, start)
        del buffer[:start]
        end = buffer.find(b"\n\n")
        crlf = buffer.find(b"\r\n\r\n")
        width = 2
        if crlf >= 0 and (end < 0 or crlf < end):
            end, width = crlf, 4
        if end < 0:
            return None
        command, *lines = buffer[:end].decode().replace("\r\n", "\n").split("\n")
        headers: dict[str, str] = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers.setdefault(_unescape(name), value if command == "CONNECTED" else _unescape(value))  # the first entry counts
        body_at = end + width
        length = int(headers["content-length"]) if "content-length" in headers else buffer.find(b"\0", body_at) - body_at
        if length < 0 or len(buffer) <= body_at + length:
            return None
        assert buffer[body_at + length] == 0, f"no NUL after the body of {command} {headers}"
        frame = Frame(command, headers, bytes(buffer[body_at : body_at + length]))
        del buffer[: body_at + length + 1]
        return frame


class Connection:
    """A logged-in STOMP connection. Every failure of the broker shows as ConnectionLost, an ERROR frame as ErrorReceived."""

    def __init__(
        self,
        port: int,
        *,
        host: str = "127.0.0.1",
        login: str = "guest",
        passcode: str = "guest",
        versions: str = "1.2",
        heart_beat: str = "0,0",
        headers: Mapping[str, str] | None = None,
        timeout: float = 10,
    ) -> None:
        self._reader = FrameReader()
        self._frames: deque[Frame] = deque()
        self._receipts = 0
        self.socket = open_socket(port, timeout, host)
        login_headers = {"accept-version": versions, "host": "/", "login": login, "passcode": passcode, "heart-beat": heart_beat}
        try:
            self.command("CONNECT", login_headers | dict(headers or {}))
            self.connected = self.expect("CONNECTED", timeout)
        except BaseException:
            self.socket.close()
            raise

    # -- out ------------------------------------------------------------------------------------------------------------------------
    def raw(self, octets: bytes) -> None:
        try:
            self.socket.sendall(octets)
        except OSError as error:
            raise ConnectionLost(f"while sending: {error}") from error

    def command(self, command: str, headers: Mapping[str, str] | Iterable[tuple[str, str]] = (), body: bytes = b"") -> None:
        self.raw(encode(command, headers, body))

    def send(self, destination: str, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        """A persistent message, not waiting for anything."""
        self.command("SEND", {"destination": destination, "persistent": "true"} | dict(headers or {}), body)

    def subscribe(self, destination: str, *, link: str = "0", ack: str = "client-individual", prefetch: int = 100) -> None:
        self.confirmed("SUBSCRIBE", {"id": link, "destination": destination, "ack": ack, "prefetch-count": str(prefetch)})

    def confirmed(self, command: str, headers: Mapping[str, str], body: bytes = b"", timeout: float = 15) -> None:
        """Send a command with a receipt and wait for it; MESSAGE frames that come first are kept for receive()."""
        self._receipts += 1
        receipt = f"confirmed-{self._receipts}"
        self.command(command, dict(headers) | {"receipt": receipt}, body)
        deadline = time.monotonic() + timeout
        kept: list[Frame] = []
        while True:
            frame = self.receive(deadline - time.monotonic())
            if frame is None:
                raise ConnectionLost(f"no receipt for {command} {dict(headers)} within {timeout} s")
            if frame.command == "RECEIPT" and frame.headers["receipt-id"] == receipt:
                self._frames.extendleft(reversed(kept))
                return
            kept.append(frame)

    # -- in -------------------------------------------------------------------------------------------------------------------------
    def receive(self, timeout: float) -> Frame | None:
        """The next frame; None when `timeout` seconds brought none."""
        deadline = time.monotonic() + timeout
        while not self._frames:
            if not select.select([self.socket], [], [], max(0.0, deadline - time.monotonic()))[0]:
                return None
            try:
                octets = self.socket.recv(RECEIVE_OCTETS)
            except OSError as error:
                raise ConnectionLost(f"while receiving: {error}") from error
            if not octets:
                raise ConnectionLost("closed by the broker")
            self._frames += self._reader.feed(octets)
        frame = self._frames.popleft()
        if frame.command == "ERROR":
            raise ErrorReceived(frame)
        return frame

    def receive_all(self, quiet: float, seconds_max: float = 60) -> list[Frame]:
        """Every frame until none came for `quiet` seconds."""
        deadline = time.monotonic() + seconds_max
        frames: list[Frame] = []
        while time.monotonic() < deadline and (frame := self.receive(quiet)) is not None:
            frames.append(frame)
        return frames

    def expect(self, command: str, timeout: float = 10) -> Frame:
        frame = self.receive(timeout)
        if frame is None or frame.command != command:
            raise ConnectionLost(f"expected {command} within {timeout} s, got {frame}")
        return frame

    def expect_closed(self, timeout: float = 10) -> None:
        """The broker closes, perhaps after frames still under way; ConnectionLost if it does not."""
        deadline = time.monotonic() + timeout
        with contextlib.suppress(ConnectionLost):
            while self.receive(max(0.0, deadline - time.monotonic())) is not None:
                pass
            raise TimeoutError(f"the connection is still open after {timeout} s")

    @property
    def heart_beats(self) -> int:
        """Ends of line received between frames so far."""
        return self._reader.heart_beats

    # -- the end --------------------------------------------------------------------------------------------------------------------
    def disconnect(self) -> None:
        """Gracefully: the broker has done everything asked before (STOMP 1.2, DISCONNECT)."""
        self.confirmed("DISCONNECT", {})
        self.close()

    def close(self) -> None:
        self.socket.close()

    def reset(self) -> None:
        """End as a crash ends: RST instead of FIN, whatever is under way is thrown away."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_socket(port: int, timeout: float = 10, host: str = "127.0.0.1") -> socket.socket:
    try:
        opened = socket.create_connection((host, port), timeout)
    except OSError as error:
        raise ConnectionLost(f"while connecting: {error}") from error
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return opened


def back_off(seconds_max: float) -> Iterator[int]:
    """Numbers of attempts, with growing, jittered pauses between them, for at most `seconds_max` seconds."""
    deadline = time.monotonic() + seconds_max
    attempt = 0
    while attempt == 0 or time.monotonic() < deadline:
        yield attempt
        pause = min(BACK_OFF_SECONDS_MAX, BACK_OFF_SECONDS * 2**attempt)
        time.sleep(pause * random.uniform(0.5, 1))
        attempt += 1


def reconnect(port: int, seconds_max: float = 60, **options: object) -> Connection:
    """A connection as soon as the broker gives one."""
    lost: ConnectionLost | None = None
    for _ in back_off(seconds_max):
        try:
            return Connection(port, **options)  # type: ignore[arg-type]
        except ConnectionLost as error:
            lost = error
    raise ConnectionLost(f"no connection within {seconds_max} s: {lost}")
