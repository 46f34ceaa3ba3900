"""The client's end of one connection, from CONNECT to DISCONNECT and over all the sockets that it may need (how to drive it: see the package)."""

from __future__ import annotations

from enum import Enum
from typing import Any

from broker_core.client.exceptions import CONNECTION_LOST, IllegalStateException, JMSException
from broker_core.client.settings import AcknowledgeMode, Settings
from broker_core.stomp.frames import serialise
from broker_core.stomp.heartbeat import HeartBeat
from broker_core.stomp.sections import Malformed

from .confirmation import Confirmation
from .consumer import ConsumerMachine
from .reader import Delivery, Frame, Reader
from .recovery import Recovery
from .refused import refused
from .session import SessionMachine
from .temporaries import Temporaries
from .window import Window
from .xa import XASessionMachine

NEVER = 1 << 62
"""An instant that does not come."""


class Phase(Enum):
    WAITING = "no socket yet, or the last one was lost and another is to come"
    CONNECTING = "CONNECT is said, CONNECTED not heard"
    OPEN = "open"
    LEAVING = "DISCONNECT is said"
    CLOSED = "closed, or failed for good"


class ConnectionMachine:
    """`owner` is whatever its driver knows it by; so are the sessions' owners."""

    def __init__(self, settings: Settings, username: str, password: str, client_id: str, lookup: str = "") -> None:
        """`lookup`: the administered object that is asked for while connecting; empty: none."""
        self.settings = settings
        self._lookup = lookup
        self.found = ""
        """That object, as the broker says it."""
        self.username = username
        self.client_id = client_id
        self.phase = Phase.WAITING
        self.failure: JMSException | None = None
        """Why it is closed, if nobody asked for it."""
        self.trouble: JMSException | None = None
        """What became of the last socket."""
        self.started = False
        """The application wants messages (JMS 6.1.5)."""
        self.epoch = 0
        """How many sockets were lost: what came on an earlier one cannot be acknowledged any more."""
        self.opened = Confirmation(self, "no broker has been reached")
        self.woken: list[ConnectionMachine | SessionMachine] = []
        """Who waits for something that may have come."""
        self.is_woken = False
        self.completions: list[Confirmation] = []
        """Asynchronous sends whose listeners are to be told."""
        self.sessions: dict[int, SessionMachine] = {}
        self.temporaries = Temporaries()
        self.window = Window()
        self.held = 0
        """Messages that wait for the application."""
        self.ack_at = NEVER
        """The instant at which the first session must acknowledge."""
        self.out_octets = 0
        self.owner: Any = None
        self._password = password
        self._out: list[bytes] = []
        self._reader = Reader()
        self._frames = self._reader.frames()
        self.has_more = False
        """`proceed` must be called before more is read."""
        self._heart = HeartBeat(0, 0, 0)
        self._consumers: dict[bytes, ConsumerMachine] = {}
        self._recovery: Recovery | None = None
        self._awaited: dict[bytes, Confirmation] = {}
        self._receipts = 0
        self._numbers = 0
        self._flooded = False
        self.overfull = 0
        """Consumers whose messages the broker does not count and that hold more than they may."""

    # -- the socket ---------------------------------------------------------------------------------------------------------------------
    def connect(self, host: str, now: int) -> None:
        """A socket is open: say CONNECT."""
        ping = round(self.settings.ping_interval * 1000)
        headers = {"accept-version": "1.2", "host": host, "login": self.username, "passcode": self._password, "heart-beat": f"{ping},{ping}"}
        if self.client_id:
            headers["client-id"] = self.client_id
            if self.settings.enable_shared_client_id:
                headers["client-id-shared"] = "true"
        if self._lookup:
            headers["lookup"] = self._lookup
        assert self.awaits_socket()
        self.phase = Phase.CONNECTING
        self._reader = Reader()
        self._heart = HeartBeat(0, 0, now)
        self._put(serialise("CONNECT", headers.items()))

    def receive_data(self, data: bytes, now: int) -> None:
        """Octets from the socket. Then, while `has_more`, write what there is to write, wake who is woken, and call `proceed`."""
        self._heart.received_at = now
        self._reader.feed(data)
        self.proceed(now)

    def proceed(self, now: int) -> None:
        """Take what has come, at most `connection_flow_count` messages of it: then control messages have their turn (checklist item 84)."""
        count = self.settings.connection_flow_count or NEVER
        consumers, awaited, epoch = self._consumers.get, self._awaited.pop, self.epoch
        self.has_more = False
        try:
            for frame in self._reader.frames():
                if frame.__class__ is Delivery:
                    consumer = consumers(frame.subscription)
                    if consumer is not None:
                        frame.epoch = epoch
                        consumer.arrived(frame)
                    elif (recovery := self._recovery) is not None and frame.subscription == recovery.subscription:
                        recovery.arrived(frame)
                    count -= 1
                    if not count:
                        self.has_more = True
                        break
                elif frame.__class__ is bytes:
                    confirmation = awaited(frame, None)
                    if confirmation is not None:
                        self._settled(confirmation, None)
                elif isinstance(frame, Frame):
                    self._control(frame, now)
                    if self.epoch != epoch:
                        return
        except Malformed as malformed:
            self.lost(JMSException(f"what the broker said cannot be understood: {malformed.sentence}", CONNECTION_LOST), now)

    def data_to_send(self) -> bytes:
        """What to write; not given twice."""
        data = b"".join(self._out)
        self._out.clear()
        self.out_octets = 0
        return data

    def wrote(self, now: int) -> None:
        """Something was written: the next heart-beat has time."""
        self._heart.sent_at = now

    @property
    def wants_pause(self) -> bool:
        """True: read nothing for now. The application is behind, and nobody waits for an answer, which would stand behind the messages."""
        return (self._flooded or self.overfull > 0) and not self._awaited and self.phase is Phase.OPEN

    def next_deadline(self) -> int:
        """The instant at which tick is due."""
        heart = self._heart.next_deadline() if self.phase in (Phase.CONNECTING, Phase.OPEN, Phase.LEAVING) else None
        return self.ack_at if heart is None else min(heart, self.ack_at)

    def tick(self, now: int) -> None:
        """Do what is due: acknowledge, say that one is alive, give up a broker that is silent."""
        if now >= self.ack_at:
            self.ack_at = NEVER
            for session in self.sessions.values():
                session.tick(now)
        if self.is_open:  # who is leaving waits for an answer, and not for ever
            heart = self._heart
            if self.wants_pause:
                heart.received_at = now  # the silence is ours
            if heart.is_silent(now):
                self.lost(JMSException(f"the broker has said nothing for {heart.silence_ms / 1000:g} s", CONNECTION_LOST), now)
            elif heart.send_due(now):
                heart.sent_at = now
                self._put(b"\n")

    def lost(self, error: JMSException, now: int) -> None:
        """The socket is gone, or of no use. Whoever waits is told; the phase says whether to connect again."""
        if self.phase in (Phase.CLOSED, Phase.WAITING):
            return
        self.epoch += 1
        self.trouble = error
        again = self.phase is not Phase.LEAVING and self.settings.reconnect_enabled and self.opened.is_settled
        self._reader = Reader()
        self.has_more = False
        for session in self.sessions.values():
            session.connection_lost(error)
        self._silence(error)
        if again or not self.opened.is_settled:
            self.phase = Phase.WAITING
            self.failure = None
        else:
            self._close(error)
        self.wake_all()

    def give_up(self, error: JMSException) -> None:
        """No broker can be reached, or none lets us in."""
        if self.phase is not Phase.CLOSED:
            self._close(error)
            if not self.opened.is_settled:
                self._settled(self.opened, error)
            self.wake_all()

    def _close(self, error: JMSException | None) -> None:
        """For good; without an error, because the application wants it."""
        self.phase = Phase.CLOSED
        self.failure = error
        self._silence(error or JMSException("the connection was closed", CONNECTION_LOST))

    def _silence(self, error: JMSException) -> None:
        """Nothing is said any more, and no answer comes."""
        self._out.clear()
        self.out_octets = 0
        awaited, self._awaited = list(self._awaited.values()), {}
        for confirmation in awaited:
            if confirmation.error is None:
                confirmation.error = JMSException(f"{error.reason}; {confirmation.doubt}", CONNECTION_LOST)
                confirmation.error.__cause__ = error
            self._settled(confirmation, confirmation.error)

    # -- what the broker says -----------------------------------------------------------------------------------------------------------
    def _control(self, frame: Frame, now: int) -> None:
        if frame.command == "RECEIPT":  # with more to say than others, or written unlike our broker writes it
            confirmation = self._awaited.pop(frame.headers.get("receipt-id", "").encode(), None)
            if confirmation is not None:
                if confirmation.consumer is not None:
                    confirmation.consumer.allowed(frame.headers)
                self._settled(confirmation, None)
        elif frame.command == "ERROR":
            error = refused(frame)
            asked = self._awaited.get(frame.headers.get("receipt-id", "").encode())
            if asked is not None:
                asked.error = error
                if asked.consumer is not None:
                    asked.consumer.failure = error
            self.lost(error, now)
        elif frame.command == "CONNECTED" and self.phase is Phase.CONNECTING:
            self._heart = HeartBeat(*self._beats(frame.headers.get("heart-beat", "0,0")), now)
            self.phase = Phase.OPEN
            self.found = frame.headers.get("administered-object", "")
            self.temporaries.session = frame.headers.get("session", "")
            for consumer in self._consumers.values():
                self.subscribe(consumer)
            self._settled(self.opened, None)
            self.wake_all()

    def _beats(self, told: str) -> tuple[int, int]:
        """What CONNECTED says of heart-beats, agreed with what we said: (we send every, we hear every); 0: not at all."""
        ping = round(self.settings.ping_interval * 1000)
        can_send, _, wants = told.partition(",")
        if not (can_send.isdigit() and wants.isdigit()):
            raise Malformed("header heart-beat of CONNECTED is not two numbers of milliseconds")
        return (max(ping, int(wants)) if ping and int(wants) else 0), (max(ping, int(can_send)) if ping and int(can_send) else 0)

    def _settled(self, confirmation: Confirmation, error: JMSException | None) -> None:
        confirmation.is_settled = True
        if confirmation.octets:
            self.window.leave(confirmation.octets)
        if error is None:
            if confirmation.then is not None:
                confirmation.then()
        else:
            confirmation.error = confirmation.error or error
            if confirmation.failed is not None:
                confirmation.failed(confirmation.error)
        if confirmation.waiter is not None:
            confirmation.waiter()
        if confirmation.completion is None:
            self.wake(confirmation.owner)
        else:
            self.completions.append(confirmation)

    def wake(self, owner: ConnectionMachine | SessionMachine) -> None:
        if not owner.is_woken:
            owner.is_woken = True
            self.woken.append(owner)

    def wake_all(self) -> None:
        self.wake(self)
        for session in self.sessions.values():
            self.wake(session)

    def take_woken(self) -> list[ConnectionMachine | SessionMachine]:
        woken, self.woken = self.woken, []
        for each in woken:
            each.is_woken = False
        return woken

    def take_completions(self) -> list[Confirmation]:
        """Call each `completion` with its `message` and `error`, then `completed`."""
        completions, self.completions = self.completions, []
        return completions

    def completed(self, confirmations: list[Confirmation]) -> None:
        """Their listeners have returned."""
        for confirmation in confirmations:
            session: SessionMachine = confirmation.owner
            session.completing -= 1
            if not session.completing:
                self.wake(session)

    # -- what is said to the broker -----------------------------------------------------------------------------------------------------
    def check(self) -> None:
        """Raise if nothing can be asked of the connection."""
        if self.phase is Phase.CLOSED or self.phase is Phase.LEAVING:
            if self.failure is not None:
                raise self.failure.again()
            raise IllegalStateException("the connection is closed: make another one")

    def awaits_socket(self) -> bool:
        """It is to be connected."""
        return self.phase is Phase.WAITING

    @property
    def is_ended(self) -> bool:
        """Nothing comes or goes any more."""
        return self.phase is Phase.CLOSED or self.phase is Phase.LEAVING

    def _put(self, data: bytes) -> None:
        self._out.append(data)
        self.out_octets += len(data)

    @property
    def is_open(self) -> bool:
        """The broker hears what is said now."""
        return self.phase is Phase.OPEN or self.phase is Phase.LEAVING

    def write(self, *pieces: bytes) -> None:
        """To be written. While there is no connection nothing is: what must be said again is said when there is one."""
        if self.is_open:
            self._out.extend(pieces)
            self.out_octets += sum(map(len, pieces))

    def awaiting(self, confirmation: Confirmation) -> bytes:
        """A new receipt, whose coming settles the confirmation. Where there is no connection it fails at once."""
        self._receipts += 1
        receipt = b"%d" % self._receipts
        if self.is_open:
            self._awaited[receipt] = confirmation
        else:
            self._settled(confirmation, JMSException(f"there is no connection to the broker; {confirmation.doubt}", CONNECTION_LOST))
        return receipt

    def answered(self, name: bytes) -> None:
        """Something else than a receipt has come in its place; the confirmation is the caller's again, to be settled."""
        self._awaited.pop(name, None)

    def settle(self, confirmation: Confirmation, error: JMSException | None) -> None:
        """One that was answered so."""
        self._settled(confirmation, error)

    def request(self, start: bytes, confirmation: Confirmation) -> Confirmation:
        """Write a frame without a body, given by its command and header lines each with its LF, and ask for a receipt."""
        self.write(b"%breceipt:%b\n\n\0" % (start, self.awaiting(confirmation)))
        return confirmation

    # -- sessions and consumers ---------------------------------------------------------------------------------------------------------
    def open_session(self, mode: AcknowledgeMode) -> SessionMachine:
        self.check()
        self._numbers += 1
        session = self.sessions[self._numbers] = SessionMachine(self, self._numbers, mode)
        return session

    def open_xa_session(self) -> XASessionMachine:
        self.check()
        self._numbers += 1
        session = self.sessions[self._numbers] = XASessionMachine(self, self._numbers)
        return session

    @property
    def recovery(self) -> Recovery:
        """Who asks for branches."""
        if self._recovery is None:
            self._recovery = Recovery(self)
        return self._recovery

    def number(self) -> int:
        """For what needs a number of its own on this connection."""
        self._numbers += 1
        return self._numbers

    def attach(self, consumer: ConsumerMachine) -> None:
        self._consumers[consumer.subscription] = consumer

    def subscribe(self, consumer: ConsumerMachine) -> Confirmation:
        """Ask for it, the first time or again on a new connection."""
        confirmation = Confirmation(consumer.session, "the subscription may or may not have been made", consumer.confirmed)
        confirmation.consumer = consumer
        self.write(consumer.subscribe_frame(self.awaiting(confirmation)))
        return confirmation

    def detach(self, consumer: ConsumerMachine) -> None:
        """What is still on its way to it is not looked at: the broker has it back."""
        self._consumers.pop(consumer.subscription, None)

    def consumers(self) -> list[ConsumerMachine]:
        """Those of all sessions."""
        return list(self._consumers.values())

    def holds(self) -> None:
        """A message has come that the application has not got."""
        self.held += 1
        settings = self.settings
        if settings.connection_flow_limit_enabled and self.held >= settings.connection_flow_limit:
            self._flooded = True

    def released(self, count: int) -> None:
        """So many it has got, or will not get."""
        self.held -= count
        if self._flooded and self.held <= self.settings.connection_flow_limit * self.settings.consumer_flow_threshold / 100:
            self._flooded = False

    # -- the end ------------------------------------------------------------------------------------------------------------------------
    def close(self) -> Confirmation | None:
        """Acknowledge what waits for it, and leave. Nothing to wait for if there is no connection at the moment."""
        if self.phase is Phase.CLOSED or self.phase is Phase.LEAVING:
            return None
        for session in list(self.sessions.values()):
            session.end()
        if self.phase is not Phase.OPEN:
            self._close(None)
            self.wake_all()
            return None
        self.phase = Phase.LEAVING
        confirmation = Confirmation(self, "what was said last may not have been heard", lambda: self._close(None))
        self.request(b"DISCONNECT\n", confirmation)
        self.wake_all()
        return confirmation
