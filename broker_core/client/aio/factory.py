"""Where connections come from: a connection factory, configured once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, TypeVar

from broker_core.client.destinations import Queue, Topic
from broker_core.client.factory_settings import FactorySettings
from broker_core.client.lookup import Found, check_name

from .connection import Connection
from .opening import Opening

K = TypeVar("K", bound=Connection)


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
        return Opening(self._connection(Connection, username, password).open())

    @classmethod
    async def lookup(cls, name: str, **settings: Any) -> Self:
        """The connection factory that an operator set up under this name. `settings`: where the broker is, who asks, and whatever else the application
        sets itself; it counts where the object is not read-only. Connects for it. Raises InvalidDestinationException: there is none of this name, or it
        is no factory; IllegalStateException: a setting is read-only."""
        return cls._administered(await cls._finder(settings)._found(check_name(name)), settings)

    async def lookup_destination(self, name: str) -> Queue | Topic:
        """The queue or topic that an operator set up under this name, with what he set for messages and consumers. Raises as `lookup`."""
        return (await self._found(check_name(name))).destination()

    async def _found(self, name: str) -> Found:
        connection = await self._connection(Connection, lookup=name).open()
        try:
            return Found(name, connection.found)
        finally:
            await connection.close()

    def _connection(self, kind: type[K], username: str | None = None, password: str | None = None, lookup: str = "") -> K:
        settings = self._for_connection()
        if lookup:  # nobody's durable subscriptions are concerned
            object.__setattr__(settings, "configured_client_id", "")
        return kind(
            settings,
            lambda client_id: settings._machine(username, password, client_id, lookup),
            lambda link, address: link.open(address, settings.socket_connect_timeout, settings._context(address)),
        )
