"""A connection: less the waiting."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from broker_core.client.bounds import wrong_client_id
from broker_core.client.exceptions import IllegalStateException, InvalidClientIDException, JMSException
from broker_core.client.machine import ConnectionMachine, Phase
from broker_core.client.settings import AcknowledgeMode, Settings

from .session import SessionFace

S = TypeVar("S", bound=SessionFace[Any, Any, Any])
"""The connection's sessions."""
E = TypeVar("E")
"""What an exception listener is."""


class ConnectionFace(Generic[S, E]):
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._machine: ConnectionMachine
        self._exception_listener: E | None = None
        self._sessions: list[S] = []
        self._used = False

    @property
    def client_id(self) -> str:
        """The client identifier, which durable subscriptions belong to; empty: none."""
        return self._machine.client_id

    @property
    def found(self) -> str:
        """For the factory: the administered object that was asked for, as the broker says it."""
        return self._machine.found

    def _check_client_id(self, client_id: str) -> None:
        """Raise if it cannot be set, or not now."""
        self._machine.check()
        if not client_id:
            raise InvalidClientIDException("a client identifier cannot be empty")
        if wrong := wrong_client_id(client_id):
            raise InvalidClientIDException(f"the client identifier {wrong}")
        if self._settings.disable_set_client_id or self._settings.configured_client_id:
            raise IllegalStateException("the connection factory has configured the client identifier: it cannot be set here")
        if self._used or self.client_id:
            raise IllegalStateException("the client identifier must be set before the connection is used, and once: make a new connection for another")

    @property
    def exception_listener(self) -> E | None:
        """Told once, when the connection has failed for good."""
        return self._exception_listener

    @exception_listener.setter
    def exception_listener(self, listener: E | None) -> None:
        self._exception_listener = listener

    def forget(self, session: S) -> None:
        """For the session: it is closed."""
        if session in self._sessions:
            self._sessions.remove(session)

    @property
    def is_closed(self) -> bool:
        """By its application, or because it failed."""
        return self._machine.phase is Phase.CLOSED


def mode_of(acknowledge_mode: AcknowledgeMode, transacted: bool) -> AcknowledgeMode:
    """Of a session to be created."""
    asked: object = acknowledge_mode
    if asked not in list(AcknowledgeMode) or isinstance(asked, bool):
        others = ", ".join(mode.name for mode in AcknowledgeMode if mode is not AcknowledgeMode.SESSION_TRANSACTED)
        raise JMSException(f"{asked!r} is no acknowledge mode: use one of AcknowledgeMode's {others}, or transacted=True")
    if acknowledge_mode == AcknowledgeMode.SESSION_TRANSACTED:
        raise JMSException("SESSION_TRANSACTED cannot be asked for: create the session with transacted=True")
    return AcknowledgeMode.SESSION_TRANSACTED if transacted else AcknowledgeMode(acknowledge_mode)
