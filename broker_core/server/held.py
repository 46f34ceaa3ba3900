"""Sends that wait for disk space (R21), and what must not overtake them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from broker_core.engine.commands import Command, PeerLost, Send, Sync
from broker_core.engine.message import StoredBody

log = logging.getLogger("surety.space")

SEND_OCTETS = 512
"""What a waiting send takes beside its own octets: else a million empty messages would count as nothing."""
ORPHANS_OCTETS_MAX = 64 << 20
"""Of sends whose connection is gone. Nobody was told that they are safe, but nobody throws them away lightly; clients that come and go
without end must not fill the memory, though."""


class HeldSends:
    def __init__(self, unwanted: Callable[[int], None]) -> None:
        """`unwanted` is told the large bodies of sends that are dropped."""
        self._unwanted = unwanted
        self._commands: list[Send | Sync] = []
        self._octets: dict[int, int] = {}
        self._orphans_octets = 0

    def __len__(self) -> int:
        return len(self._commands)

    def octets(self, peer: int) -> int:
        """Of this peer's sends that wait; 0 if none does."""
        return self._octets.get(peer, 0)

    def hold(self, commands: Sequence[Command]) -> list[Command]:
        """Keep the sends, and a peer's Sync behind its sends: it answers for them (STOMP DISCONNECT). Returns what need not wait."""
        rest: list[Command] = []
        for command in commands:
            if isinstance(command, Send):
                message = command.message
                octets = len(message.header.octets) if isinstance(message.body, StoredBody) else message.size
                self._octets[command.peer] = self._octets.get(command.peer, 0) + octets + SEND_OCTETS
                self._commands.append(command)
            elif isinstance(command, Sync) and command.peer in self._octets:
                self._commands.append(command)
            else:
                if isinstance(command, PeerLost):
                    self._orphan(command.peer)
                rest.append(command)
        return rest

    def _orphan(self, peer: int) -> None:
        octets = self._octets.pop(peer, 0)
        if self._orphans_octets + octets <= ORPHANS_OCTETS_MAX:
            self._orphans_octets += octets
            return
        kept = [command for command in self._commands if command.peer != peer]
        for command in self._commands:
            if command.peer == peer and isinstance(command, Send) and isinstance(command.message.body, StoredBody):
                self._unwanted(command.message.body.body)
        log.error("There is no disk space: %d sends of a connection that ended are dropped, none was confirmed.", len(self._commands) - len(kept))
        self._commands = kept

    def release(self) -> list[Send | Sync]:
        """All of it, in order."""
        commands, self._commands, self._octets, self._orphans_octets = self._commands, [], {}, 0
        return commands
