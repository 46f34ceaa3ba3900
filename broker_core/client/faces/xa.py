"""An XA session: less the waiting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from broker_core.client.machine import Recovered, XASessionMachine
from broker_core.client.xid import Xid

from .consumer import ConsumerFace
from .session import SessionFace

F = TypeVar("F", bound=ConsumerFace[Any])
C = TypeVar("C")
R = TypeVar("R")
X = TypeVar("X")
"""What `tpc_recover` gives back: a list of xids, or something to be awaited for it."""


class XASessionFace(SessionFace[F, C, R], Generic[F, C, R, X]):
    machine: XASessionMachine

    def _recover(self, operation: Callable[[], Recovered]) -> X:
        """Do it when there is a connection, and wait for what it finds."""
        raise NotImplementedError

    @property
    def transaction_timeout(self) -> float:
        """Seconds after which the broker rolls back a branch that is not prepared; of those that begin from now on. 0, the default: the broker's, which is
        also the most."""
        return self.machine.timeout_ms / 1000

    @transaction_timeout.setter
    def transaction_timeout(self, seconds: float) -> None:
        self.machine.set_timeout(seconds)

    @property
    def branch(self) -> Xid | None:
        """The one the session is in, from `tpc_begin` until it has its outcome."""
        return self.machine.branch

    @property
    def is_cut_off(self) -> bool:
        """Its connection is closed, or has failed for good: what is prepared is ended on another one."""
        return self.machine.connection.is_ended

    def xid(self, format_id: int, global_transaction_id: bytes | str, branch_qualifier: bytes | str = b"") -> Xid:
        """The name of a branch: a whole number, 1 to 64 octets and 0 to 64 octets. Strings stand for their UTF-8. Raises JMSException."""
        return Xid.of(format_id, global_transaction_id, branch_qualifier)

    def tpc_begin(self, xid: Xid) -> R:
        """Begin a branch: what is sent and received from now on is its work. Raises TransactionInProgressException: the session is in another one; JMSException
        with XAER_DUPID: the account has one of this xid."""
        return self._perform(lambda: self.machine.tpc_begin(xid))

    def tpc_prepare(self) -> R:
        """The first phase. When it returns, the broker will keep the branch until it is told the outcome, whoever crashes. Raises
        TransactionRolledBackException: it cannot be done, and nothing is left of it; JMSException with CONNECTION_LOST: the branch is in doubt."""
        return self._perform(self.machine.tpc_prepare)

    def tpc_commit(self, xid: Xid | None = None) -> R:
        """The second phase, of a prepared branch; without it both in one. If it raises with CONNECTION_LOST, say it again: what is done is not done twice. With
        a xid, outside of a branch: commit one that `tpc_recover` has named."""
        return self._perform(lambda: self.machine.tpc_commit(xid))

    def tpc_rollback(self, xid: Xid | None = None) -> R:
        """Nothing that was sent is; what was received is delivered again. Prepared or not, and also when `tpc_prepare` has raised with CONNECTION_LOST. With a
        xid, outside of a branch: roll back one that `tpc_recover` has named."""
        return self._perform(lambda: self.machine.tpc_rollback(xid))

    def tpc_recover(self) -> X:
        """The branches of this account that wait for their outcome, whoever prepared them, and those whose outcome an administrator gave by hand: `state` of
        each xid says which."""
        return self._recover(self.machine.tpc_recover)

    def tpc_forget(self, xid: Xid) -> R:
        """The outcome that an administrator gave this branch by hand is noted: the broker may forget it."""
        return self._perform(lambda: self.machine.tpc_forget(xid))
