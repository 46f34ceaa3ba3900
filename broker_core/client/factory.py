"""Where connections come from: a connection factory, configured once."""

from __future__ import annotations

from dataclasses import dataclass

from .connection import Connection
from .factory_settings import FactorySettings
from .sockets import Socket


@dataclass(slots=True, kw_only=True)
class ConnectionFactory(FactorySettings):
    """All settings by name; the defaults are Open MQ's. See `Settings` for each.

        factory = ConnectionFactory(address_list="stomp://broker:61613", username="shop", password="...")
        with factory.create_connection() as connection:
            ...
    """

    def create_connection(self, username: str | None = None, password: str | None = None) -> Connection:
        """Connect and log in. Messages come once it is started. Raises JMSException: nobody answers; JMSSecurityException: wrong password."""
        settings = self._for_connection()
        return Connection(
            settings,
            lambda client_id: settings._machine(username, password, client_id),
            lambda address: Socket(address, settings.socket_connect_timeout, settings._context(address)),
        )
