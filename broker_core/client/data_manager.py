"""Messages in the transactions of the package `transaction` (Zope's), which commits them together with what else takes part. It must be installed; nothing else
of the client runtime needs it.

    session = connection.create_xa_session()
    XADataManager(session)
    with transaction.manager:
        session.create_producer(Queue("orders")).send("an order")  # when the other resources commit, too
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any

import transaction
from transaction.interfaces import IDataManager
from zope.interface import implementer

from .exceptions import ACK_TIMEOUT, CONNECTION_LOST, JMSException
from .xa import XASession
from .xid import Xid

log = logging.getLogger("surety.client")

FORMAT_ID = 0x5A4F
"""Of branches that are named here."""


def new_xid() -> Xid:
    """One that nobody else has."""
    return Xid(FORMAT_ID, os.urandom(16))


@implementer(IDataManager)
class XADataManager:
    """Joins an XA session to the transactions of `transaction_manager`, each as soon as the session sends or receives something within it. The session is
    then not to be used otherwise, and by one thread at a time, as its manager is.

    It prepares when the manager votes, so that what cannot be done raises there, and all take it back. `sort_key` decides when: those that come later in the
    alphabet vote later. `make_xid` names each branch; a coordinator that keeps a log of its decisions gives names that he finds again.
    """

    def __init__(
        self, session: XASession, transaction_manager: Any = transaction.manager, *, sort_key: str = "surety", make_xid: Callable[[], Xid] = new_xid
    ) -> None:
        self.session = session
        self.transaction_manager = transaction_manager
        self._sort_key = f"{sort_key}:{id(self)}"
        self._make_xid = make_xid
        session.machine.joining = self._join

    def _join(self) -> Xid:
        """Work begins: in this transaction."""
        xid = self._make_xid()
        self.transaction_manager.get().join(self)
        return xid

    def sortKey(self) -> str:  # noqa: N802  # the interface's name
        """In which order managers are asked to vote."""
        return self._sort_key

    # -- what the transaction says, in its order ----------------------------------------------------------------------------------------
    def abort(self, transaction: Any) -> None:
        """Before anything is prepared."""
        self._roll_back()

    def tpc_begin(self, transaction: Any) -> None:
        """Nothing: the branch began with its work."""

    def commit(self, transaction: Any) -> None:
        """Nothing: the broker has been told everything."""

    def tpc_vote(self, transaction: Any) -> None:
        """Prepare. Raises JMSException: it cannot be done."""
        self.session.tpc_prepare()

    def tpc_finish(self, transaction: Any) -> None:
        """Commit, as often as the connection is made again. Raises JMSException if it is not: the branch is to be committed by its xid then."""
        xid = self.session.branch
        try:
            self._end(self.session.tpc_commit)
        except JMSException:
            log.critical("The branch %s is decided, and its commit is in doubt: say tpc_commit(xid) if tpc_recover() names it", xid)
            raise

    def tpc_abort(self, transaction: Any) -> None:
        """Whatever was done so far. If the broker cannot be told, it rolls back by itself what is not prepared."""
        self._roll_back()

    def _roll_back(self) -> None:
        xid = self.session.branch
        try:
            self._end(self.session.tpc_rollback)
        except JMSException as error:
            if not self.session.is_cut_off:
                raise
            log.warning("The branch %s may be prepared still: say tpc_rollback(xid) if tpc_recover() names it: %s", xid, error)

    def _end(self, call: Callable[[], None]) -> None:
        """Say it until there is an answer: so the session is free for the next transaction."""
        while self.session.branch is not None:
            try:
                call()
            except JMSException as error:
                if error.error_code not in (CONNECTION_LOST, ACK_TIMEOUT) or self.session.is_cut_off:
                    raise
