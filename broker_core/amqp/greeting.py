"""How a connection begins: protocol headers, SASL, open (transport 2.2 and 2.4.1, security 5.3); and what is said to whom is not let in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import opening
from .frames import AMQP, AMQP_HEADER, FRAME_OCTETS_MIN, SASL, SASL_HEADER, Frame, ProtocolHeader, frame, sasl_frame
from .opening import opening_of
from .performatives import Close, Error, Open, SaslChallenge, SaslCode, SaslInit, SaslMechanisms, SaslOutcome, SaslResponse
from .phases import Phase
from .refusals import FORCED, ILLEGAL_STATE, NOT_ALLOWED, RESOURCE_LIMIT, ConnectionFault, fitting
from .sasl import ANONYMOUS, Login, Proof, checked, login_of

if TYPE_CHECKING:
    from .connection import Connection


class Greeting:
    def __init__(self, connection: Connection, version: str, instance: str, mechanisms: tuple[str, ...]) -> None:
        """`mechanisms`: of SASL, those that are offered."""
        self.connection = connection
        self.opened: Open | None = None
        """What the peer has said."""
        self._version, self._instance, self._mechanisms = version, instance, mechanisms
        self._greets_late = True
        """The client logs in by SASL first."""

    # -- what the peer says -----------------------------------------------------------------------------------------------------------
    def header(self, header: ProtocolHeader, events: list[Any]) -> None:
        connection, phase = self.connection, self.connection.phase
        wanted = SASL_HEADER if phase is Phase.GREETING else AMQP_HEADER
        if header.version != (1, 0, 0) or header.protocol not in (AMQP, SASL) or phase not in (Phase.GREETING, Phase.LOGGED_IN):
            self._turn_away(wanted, f"protocol {header.protocol} in version {header.version} is not spoken here, or not now")
        elif header.protocol == SASL and phase is Phase.GREETING:
            connection.phase = Phase.LOGGING_IN
            connection.out += (SASL_HEADER, sasl_frame(SaslMechanisms(self._mechanisms)))
        elif header.protocol == AMQP and phase is Phase.LOGGED_IN:
            connection.phase = Phase.GREETED
            connection.out.append(AMQP_HEADER)
        elif header.protocol == AMQP and ANONYMOUS in self._mechanisms:
            connection.phase = Phase.CHECKING
            self._greets_late = False
            connection.out.append(AMQP_HEADER)
            events.append(Login(ANONYMOUS, b"", ""))
        else:
            self._turn_away(wanted, "the client did not log in by SASL")

    def _turn_away(self, wanted: bytes, reason: str) -> None:
        """Say what is wanted, and close (transport 2.2)."""
        self.connection.out.append(wanted)
        self.connection.close(reason)

    def frame(self, each: Frame, events: list[Any]) -> None:
        """Before the connection is open. Raises ConnectionFault."""
        connection, performative = self.connection, each.performative
        if isinstance(performative, SaslInit) and connection.phase is Phase.LOGGING_IN:
            login = login_of(performative, self._mechanisms)
            connection.phase = Phase.CHECKING
            if login is None:
                connection.reject("the client wants a SASL mechanism that was not offered")
            else:
                events.append(login)
        elif isinstance(performative, SaslResponse) and connection.phase is Phase.PROVING:
            connection.phase = Phase.CHECKING
            events.append(Proof(checked(performative.response)))
        elif isinstance(performative, Open) and connection.phase is Phase.GREETED:
            if each.channel:
                raise ConnectionFault(NOT_ALLOWED, "open comes on channel 0")
            self.opened = performative
            connection.phase = Phase.OPENING
            events.append(opening_of(performative, connection.limits.container_id_max))
        else:
            raise ConnectionFault(ILLEGAL_STATE, f"{type(performative).__name__} came while the broker was {connection.phase.value}")

    # -- what it is told --------------------------------------------------------------------------------------------------------------
    def challenge(self, octets: bytes) -> None:
        self.connection.phase = Phase.PROVING
        self.connection.out.append(sasl_frame(SaslChallenge(octets)))

    def accept(self, additional: bytes | None) -> None:
        """The login is right. `additional`: what the mechanism has to say."""
        if self._greets_late:
            self.connection.phase = Phase.LOGGED_IN
            self.connection.out.append(sasl_frame(SaslOutcome(SaslCode.OK, additional)))
        else:
            self.connection.phase = Phase.GREETED

    def reject(self) -> None:
        self.connection.out.append(sasl_frame(SaslOutcome(SaslCode.AUTH)))

    def open(self) -> None:
        self.connection.phase = Phase.OPEN
        self.connection.out.append(frame(0, self._answer()))

    def refuse(self, error: Error) -> None:
        """Say why, in the words of the phase: only behind an open can all of it be said."""
        phase, out = self.connection.phase, self.connection.out
        if phase in (Phase.OPENING, Phase.GREETED):
            out += (frame(0, opening.refusal(self._answer())), fitting(0, Close(error), FRAME_OCTETS_MIN))
        elif phase in (Phase.LOGGING_IN, Phase.CHECKING, Phase.PROVING):
            out.append(sasl_frame(SaslOutcome(SaslCode.SYS_TEMP if error.condition in (FORCED, RESOURCE_LIMIT) else SaslCode.SYS_PERM)))
        elif phase is Phase.GREETING:
            out.append(SASL_HEADER)

    def _answer(self) -> Open:
        connection = self.connection
        limits = connection.limits
        return opening.answer(self._instance, self._version, limits.frame_octets_max, limits.channels_max, connection.idle.told)
