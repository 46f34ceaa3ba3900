"""Client identifiers: each belongs to one connection at a time (JMS 6.1.2, checklist items 44 and 45). One whose connection is dead is taken over
by its account, so that a client whose network failed need not wait until that is noticed."""

from __future__ import annotations

from typing import Protocol

SHOWN_MAX = 80


class Holder(Protocol):
    async def is_alive(self) -> bool:
        """Whether its peer still answers; takes about a second."""

    async def severed(self) -> None:
        """Close at once; returns when the engine knows."""


class ClientIds:
    def __init__(self) -> None:
        self._holders: dict[str, tuple[Holder, str]] = {}

    async def claim(self, client_id: str, account: str, holder: Holder) -> str:
        """Give the identifier to this connection; a sentence for its client if it is another's. Nothing is claimed by an empty one."""
        while client_id and (known := self._holders.get(client_id)) is not None:
            other, owner = known
            if owner != account:
                return f"client identifier '{client_id[:SHOWN_MAX]}' is in use by another account"
            if await other.is_alive():
                return f"client identifier '{client_id[:SHOWN_MAX]}' is in use by another connection"
            if self._holders.get(client_id) is known:
                await other.severed()
                self.release(client_id, other)
        if client_id:
            self._holders[client_id] = holder, account
        return ""

    def release(self, client_id: str, holder: Holder) -> None:
        """Its connection is gone. Nothing if the identifier is another's by now."""
        if client_id in self._holders and self._holders[client_id][0] is holder:
            del self._holders[client_id]
