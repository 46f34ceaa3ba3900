"""XA sessions under every history of losing connections, beside a naive broker that keeps the books: frames are heard and answered, or heard and the answer is
lost, or never heard, or heard only when the next connection is there already. A transaction manager that says what docs/client.md tells it to say ends each
branch as it was decided, once."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from hypothesis import given, settings
from hypothesis import strategies as st

from broker_core.client import JMSException, TextMessage, TransactionRolledBackException, Xid
from broker_core.client.exceptions import CONNECTION_LOST
from broker_core.client.machine import Confirmation
from tests.client.broker import INSTANT, Broker, Frame


class Fate(Enum):
    """Of what the client has written."""

    ANSWERED = "heard and answered"
    UNANSWERED = "heard, and the answer is lost"
    UNHEARD = "lost"
    LATE = "lost to the client, and heard by the broker just before the next connection is"
    LATER = "and just after its first answer"


class Books:
    """A broker's: what is prepared, and what is stored."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.active: dict[str, list[str]] = {}
        """Of the present connection, by xid."""
        self.named: dict[str, str] = {}
        """The xid of each transaction's name."""
        self.prepared: dict[str, list[str]] = {}
        self.stored: list[str] = []
        self.late: dict[Fate, list[Frame]] = {Fate.LATE: [], Fate.LATER: []}
        self.subscription = ""

    def lets_in(self) -> None:
        """What was worked on is over."""
        self.active, self.named = {}, {}
        self.broker.lets_in()

    def meets(self, fate: Fate) -> None:
        """The frames that the client has written meet it."""
        frames = self.broker.hears()
        if fate is Fate.ANSWERED:
            self._catch_up(Fate.LATE)
            if not all(self._answers(frame) for frame in frames):
                self.lets_in()
            self._catch_up(Fate.LATER)
            return
        if fate is Fate.UNANSWERED:
            for frame in frames:
                self._does(frame)
        elif fate in self.late:
            self.late[fate] += frames
        self.broker.loses_the_connection()
        self.lets_in()

    def _catch_up(self, fate: Fate) -> None:
        """What the earlier connection said, and its end."""
        present, self.active, self.named = (self.active, self.named), {}, {}
        for frame in self.late[fate]:
            self._does(frame)
        self.late[fate] = []
        self.active, self.named = present

    def ends(self) -> None:
        """Nobody has anything to say any more but who is there."""
        self._catch_up(Fate.LATE)
        self._catch_up(Fate.LATER)

    def _answers(self, frame: Frame) -> bool:
        """False: the connection is over."""
        refusal = self._does(frame)
        if refusal:
            self.broker.refuses(refusal, "no", frame.receipt)
            return False
        if frame.headers.get("operation") == "recover":
            after = frame.headers.get("after", "")
            body = "".join([f"{xid} prepared\n" for xid in sorted(self.prepared) if xid > after][:1])
            head = f"MESSAGE\nsubscription:{self.subscription}\nmessage-id:1\ncorrelation-id:{frame.headers['correlation-id']}\n"
            self.broker.says(f"{head}destination:/temp-queue/xa\ncontent-length:{len(body)}\n\n{body}\0".encode())
        self.broker.confirms(frame)
        return True

    def _does(self, frame: Frame) -> str:
        """What it refuses it with; empty: it is done."""
        xid = frame.headers.get("xid", "")
        if frame.command == "BEGIN":
            if xid in self.prepared or xid in self.active:
                return "XAER_DUPID"
            self.active[xid], self.named[frame.headers["transaction"]] = [], xid
        elif frame.command == "SEND" and "transaction" in frame.headers:
            if (of := self.named.get(frame.headers["transaction"])) in self.active:
                self.active[of].append(frame.body.decode())
        elif frame.command == "SUBSCRIBE":
            self.subscription = frame.headers["id"]
        elif frame.command in ("COMMIT", "ABORT"):
            return self._ends(xid, frame.headers.get("phase", "abort"))
        return ""

    def _ends(self, xid: str, how: str) -> str:
        known = self.active if how in ("prepare", "one") or (how == "abort" and xid not in self.prepared) else self.prepared
        if xid not in known:
            return "XAER_NOTA"
        work = known.pop(xid)
        if how == "prepare":
            self.prepared[xid] = work
        elif how != "abort":
            self.stored += work
        return ""


class Application:
    """The transaction manager, whose log outlives everything."""

    def __init__(self, fates: list[Fate]) -> None:
        self.broker = Broker(reconnect_enabled=True)
        self.books = Books(self.broker)
        self.session = self.broker.client.open_xa_session()
        self.session.owner = "xa"
        self.fates = fates
        self.decided: set[str] = set()
        self.in_doubt: set[str] = set()
        """Committed in one phase, without an answer."""

    def fate(self) -> Fate:
        return self.fates.pop() if self.fates else Fate.ANSWERED

    def hears(self, confirmation: Confirmation | None) -> None:
        while confirmation is not None and not confirmation.is_settled:
            self.books.meets(self.fate())
        while self.fates and self.fates[-1] is Fate.UNHEARD:  # between two calls
            self.books.meets(self.fates.pop())
        if confirmation is not None:
            confirmation.check()

    def insists(self, call: Callable[[], Confirmation | None]) -> None:
        """Until there is an answer."""
        while self.session.branch is not None:
            try:
                self.hears(call())
            except JMSException as error:
                if error.error_code != CONNECTION_LOST:
                    raise

    def transacts(self, number: int, how: str) -> None:
        session, name = self.session, str(number)
        try:
            self.hears(session.tpc_begin(Xid(1, name.encode())))
            self.broker.producer(session).send(TextMessage(name), INSTANT)
            if how == "one":
                self.hears(session.tpc_commit())
                self.decided.add(name)
                return
            self.hears(session.tpc_prepare())
        except TransactionRolledBackException:
            self.insists(session.tpc_rollback)
            return
        except JMSException as error:
            if error.error_code != CONNECTION_LOST:
                raise
            if "nobody can tell" in error.reason:
                self.in_doubt.add(name)
            self.insists(session.tpc_rollback)
            return
        if how == "commit":
            self.decided.add(name)
            self.insists(session.tpc_commit)
        else:
            self.insists(session.tpc_rollback)

    def recovers(self) -> None:
        self.books.ends()
        recovered = self.session.tpc_recover()
        self.hears(recovered.confirmation)
        for xid in recovered.xids:
            end = self.session.tpc_commit if xid.global_transaction_id.decode() in self.decided else self.session.tpc_rollback
            self.hears(end(xid))


HOW = st.sampled_from(["commit", "commit", "rollback", "one"])


@settings(max_examples=400, deadline=None)
@given(st.lists(HOW, min_size=1, max_size=5), st.lists(st.sampled_from(Fate), max_size=30))
def test_each_branch_ends_as_it_was_decided_whatever_is_lost(transactions: list[str], fates: list[Fate]) -> None:
    application = Application(fates)
    for number, how in enumerate(transactions):
        application.transacts(number, how)
    application.fates = []
    application.recovers()
    books = application.books
    assert not books.prepared
    assert len(books.stored) == len(set(books.stored)), "twice"
    assert application.decided <= set(books.stored) <= application.decided | application.in_doubt


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from([Fate.ANSWERED, Fate.UNANSWERED, Fate.UNHEARD]), max_size=30))
def test_without_late_frames_nothing_is_left_to_be_recovered(fates: list[Fate]) -> None:
    application = Application(fates)
    for number, how in enumerate(["commit", "rollback", "commit"]):
        application.transacts(number, how)
    assert not application.books.prepared
    assert set(application.books.stored) == application.decided
