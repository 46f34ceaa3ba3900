"""Sends that wait for disk space (R21), and what must not overtake them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from broker_core.engine.commands import (
    SEND_OCTETS,
    Attach,
    Begin,
    BeginBranch,
    Browse,
    Command,
    CreateTemporary,
    Detach,
    End,
    EndBranch,
    EndTemporary,
    Grant,
    ListBranches,
    Lookup,
    PeerLost,
    Send,
    Settle,
    Sync,
    Transacted,
    Unsubscribe,
    send_of,
)
from broker_core.engine.message import StoredBody

log = logging.getLogger("surety.space")

ORPHANS_OCTETS_MAX = 64 << 20
"""Of sends whose connection is gone. Nobody was told that they are safe, but nobody throws them away lightly; clients that come and go
without end must not fill the memory, though."""

Waiting = (
    Send | Sync | Begin | BeginBranch | Transacted | End | EndBranch | ListBranches | Settle | Attach | Browse | Detach | Unsubscribe | Lookup | Grant
    | CreateTemporary | EndTemporary
)  # fmt: skip


def _octets_of(command: Command) -> int:
    """Held in memory: a large body is in the store."""
    send = send_of(command)
    if send is None:
        return 0
    return len(send.message.header.octets) if isinstance(send.message.body, StoredBody) else send.message.size


class HeldSends:
    def __init__(self, unwanted: Callable[[int], None], places: Callable[[End | EndBranch], bool]) -> None:
        """`unwanted` is told the large bodies of sends that are dropped; `places` tells whether ending a transaction places messages."""
        self._unwanted = unwanted
        self._places = places
        self._commands: list[Waiting] = []
        self._behind: set[int] = set()
        """Peers whose commit waits: whatever they say after it waits, too."""
        self._octets: dict[int, int] = {}
        self._orphans_octets = 0

    def __len__(self) -> int:
        return len(self._commands)

    def octets(self, peer: int) -> int:
        """Of this peer's sends that wait; 0 if none does."""
        return self._octets.get(peer, 0)

    def hold(self, commands: Sequence[Command]) -> list[Command]:
        """Keep the sends, and a peer's Sync behind its sends: it answers for them (STOMP DISCONNECT). A commit that places messages waits as they
        do, and then all that its peer asks after it: else a later acknowledgement would overtake one within. Returns what need not wait."""
        rest: list[Command] = []
        for command in commands:
            if isinstance(command, PeerLost):
                self._orphan(command.peer)
                rest.append(command)
            elif isinstance(command, Waiting) and self._must_wait(command):
                self._octets[command.peer] = self._octets.get(command.peer, 0) + _octets_of(command) + SEND_OCTETS
                self._commands.append(command)
            else:
                rest.append(command)
        return rest

    def _must_wait(self, command: Waiting) -> bool:
        peer = command.peer
        if isinstance(command, End | EndBranch) and peer not in self._behind and self._places(command):
            self._behind.add(peer)
        return peer in self._behind or isinstance(command, Send) or (isinstance(command, Sync) and peer in self._octets)

    def _orphan(self, peer: int) -> None:
        octets = self._octets.pop(peer, 0)
        if self._orphans_octets + octets <= ORPHANS_OCTETS_MAX:
            self._orphans_octets += octets
            return
        kept = [command for command in self._commands if command.peer != peer]
        for command in self._commands:
            send = send_of(command) if command.peer == peer else None
            if send is not None and isinstance(send.message.body, StoredBody):
                self._unwanted(send.message.body.body)
        log.error("There is no disk space: %d sends of a connection that ended are dropped, none was confirmed.", len(self._commands) - len(kept))
        self._commands = kept

    def release(self) -> list[Waiting]:
        """All of it, in order."""
        commands, self._commands, self._octets, self._orphans_octets = self._commands, [], {}, 0
        self._behind.clear()
        return commands
