"""Where connections come from: a connection factory, configured once."""

from __future__ import annotations

from dataclasses import dataclass

from broker_core.client.factory_settings import FactorySettings

from .connection import Connection
from .opening import Opening


@dataclass(slots=True, kw_only=True)
class ConnectionFactory(FactorySettings):
    """All settings by name; the defaults are Open MQ's. See `Settings` for each.

        factory = ConnectionFactory(address_list="stomp://broker:61613", username="shop", password="...")
        async with factory.create_connection() as connection:
            ...
    """

    def create_connection(self, username: str | None = None, password: str | None = None) -> Opening[Connection]:
        """Connect and log in. Messages come once it is started, as `async with` does. Raises JMSException: nobody answers;
        JMSSecurityException: wrong password."""
        settings = self._for_connection()
        connection = Connection(
            settings,
            lambda client_id: settings._machine(username, password, client_id),
            lambda link, address: link.open(address, settings.socket_connect_timeout, settings._context(address)),
        )
        return Opening(connection.open())
