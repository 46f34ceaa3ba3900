"""The sessions of one open connection, by channel: what is said goes where it belongs, and a peer's mistake ends the session that it made it in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from .frames import Frame, frame
from .performatives import Attach, Begin, Close, Detach, Disposition, End, Error, Flow, Transfer
from .refusals import ILLEGAL_STATE, INVALID_FIELD, NOT_ALLOWED, ConnectionFault, SessionFault, fitting
from .session import Session

if TYPE_CHECKING:
    from .connection import Connection
    from .sender import Outgoing

FRAME_EFFORT = 20
"""Microseconds of a frame that is no transfer, disposition or flow."""


class Sessions:
    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.by_channel: dict[int, Session] = {}
        self.ending: dict[int, None] = {}
        """Channels of sessions that we have ended and the peer has not."""

    @property
    def waiting_octets(self) -> int:
        """Of what was delivered and has no room."""
        return sum([session.waiting_octets for session in self.by_channel.values()])

    @property
    def hungry(self) -> Outgoing | None:
        """A delivery that waits for octets of its large body."""
        for session in self.by_channel.values():
            head = session.head
            if head is not None and head.is_hungry:
                return head
        return None

    def take(self, each: Frame, events: list[Any]) -> bool:
        """True: it was about deliveries, and the connection goes on as it was. Raises ConnectionFault."""
        performative = each.performative
        kind = performative.__class__
        session = self.by_channel.get(each.channel)
        try:
            if session is None:
                self._outside(each.channel, performative, events)
            elif kind is Transfer:
                session.transfer(performative, each.payload, events)  # type: ignore[arg-type]
                return True
            elif kind is Disposition:
                session.disposition(performative, events)  # type: ignore[arg-type]
                return True
            elif kind is Flow:
                session.flow(performative, events)  # type: ignore[arg-type]
                return True
            else:
                self._within(session, performative, events)
        except SessionFault as fault:
            assert session is not None
            self.end(session, fault.error, events)
        return False

    def _outside(self, channel: int, performative: Any, events: list[Any]) -> None:
        """Of no session, or of one that has not begun or is over."""
        connection, kind = self.connection, performative.__class__
        connection.effort += FRAME_EFFORT
        if kind is Close:
            connection.take_leave(performative, events)
        elif kind is Begin:
            if performative.remote_channel is not None:
                raise ConnectionFault(INVALID_FIELD, "begin answers a session that the broker did not begin")
            if channel in self.ending:
                raise ConnectionFault(ILLEGAL_STATE, f"the session of channel {channel} was ended, and that was not answered")
            if channel >= connection.limits.channels_max:
                raise ConnectionFault(NOT_ALLOWED, f"channel {channel} is more than the channel-max {connection.limits.channels_max - 1}")
            session = self.by_channel[channel] = Session(connection, channel, performative)
            session.begin()
        elif kind is End and channel in self.ending:
            del self.ending[channel]
        elif channel not in self.ending:
            raise ConnectionFault(ILLEGAL_STATE, f"{kind.__name__} came on channel {channel}, which has no session")

    def _within(self, session: Session, performative: Any, events: list[Any]) -> None:
        connection, kind = self.connection, performative.__class__
        connection.effort += FRAME_EFFORT
        if kind is Attach:
            session.attach(performative, events)
        elif kind is Detach:
            session.detach(performative, events)
        elif kind is End:
            self._drop(session, events)
            connection.out.append(frame(session.channel, End()))
        elif kind is Close:
            connection.take_leave(performative, events)
        elif kind is Begin:
            raise ConnectionFault(ILLEGAL_STATE, f"the session of channel {session.channel} has begun already")
        else:
            raise ConnectionFault(ILLEGAL_STATE, f"{kind.__name__} came on an open connection")

    def again(self, session: Session, late: list[Any], events: list[Any]) -> None:
        """What the peer said before the handle that it is about was free."""
        for performative in late:
            try:
                if isinstance(performative, Flow):
                    session.flow_of_link(cast(int, performative.handle), performative, events)
                else:
                    self._within(session, performative, events)
            except SessionFault as fault:
                self.end(session, fault.error, events)
                return

    def end(self, session: Session, error: Error, events: list[Any]) -> None:
        """The peer's mistake ends its session, or a link of it that nothing can be said of."""
        self._drop(session, events)
        self.ending[session.channel] = None
        self.connection.out.append(fitting(session.channel, End(error), self.connection.frame_octets_max))

    def _drop(self, session: Session, events: list[Any]) -> None:
        del self.by_channel[session.channel]
        session.close(events)

    def leave(self, events: list[Any]) -> None:
        """The connection closes."""
        for session in list(self.by_channel.values()):
            session.leave(events)
