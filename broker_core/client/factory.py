"""Where connections come from: a connection factory, configured once."""

from __future__ import annotations

import copy
import random
import ssl
import sys
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from .connection import Connection
from .exceptions import JMSException
from .machine import Address, Addresses, ConnectionMachine
from .settings import PROFILES, Profile, Settings
from .sockets import Socket


@dataclass(slots=True, kw_only=True)
class ConnectionFactory(Settings):
    """All settings by name; the defaults are Open MQ's. See `Settings` for each.

        factory = ConnectionFactory(address_list="stomp://broker:61613", username="shop", password="...")
        with factory.create_connection() as connection:
            ...
    """

    username: str = "guest"
    password: str = field(default="guest", repr=False)
    ssl_context: ssl.SSLContext | None = None
    """For `stomp+tls://` addresses; None: Python's default, which trusts the system's authorities and checks the host's name."""
    ssl_is_host_trusted: bool = False
    """Believe whoever answers: no certificate is checked. For tests only."""

    @classmethod
    def of_profile(cls, profile: Profile | str, **settings: Any) -> Self:
        """With the defaults of `sun`, `activemq` or `websphere`, and what is given beside them."""
        return cls(**(PROFILES[Profile(profile)] | settings))

    def create_connection(self, username: str | None = None, password: str | None = None) -> Connection:
        """Connect and log in. Messages come once it is started. Raises JMSException: nobody answers; JMSSecurityException: wrong password."""
        problem = self._problem()
        if problem:
            raise JMSException(f"the connection factory is not usable: {problem}")
        settings = copy.copy(self)
        if not settings.app_id:
            settings.app_id = Path(sys.argv[0]).name
        return Connection(settings, lambda client_id: self._machine(settings, username, password, client_id), self._open_socket)

    def _machine(
        self, settings: Settings, username: str | None, password: str | None, client_id: str
    ) -> tuple[ConnectionMachine, Addresses]:
        machine = ConnectionMachine(
            settings, self.username if username is None else username, self.password if password is None else password, client_id
        )
        return machine, Addresses(settings, random.randrange(1 << 16))  # noqa: S311  # spreads connections, guards nothing

    def _open_socket(self, address: Address) -> Socket:
        context = self.ssl_context
        if address.tls and context is None and self.ssl_is_host_trusted:
            context = ssl.create_default_context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return Socket(address, self.socket_connect_timeout, context)

    def _problem(self) -> str:
        """What is wrong with the settings; empty: nothing. What is merely dangerous is warned of."""
        if self.persistent_reliability is not None and not self.persistent_reliability.is_persistent:
            warnings.warn(
                f"persistent messages are sent as {self.persistent_reliability.value}: they are lost when the broker stops (checklist item 118)",
                stacklevel=3,
            )
        if self.nonpersistent_reliability is not None and self.nonpersistent_reliability.is_persistent:
            return f"nonpersistent_reliability is {self.nonpersistent_reliability.value}, which is a level of persistent messages"
        if self.override_priority is not None and not 0 <= self.override_priority <= 9:
            return f"override_priority is {self.override_priority}: it must be a number from 0 to 9"
        if not 0 < self.consumer_flow_threshold <= 100:
            return f"consumer_flow_threshold is {self.consumer_flow_threshold}: it must be more than 0 and at most 100 percent"
        if self.address_list_iterations == 0:
            return "address_list_iterations is 0: use 1, or -1 for ever"
        for name in ("reconnect_interval", "socket_connect_timeout", "ping_interval", "ack_timeout", "connection_flow_count", "connection_flow_limit"):
            if getattr(self, name) < 0:
                return f"{name} is {getattr(self, name)}: it must not be negative"
        return ""
