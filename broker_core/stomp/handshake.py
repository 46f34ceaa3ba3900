"""From the opened socket to CONNECTED: what was agreed, and what the client sent before it was let in."""

from __future__ import annotations

from broker_core.engine.levels import UNMAPPED

from .limits import Limits
from .login import Login, read_connect


class Handshake:
    def __init__(self, limits: Limits, server: str, now: int) -> None:
        self._limits = limits
        self._server = server
        self.deadline = now + limits.connect_ms_max
        """Instant by which CONNECT must have come."""
        self.version = "1.0"
        self.beats = (0, 0)
        """Agreed intervals of heart-beats in ms: ours, the peer's."""
        self.client_id = ""
        self.mapping = UNMAPPED
        """Of delivery modes to levels: CONNECT's; once the client is let in, with its account's where that says nothing."""
        self.early = bytearray()
        """Received between CONNECT and the verdict on it; the connection bounds it."""

    def read(self, headers: dict[str, str]) -> Login:
        """CONNECT. Raises Malformed."""
        self.version, self.beats, login = read_connect(headers, self._limits)
        self.client_id, self.mapping = login.client_id, login.mapping
        return login

    def connected(self, session: str, told: str = "") -> bytes:
        """The CONNECTED frame. `told`: the administered object that was asked for, one line of ASCII."""
        interval = self._limits.heart_beat_ms_min
        lines = ["CONNECTED", f"version:{self.version}", f"server:{self._server}", f"session:{session}"]
        if self.version != "1.0":
            lines.append(f"heart-beat:{interval},{interval}")
        if told:
            lines.append(f"administered-object:{told}")
        return ("\n".join(lines) + "\n\n\0").encode()

    def take_early(self) -> bytes:
        early, self.early = bytes(self.early), bytearray()
        return early
