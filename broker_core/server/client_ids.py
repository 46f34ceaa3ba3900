"""Client identifiers: each belongs to one connection at a time (JMS 6.1.2, checklist items 44 and 45), or to several of one account that all say that
they share it (Open MQ's imqEnableSharedClientID). One whose connection is dead is taken over by its account, so that a client whose network failed need
not wait until that is noticed."""

from __future__ import annotations

from typing import Protocol

SHOWN_MAX = 80


class Holder(Protocol):
    async def is_alive(self) -> bool:
        """Whether its peer still answers; takes about a second."""

    async def severed(self) -> None:
        """Close at once; returns when the engine knows."""


class Claim:
    """Who has an identifier."""

    __slots__ = ("account", "holders", "shared")

    def __init__(self, account: str, holder: Holder, shared: bool) -> None:
        self.account = account
        self.shared = shared
        self.holders = {holder: None}
        """One, unless it is shared."""


class ClientIds:
    def __init__(self) -> None:
        self._claims: dict[str, Claim] = {}

    async def claim(self, client_id: str, account: str, holder: Holder, shared: bool = False) -> str:
        """Give the identifier to this connection; a sentence for its client if it is another's. Nothing is claimed by an empty one."""
        while client_id and (known := self._claims.get(client_id)) is not None:
            taken = f"client identifier '{client_id[:SHOWN_MAX]}' is in use by"
            if known.account != account:
                return f"{taken} another account"
            if known.shared and shared:
                known.holders[holder] = None
                return ""
            if known.shared:
                return f"{taken} connections that share it: share it too, with client-id-shared:true, or choose another one"
            (other,) = known.holders
            if await other.is_alive():
                return f"{taken} another connection" + (", which does not share it" if shared else "")
            if self._claims.get(client_id) is known:
                await other.severed()
                self.release(client_id, other)
        if client_id:
            self._claims[client_id] = Claim(account, holder, shared)
        return ""

    def release(self, client_id: str, holder: Holder) -> None:
        """Its connection is gone. Nothing if the identifier is another's by now."""
        claim = self._claims.get(client_id)
        if claim is not None and holder in claim.holders:
            del claim.holders[holder]
            if not claim.holders:
                del self._claims[client_id]
