"""An XA session: branches of distributed transactions, begun, prepared and ended as a transaction manager wants it (PEP 249's two-phase commit over the
broker's frames; checklist items 63 to 66).

| stage | how it is left |
|---|---|
| OUTSIDE | `tpc_begin`; or by work, if somebody joins the session to his transactions |
| ACTIVE | `tpc_prepare`, `tpc_commit` (in one phase), `tpc_rollback`; LOST with its connection, as the broker rolls it back then |
| LOST | `tpc_rollback`; what would commit it raises, and leaves it too |
| PREPARING | by the answer: PREPARED, or OUTSIDE if it is refused; IN_DOUBT if none comes any more; `tpc_rollback` does not wait for it |
| PREPARED | `tpc_commit`, `tpc_rollback`: on any connection, so it outlives this one |
| ENDING | by the answer; IN_DOUBT if none comes any more |
| IN_DOUBT | the call that had no answer once more, or `tpc_rollback` if that was `tpc_prepare`: the broker is asked whether it has the branch |

Only what was PREPARING, or was prepared, is ever IN_DOUBT. A prepared branch goes by its outcome alone, so that one that the broker does not have any more
has the outcome that was asked for. One that was PREPARING and is not there was rolled back.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING

from broker_core.client.exceptions import (
    CONNECTION_LOST,
    IllegalStateException,
    JMSException,
    TransactionInProgressException,
    TransactionRolledBackException,
)
from broker_core.client.messages import Message
from broker_core.client.settings import AcknowledgeMode
from broker_core.client.xid import BranchState, Xid, check_xid
from broker_core.engine.refusal import Refusal
from broker_core.stomp.branches import TIMEOUT_MS_MAX

from .confirmation import Confirmation
from .consumer import ConsumerMachine, Subscription
from .refused import refused_as
from .session import SessionMachine

if TYPE_CHECKING:
    from .connection import ConnectionMachine

HEURISTIC = {BranchState.HEURISTICALLY_COMMITTED: Refusal.XA_HEURCOM, BranchState.HEURISTICALLY_ROLLED_BACK: Refusal.XA_HEURRB}
UNPREPARED = "the branch is rolled back"
OF_PREPARE = "the branch is rolled back, or it is prepared: say tpc_rollback(), or end it by its xid if tpc_recover() names it"
OF_ONE = "the branch may or may not have been committed, and nobody can tell: prepare it first where that matters"
OF_OUTCOME = "the branch is ended, or it is still prepared: say {call}() again, or end it by its xid if tpc_recover() names it"


class Stage(Enum):
    OUTSIDE = "the session is in no branch"
    ACTIVE = "the branch is worked on"
    LOST = "the branch was lost with its connection"
    PREPARING = "the branch is being prepared"
    PREPARED = "the branch is prepared"
    ENDING = "the branch is being ended"
    IN_DOUBT = "the branch is in doubt"


class Recovered:
    """What `tpc_recover` finds: there when its confirmation is settled."""

    def __init__(self, confirmation: Confirmation) -> None:
        self.confirmation = confirmation
        self.xids: list[Xid] = []


class XAConsumerMachine(ConsumerMachine):
    session: XASessionMachine

    def receive(self, now: int, instant: int) -> tuple[Message, Confirmation | None] | None:
        """As any other, but only in a branch."""
        session = self.session
        if not self.is_over and (self.buffer or not session.joins):
            session.begin()
        return super().receive(now, instant)


class XASessionMachine(SessionMachine):
    def __init__(self, connection: ConnectionMachine, number: int) -> None:
        super().__init__(connection, number, AcknowledgeMode.SESSION_TRANSACTED)
        self.branch: Xid | None = None
        """The one it is in."""
        self.joining: Callable[[], Xid] | None = None
        """Called when work begins outside of a branch: names the one to be begun for it. None: such work raises."""
        self.timeout_ms = 0
        self._stage = Stage.OUTSIDE
        self._under_way: Confirmation | None = None
        """PREPARING and ENDING: what is waited for."""
        self._commits: bool | None = None
        """ENDING and IN_DOUBT: which outcome was asked for; None: it was being prepared."""
        self._cause: JMSException | None = None
        """LOST: why."""

    # -- work ---------------------------------------------------------------------------------------------------------------------------
    def _consumer_of(self, what: Subscription) -> ConsumerMachine:
        return XAConsumerMachine(self, what)

    def begin(self) -> bytes:
        """What work on the branch is called in frames. Raises if there is none to be worked on."""
        if self._stage is not Stage.ACTIVE:
            if not self.joins:
                raise self._not_worked_on()
            assert self.joining is not None
            self._begin(self.joining())
        return self.transaction

    @property
    def joins(self) -> bool:
        """Work that comes now begins a branch."""
        return self.joining is not None and self._stage is Stage.OUTSIDE

    def _not_worked_on(self) -> JMSException:
        if self._stage is Stage.OUTSIDE:
            return IllegalStateException("an XA session works in branches: begin one with tpc_begin(xid)")
        if self._stage is Stage.LOST:
            return self._rolled_back_with_it("say tpc_rollback()")
        return IllegalStateException(f"{self._sentence()}: end it before anything else is sent or received")

    def check_listening(self) -> None:
        raise IllegalStateException("the messages of an XA session have no listeners: receive them in a branch")

    # -- phases -------------------------------------------------------------------------------------------------------------------------
    @property
    def stage(self) -> Stage:
        return self._stage

    def set_timeout(self, seconds: float) -> None:
        """Of branches that begin from now on; 0: the broker's."""
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds * 1000 <= TIMEOUT_MS_MAX:
            raise JMSException(f"the timeout is {seconds!r}: use a number of seconds up to {TIMEOUT_MS_MAX // 1000}, a day; 0 for the broker's")
        self.timeout_ms = max(1, round(seconds * 1000)) if seconds else 0

    def tpc_begin(self, xid: Xid) -> Confirmation:
        """Begin a branch."""
        self.check()
        check_xid(xid)
        if self._stage is not Stage.OUTSIDE:
            raise TransactionInProgressException(f"{self._sentence()}: end it before another one begins")
        confirmation = Confirmation(self, UNPREPARED, None, self._left_by)
        self._begin(xid, confirmation)
        return confirmation

    def _begin(self, xid: Xid, confirmation: Confirmation | None = None) -> None:
        self._name_transaction()
        self.branch, self._stage = xid, Stage.ACTIVE
        timeout = b"timeout:%d\n" % self.timeout_ms if self.timeout_ms else b""
        frame = b"BEGIN\nxid:%b\ntransaction:%b\n%b" % (str(xid).encode(), self.transaction, timeout)
        if confirmation is None:
            self.connection.write(frame, b"\n\0")
        else:
            self.connection.request(frame, confirmation)

    def tpc_prepare(self) -> Confirmation:
        """The first phase."""
        self.check()
        if self._stage is Stage.PREPARING:
            return self._waited_for()
        self._check_worked_on("tpc_prepare")
        self.consumption.acknowledge_batches()
        self._stage, self._commits = Stage.PREPARING, None
        return self._request(b"COMMIT", b"phase:prepare\n", Confirmation(self, OF_PREPARE, self._prepared, self._left_or_in_doubt))

    def _prepared(self) -> None:
        if self._stage is Stage.PREPARING:
            self._stage, self._under_way = Stage.PREPARED, None

    def tpc_commit(self, xid: Xid | None = None) -> Confirmation:
        """The second phase; or both at once, of what is not prepared. With a xid: of a branch that `tpc_recover` has named."""
        self.check()
        if xid is not None:
            return self._end_by_name(b"COMMIT", b"phase:two\n", xid, "tpc_commit")
        if self._stage is Stage.ENDING and self._commits:
            return self._waited_for()
        if self._stage is Stage.IN_DOUBT and self._commits:
            return self._resolve()
        if self._stage is Stage.PREPARED:
            return self._end(b"COMMIT", b"phase:two\n", commits=True, prepared=True)
        self._check_worked_on("tpc_commit")
        self.consumption.acknowledge_batches()
        return self._end(b"COMMIT", b"phase:one\n", commits=True, prepared=False)

    def tpc_rollback(self, xid: Xid | None = None) -> Confirmation | None:
        """Nothing of it is done. With a xid: of a branch that `tpc_recover` has named."""
        self.check()
        if xid is not None:
            return self._end_by_name(b"ABORT", b"", xid, "tpc_rollback")
        stage = self._stage
        if stage is Stage.LOST:
            self._leave()
            return None
        if stage is Stage.OUTSIDE or (stage in (Stage.ENDING, Stage.IN_DOUBT) and self._commits):
            raise IllegalStateException(f"{self._sentence()}: there is nothing to be rolled back")
        if stage is Stage.ENDING:
            return self._waited_for()
        if stage is Stage.IN_DOUBT:
            return self._resolve()
        self.consumption.give_back()
        return self._end(b"ABORT", b"", commits=False, prepared=stage is not Stage.ACTIVE)

    def commit(self) -> Confirmation | None:
        raise self._not_its_own("tpc_commit")

    def roll_back(self) -> Confirmation | None:
        raise self._not_its_own("tpc_rollback")

    def _not_its_own(self, call: str) -> JMSException:
        self.check()
        return TransactionInProgressException(f"an XA session takes part in transactions that are not its own: say {call}()")

    def _check_worked_on(self, call: str) -> None:
        if self._stage is Stage.LOST:
            raised = self._rolled_back_with_it("do its work again in a new one")
            self._leave()
            raise raised
        if self._stage is not Stage.ACTIVE:
            advice = "begin one with tpc_begin(xid)" if self._stage is Stage.OUTSIDE else f"{call}() is for one that is worked on"
            raise IllegalStateException(f"{self._sentence()}: {advice}")

    def _rolled_back_with_it(self, advice: str) -> JMSException:
        assert self._cause is not None
        raised = TransactionRolledBackException(
            f"the branch {self.branch} was rolled back, for {self._cause.reason}: {advice}", self._cause.error_code
        )
        raised.__cause__ = self._cause
        return raised

    def _sentence(self) -> str:
        return self._stage.value.replace("the branch", f"the branch {self.branch}", 1)

    def _waited_for(self) -> Confirmation:
        """The same answer once more: it took too long, or who waited for it was interrupted."""
        assert self._under_way is not None
        if self._under_way.waiter is not None:
            raise IllegalStateException(f"{self._sentence()} by another task")
        return self._under_way

    # -- the end of a branch ------------------------------------------------------------------------------------------------------------
    def _end(self, command: bytes, phase: bytes, *, commits: bool, prepared: bool) -> Confirmation:
        self._stage, self._commits = Stage.ENDING, commits
        if prepared:
            confirmation = Confirmation(self, _of_outcome(commits), self._leave, self._left_or_in_doubt)
        else:
            confirmation = Confirmation(self, OF_ONE if commits else UNPREPARED, self._leave, self._left_by)
        return self._request(command, phase, confirmation)

    def _request(self, command: bytes, phase: bytes, confirmation: Confirmation) -> Confirmation:
        """Of this branch."""
        self._under_way = confirmation
        return self.connection.request(b"%b\nxid:%b\n%b" % (command, str(self.branch).encode(), phase), confirmation)

    def _resolve(self) -> Confirmation:
        """IN_DOUBT: do what was asked for, if there is still something to be done."""
        self._stage, self._commits = Stage.ENDING, bool(self._commits)
        confirmation = self._under_way = Confirmation(self, _of_outcome(self._commits), None, self._left_or_in_doubt)
        self.connection.recovery.ask(confirmation, lambda xids: self._resolved(confirmation, xids))
        return confirmation

    def _resolved(self, confirmation: Confirmation, xids: list[Xid]) -> None:
        found = next((xid for xid in xids if xid == self.branch), None)
        connection = self.connection
        if found is not None and found.state is BranchState.PREPARED:
            confirmation.then, confirmation.failed = self._leave, lambda error: self._resolved_meanwhile(confirmation, error)
            if self._commits:
                self._request(b"COMMIT", b"phase:two\n", confirmation)
            else:
                self._request(b"ABORT", b"", confirmation)
            return
        self._leave()
        if found is not None and found.state in HEURISTIC:
            connection.settle(confirmation, refused_as(HEURISTIC[found.state]))
        else:
            connection.settle(confirmation, None)

    def _resolved_meanwhile(self, confirmation: Confirmation, error: JMSException) -> None:
        """The frame whose answer was lost may have been done only now, before the one that asked for the same again."""
        if error.error_code == Refusal.XAER_NOTA.name:
            confirmation.error = None
        self._left_or_in_doubt(error)

    def _leave(self) -> None:
        self.branch = self._under_way = self._commits = self._cause = None
        self._stage = Stage.OUTSIDE

    def _left_by(self, _error: JMSException) -> None:
        """Whatever is wrong, there is nothing any more that could be ended."""
        self._leave()

    def _left_or_in_doubt(self, error: JMSException) -> None:
        if error.error_code != CONNECTION_LOST:
            self._leave()
        elif self._stage in (Stage.PREPARING, Stage.ENDING):
            self._stage, self._under_way = Stage.IN_DOUBT, None

    # -- branches by their names --------------------------------------------------------------------------------------------------------
    def tpc_recover(self) -> Recovered:
        """Which branches of this account are prepared, or were ended by hand."""
        self.check()
        recovered = Recovered(Confirmation(self, "nothing was done: ask again"))

        def found(xids: list[Xid]) -> None:
            recovered.xids = xids
            self.connection.settle(recovered.confirmation, None)

        self.connection.recovery.ask(recovered.confirmation, found)
        return recovered

    def tpc_forget(self, xid: Xid) -> Confirmation:
        """The outcome that an administrator gave a branch by hand is noted."""
        self.check()
        start = b"SEND\ndestination:/queue/mq.sys.xa\noperation:forget\nxid:%b\n" % str(check_xid(xid)).encode()
        return self.connection.request(start, Confirmation(self, "the broker may still remember it: see tpc_recover()"))

    def _end_by_name(self, command: bytes, phase: bytes, xid: Xid, call: str) -> Confirmation:
        check_xid(xid)
        confirmation = Confirmation(self, "the branch is ended, or it is still prepared: tpc_recover() names it then")
        if self._stage is not Stage.OUTSIDE:
            if xid != self.branch or self._stage not in (Stage.PREPARED, Stage.IN_DOUBT):
                raise TransactionInProgressException(f"{self._sentence()}: end it before {call}(xid) ends others")
            confirmation.then, confirmation.failed = self._leave, self._left_or_in_doubt
        return self.connection.request(b"%b\nxid:%b\n%b" % (command, str(xid).encode(), phase), confirmation)

    # -- the end ------------------------------------------------------------------------------------------------------------------------
    def _transaction_lost(self, error: JMSException) -> None:
        """The broker rolls back what is not prepared. What waits for an answer is told by its confirmation."""
        if self._stage is Stage.ACTIVE:
            self._stage, self._cause = Stage.LOST, error

    def _abandon(self) -> None:
        """What is prepared stays so."""
        if self._stage is Stage.ACTIVE:
            self.connection.write(b"ABORT\nxid:%b\n\n\0" % str(self.branch).encode())
            self._leave()


def _of_outcome(commits: bool) -> str:
    return OF_OUTCOME.format(call="tpc_commit" if commits else "tpc_rollback")
