"""Who is connected under which account, so that an account that is disabled, deleted or given another password takes its connections along."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Shut(Protocol):
    def shut(self, sentence: str) -> None:
        """Say why, and close when that is read."""


class Sessions:
    def __init__(self) -> None:
        self._peers: dict[str, dict[Shut, object]] = {}
        """In order of their logins, with the password that each has shown."""

    def begin(self, peer: Shut, account: str, password: object = None) -> None:
        """The peer's login is right. `password`: by which it is to be known what it has shown (see `shut`)."""
        self._peers.setdefault(account, {})[peer] = password

    def end(self, peer: Shut, account: str) -> None:
        """The peer is gone. Nothing if it never logged in."""
        peers = self._peers.get(account, {})
        peers.pop(peer, None)
        if not peers:
            self._peers.pop(account, None)

    def accounts(self) -> list[str]:
        """Accounts that have connections."""
        return list(self._peers)

    def count(self, account: str) -> int:
        """Connections of the account."""
        return len(self._peers.get(account, ()))

    def shut(self, account: str, sentence: str, valid: Sequence[object] = ()) -> int:
        """End every connection of the account with an ERROR, but those that have shown a password that is valid; how many those were."""
        peers = self._peers.get(account, {})
        ended = [peer for peer, password in peers.items() if password not in valid]
        for peer in ended:
            self.end(peer, account)
            peer.shut(sentence)
        return len(ended)
