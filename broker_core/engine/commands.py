"""Everything that can be asked of the engine, in one screen or two. Imperatives; built by protocol machines, the host and the administrator's door.

`peer` numbers a connection, `link` a consumer (unique in the node while it runs), `tag` a delivery on a link (1, 2, 3, ... in order of delivery).
`token` is whatever the asking protocol machine wants back when the answer is due (a STOMP receipt id); None: no answer wanted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any

from .branch import State
from .message import Header, Message
from .outcome import Outcome
from .subscription import EVERYTHING, Filter

if TYPE_CHECKING:
    from .access import Rule


# -- peers --------------------------------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class Open:
    """A peer has logged in."""

    peer: int
    account: str
    client_id: str = ""
    session: str = ""
    """What the names of its temporary destinations begin with, before a dot; unique for ever. Empty: it makes none."""
    forwards: bool = False
    """It is the node's own, and takes messages to other brokers or brings theirs (engine.foreign)."""
    detaches: bool = False
    """Its protocol has a word for the end of one of its links that it has not ended itself. Others end as a whole."""


@dataclass(slots=True)
class Stop:
    """Deliver nothing to this peer until Start: its socket is full (JMS 6.1.5, Connection.stop)."""

    peer: int


@dataclass(slots=True)
class Start:
    peer: int


@dataclass(slots=True)
class Sync:
    """Answer with Confirmed when everything this peer asked before is done and durable (STOMP DISCONNECT)."""

    peer: int
    token: Any


@dataclass(slots=True)
class PeerLost:
    """The connection is gone, gracefully or not: its links close, what they held returns to the head of its lane, flagged."""

    peer: int


# -- producing ----------------------------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class Send:
    peer: int
    token: Any
    address: str
    """Canonical: `queue/orders`, `topic/prices` (engine.address)."""
    message: Message


@dataclass(slots=True)
class Request(Send):
    """A send that tells others a temporary destination of this peer, as an address for replies: if that is not there it is made first (JMS 6.2.2);
    if it cannot be made, nothing is sent."""

    reply_to: str


@dataclass(slots=True)
class TakeOver:
    """A message that a session of the database sent within its own transaction (R17) becomes visible; if it may not, it goes to the dead message queue.
    The commit that does it takes its row from the store's inbox."""

    entry: int
    """The row's number."""
    address: str
    message: Message
    sent_at: int
    """Instant in ms since the epoch, from which its delay counts."""


# -- consuming ----------------------------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class CreateTemporary:
    """Make a temporary destination of this peer, if it is not there already (AMQP 1.0 section 3.5.10, dynamic nodes). To consume it or to send to it
    makes it, too."""

    peer: int
    address: str
    token: Any = None


@dataclass(slots=True)
class EndTemporary:
    """End a temporary destination of this peer that has no consumer: the link that made it has closed (AMQP 1.0 section 3.5.10), or its client says so."""

    peer: int
    address: str
    token: Any = None


@dataclass(slots=True)
class Attach:
    peer: int
    link: int
    address: str
    token: Any = None
    credit: int = 0
    """Deliveries allowed now; UNLIMITED_CREDIT for no bound but bytes."""
    replenish: bool = True
    """True: every settlement gives its credit back (STOMP prefetch). False: only Grant does (AMQP)."""
    presettled: bool = False
    """True: settled as soon as sent (STOMP ack:auto)."""
    settled_by_peer: bool = False
    """True: nothing is acknowledged either, and the peer's machine settles what has left (AMQP snd-settle-mode settled), as some may wait in it."""
    name: str = ""
    """Of the subscription, on a topic; empty: one of its own, which ends with the link."""
    durable: bool = False
    shared: bool = False
    wanted: Filter = EVERYTHING
    exclusive: bool = False
    """While it is open no other consumer of the subscription is served."""
    priority: int = 0
    """Of the consumer: a higher one is served first. At most eligibility.PRIORITY_MAX either way."""
    threshold: int = 100
    """Percent of `credit`: once that is used up nothing more is delivered before no more than so much is outstanding. 100: every settlement makes room."""
    of_any_client: bool = False
    """The subscription belongs to no client identifier, whatever the connection's: all clients of the account share it (JMS 2.0, 8.3.3)."""
    steals: bool = False
    """A consumer of the same client on another connection loses the subscription to this one (AMQP 1.0 section 2.6.1)."""


@dataclass(slots=True)
class Browse:
    """Show copies of what a queue, or a durable subscription of a topic, holds now, consuming nothing; Browsed says that these were all. A Detach closes
    it."""

    peer: int
    link: int
    address: str
    token: Any = None
    wanted: Filter = EVERYTHING
    credit: int | None = None
    """Copies allowed now, more with Grant; None: as many as the socket takes."""
    name: str = ""
    """Of the subscription. A queue has none."""
    client_id: str | None = None
    """Whose it is; empty: nobody's in particular. None: the peer's."""


@dataclass(slots=True)
class Unsubscribe:
    """End a subscription that has a name and no consumer (JMS 6.11.4)."""

    peer: int
    name: str
    token: Any = None
    of_any_client: bool = False
    """See Attach."""


@dataclass(slots=True)
class Lookup:
    """Answer Found with the peer's subscription of this name, or Refused."""

    peer: int
    name: str
    token: Any
    of_any_client: bool = False
    """See Attach."""


@dataclass(slots=True)
class MayProduce:
    """Answer Confirmed if the peer's account may send there, as rules are now, else Refused: who may not is to hear it before it has sent anything."""

    peer: int
    address: str
    token: Any


UNLIMITED_CREDIT = 1 << 62


@dataclass(slots=True)
class Grant:
    """Set the link's credit (AMQP flow); `drain`: answer Drained, with this number, when no more can be delivered now; 0: do not, whatever was asked before."""

    link: int
    credit: int
    drain: int = 0
    counted: int | None = None
    """The tag of the last delivery that is not to come out of this credit: those behind it were on their way when the peer said so. None: all were
    counted."""
    peer: int = 0
    """Who says so, for what it must not overtake of his."""


@dataclass(slots=True)
class Settle:
    """Settle deliveries of one link: those in `tags`, or with `upto` all outstanding ones up to that tag."""

    peer: int
    link: int
    tags: Sequence[int] = ()
    upto: int = 0
    outcome: Outcome = Outcome.ACCEPTED
    token: Any = None
    comment: str = ""
    """Of a failure, which those read who find the message dead; empty: what the broker says of it."""


@dataclass(slots=True)
class Begin:
    """A local transaction; its peer names it."""

    peer: int
    transaction: bytes
    token: Any = None


@dataclass(slots=True)
class Transacted:
    """`work` is to be done when the transaction commits; Confirmed means that it was taken down, no more. Work's own token stays unused."""

    peer: int
    transaction: bytes
    work: Send | Settle
    token: Any = None


@dataclass(slots=True)
class End:
    """Commit the transaction, or roll it back."""

    peer: int
    transaction: bytes
    commit: bool
    token: Any = None


class Verb(Enum):
    """What a transaction manager says of a branch (X/Open XA)."""

    END = "end"
    SUSPEND = "suspend"
    """Ended for now: TMSUSPEND."""
    FAIL = "fail"
    """Ended, and to be rolled back: TMFAIL."""
    PREPARE = "prepare"
    COMMIT = "commit"
    """What is prepared."""
    COMMIT_ONE = "commit in one phase"
    ROLL_BACK = "roll back"
    FORGET = "forget"


@dataclass(slots=True)
class BeginBranch:
    """A branch of a distributed transaction, or more work for one of this peer's that was ended."""

    peer: int
    transaction: bytes
    """What the work on it will call it."""
    xid: str
    """Canonical (engine.xid)."""
    again: State | None = None
    """ENDED: join it; SUSPENDED: resume it; None: it is new."""
    timeout: int = 0
    """Ms after which it is rolled back unless it is prepared; 0: as long as any transaction may take, which is the most."""
    token: Any = None


@dataclass(slots=True)
class EndBranch:
    peer: int
    xid: str
    verb: Verb
    token: Any = None


@dataclass(slots=True)
class ListBranches:
    """Send the account's branches that are prepared or heuristically ended, those after this xid, to an address: a line for each (XA's recover)."""

    peer: int
    address: str
    header: Header
    after: str = ""
    token: Any = None


@dataclass(slots=True)
class Detach:
    peer: int
    link: int
    token: Any = None
    outcome: Outcome = Outcome.RELEASED
    """Of what is outstanding: RELEASED, or UNUSED if the consumer says that."""


# -- what the store found ------------------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class PageLoaded:
    """The answer to a Read: the rows of its interval that the store still has, in order of position."""

    read: int
    messages: list[Message]
    complete: bool
    """False: cut short by the row or byte limit; nothing is known beyond the last row."""


@dataclass(slots=True)
class SegmentDropped:
    segment: int


@dataclass(slots=True)
class SegmentCompacted:
    """The survivors of a closed segment are durable in `retained`; reads go there from now on (R5). Octets, if they were
    measured: of the segment on disk, and of what `retained` has grown by."""

    segment: int
    octets_before: int = 0
    octets_after: int = 0


# -- who may what ---------------------------------------------------------------------------------------------------------------------
@dataclass(slots=True)
class SetAccess:
    """The rules of access from now on, all of them; before the first everybody may everything."""

    rules: Sequence[Rule]
    groups: Mapping[str, Sequence[str]]
    """Of accounts that are in any."""


# -- the administrator's door --------------------------------------------------------------------------------------------------------
class Direction(IntEnum):
    """What a pause stops; the destination's state is the union (Open MQ: RUNNING 0, CONSUMERS_PAUSED 1, PRODUCERS_PAUSED 2, PAUSED 3)."""

    CONSUMERS = 1
    PRODUCERS = 2
    ALL = 3


@dataclass(slots=True)
class Control:
    """An operator's or the scheduler's request, in order with traffic; answered in the same commit (R22)."""

    request: int
    verb: str
    """create, update, pause, resume, purge, destroy, undo, give_up, subscribe, unsubscribe, subscriptions, browse,
    connections, consumers, producers, transactions, unsettled, release, disconnect, delayed, create_alias,
    update_alias, delete_alias, set_policy, drop_policy, compact, compactable, commit, rollback, forget, operate, cancel, expire, reap, retain, ledger: see
    engine.administration."""
    address: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    deadline: int = 0
    """Instant in ms; past it the engine refuses. 0: none."""


SEND_OCTETS = 512
"""What a send that waits takes beside its own octets: else a million empty messages would count as nothing."""


def send_of(command: object) -> Send | None:
    """The send that a command is, or has taken down for its transaction."""
    work = command.work if isinstance(command, Transacted) else command
    return work if isinstance(work, Send) else None


Command = (
    Open | Stop | Start | Sync | PeerLost | Send | Request | TakeOver | CreateTemporary | EndTemporary | Attach | Browse | Unsubscribe | Lookup | MayProduce
    | Grant | Settle | Begin | Transacted | End | BeginBranch | EndBranch | ListBranches | Detach | PageLoaded | SegmentDropped | SegmentCompacted
    | SetAccess | Control
)  # fmt: skip
