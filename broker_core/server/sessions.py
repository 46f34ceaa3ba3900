"""Who is connected under which account, so that an account that is disabled, deleted or given another password takes its connections along."""

from __future__ import annotations

from typing import Protocol


class Shut(Protocol):
    def shut(self, sentence: str) -> None:
        """Say why, and close when that is read."""


class Sessions:
    def __init__(self) -> None:
        self._peers: dict[str, dict[Shut, None]] = {}
        """In order of their logins."""

    def begin(self, peer: Shut, account: str) -> None:
        """The peer's login is right."""
        self._peers.setdefault(account, {})[peer] = None

    def end(self, peer: Shut, account: str) -> None:
        """The peer is gone. Nothing if it never logged in."""
        peers = self._peers.get(account, {})
        peers.pop(peer, None)
        if not peers:
            self._peers.pop(account, None)

    def accounts(self) -> list[str]:
        """Accounts that have connections."""
        return list(self._peers)

    def shut(self, account: str, sentence: str) -> int:
        """End every connection of the account with an ERROR; how many those were."""
        peers = list(self._peers.pop(account, {}))
        for peer in peers:
            peer.shut(sentence)
        return len(peers)
