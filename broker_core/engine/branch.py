"""Branches of distributed transactions (X/Open XA): a transaction that its transaction manager names, and can prepare."""

from __future__ import annotations

from collections import Counter
from enum import IntEnum

from .link import Transaction


class State(IntEnum):
    """Of a branch. Those from PREPARED on are stored, by these numbers."""

    ACTIVE = 0
    SUSPENDED = 1
    """Ended for now, to be resumed."""
    ENDED = 2
    FAILED = 3
    """Ended by its application as failed: it can only be rolled back."""
    PREPARED = 4
    HEURISTICALLY_COMMITTED = 5
    """By an administrator's hand; remembered until somebody forgets it."""
    HEURISTICALLY_ROLLED_BACK = 6


class Branch(Transaction):
    """While it is not prepared it belongs to the connection that began it, and ends with that."""

    __slots__ = ("account", "held_octets", "name", "number", "peer", "prepared_at", "state", "xid")

    def __init__(self, xid: str, account: str, peer: int, name: bytes, ends_at: int) -> None:
        super().__init__(ends_at)
        self.xid = xid
        self.account = account
        """Whose it is: nobody else can end it, but an administrator."""
        self.peer = peer
        """Who began it; 0: it is prepared and nobody's."""
        self.name = name
        """What the peer calls it in the frames of its work."""
        self.state = State.ACTIVE
        self.number = 0
        """Of its row, once it is prepared; no other branch ever has it."""
        self.held_octets = 0
        """What a prepared one keeps in memory."""
        self.prepared_at = 0

    @property
    def key(self) -> tuple[str, str]:
        return self.account, self.xid


class Branches:
    """All of a shard."""

    __slots__ = ("account_octets", "accounts", "known", "numbered", "octets")

    def __init__(self) -> None:
        self.known: dict[tuple[str, str], Branch] = {}
        """By account and xid: those of two accounts have nothing to do with each other."""
        self.numbered: dict[int, Branch] = {}
        """Those that have rows, prepared or heuristically ended, in the order of their numbers."""
        self.octets = 0
        """That prepared ones keep in memory."""
        self.accounts: Counter[str] = Counter()
        """How many in `numbered` each account has."""
        self.account_octets: Counter[str] = Counter()

    def keep(self, branch: Branch) -> None:
        """It has a row from now on."""
        self.known[branch.key] = self.numbered[branch.number] = branch
        self.accounts[branch.account] += 1
        self._count(branch, branch.held_octets)

    def ease(self, branch: Branch) -> None:
        """It is ended; what it kept in memory is over."""
        self._count(branch, -branch.held_octets)
        branch.held_octets = 0

    def forget(self, branch: Branch) -> None:
        """Nothing of it is left."""
        del self.known[branch.key]
        if self.numbered.pop(branch.number, None) is not None:
            self.ease(branch)
            self.accounts[branch.account] -= 1
            if not self.accounts[branch.account]:
                del self.accounts[branch.account], self.account_octets[branch.account]

    @property
    def prepared(self) -> int:
        """That wait for their outcome."""
        return sum([branch.state is State.PREPARED for branch in self.numbered.values()])

    def _count(self, branch: Branch, octets: int) -> None:
        self.octets += octets
        self.account_octets[branch.account] += octets
