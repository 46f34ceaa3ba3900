"""What every protocol's peers share of the node they are connected to, and its listening sockets."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Collection, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Protocol, cast

from broker_core.config import BrokerConfig
from broker_core.conversion import ToAmqp, to_stomp
from broker_core.stomp.sections import SectionMemory
from broker_core.store import Store

from .auth import Accounts
from .certificate import ends_at
from .client_ids import ClientIds
from .clock import Clock
from .host import Host
from .limits import amqp_limits_of, stomp_limits_of
from .metrics import Metrics
from .refused_tries import LOGIN, USE, RefusedTries
from .sessions import Sessions
from .tls import TlsListener

log = logging.getLogger("surety.listener")

BACKLOG = 1024
"""Connections waiting to be accepted: all clients of a restarted node come at once."""


class Peer(Protocol):
    @property
    def is_client(self) -> bool:
        """Not a connection of the broker's own, such as a link's to another broker."""

    @property
    def number(self) -> int: ...

    @property
    def is_busy(self) -> bool:
        """Something that it has said is not done yet, or a large body is on its way to or from it."""

    def shut(self, sentence: str) -> None:
        """Say why, and close when that is read."""

    def sever(self) -> None:
        """Close at once."""

    def hold(self, held: bool = True) -> None:
        """Read nothing more; or go on."""

    def starve(self, starved: bool) -> None:
        """Deliver nothing more to it; or go on."""

    def bound_unsettled(self, most: int) -> None:
        """Take no more deliveries if there are that many unsettled; go on when a quarter has been settled."""


class Node:
    """A node that serves, as its peers see it."""

    def __init__(
        self,
        config: BrokerConfig,
        host: Host,
        store: Store,
        clock: Clock,
        accounts: Accounts,
        metrics: Metrics,
        version: str,
        instance: str,
        epoch: int,
        sessions: Sessions | None = None,
    ) -> None:
        """`sessions`: where logins are noted; None: nobody else asks."""
        self.config = config
        self.host = host
        self.store = store
        self.clock = clock
        self.accounts = accounts
        self.metrics = metrics
        self.refused_logins = RefusedTries("a stranger", LOGIN)
        self.refused_uses = RefusedTries("clients", USE)
        self.version = version
        """Of the broker."""
        self.server_name = f"Surety/{version}"
        self.instance = instance
        self.epoch = epoch
        """The lease's: together with it a connection's number is used once."""
        self.sessions = sessions or Sessions()
        self.client_ids = ClientIds()
        self.stomp_limits = stomp_limits_of(config)
        self.stomp_sections = SectionMemory()
        self.to_amqp = ToAmqp(instance)
        self.to_stomp = partial(to_stomp, named=host.address_of)
        self.amqp_limits = amqp_limits_of(config)
        self._peers: set[Peer] = set()
        self._handshakes: set[asyncio.Protocol] = set()
        """Of TLS, under way."""
        self._numbered = 0
        self._servers: dict[str, asyncio.Server | TlsListener] = {}
        self._openers: dict[str, Callable[[], Awaitable[asyncio.Server | TlsListener]]] = {}
        """Of every listener that the configuration names."""
        self._ports: dict[str, int] = {}
        self.paused: set[str] = set()
        """Listeners that an operator has closed."""
        self._draining = False
        self.quiesced = False
        """No client is let in any more; those that are there go on."""
        self._certificates: dict[str, str] = {}
        """Who issues clients' certificates, by listener with TLS."""
        self._certificates_at: tuple[tuple[int, int], ...] = ()
        self.certificate_ends_at: float | None = None
        """Of the one that is shown, in seconds since the epoch. None: none is shown, or nobody knows."""

    def number_peer(self) -> int:
        self._numbered += 1
        return self._numbered

    def expect(self, peer: asyncio.Protocol) -> bool:
        """Count a connection whose TLS handshake begins; False if there is no room for it."""
        if self._draining or self.quiesced or self.connections >= self.config.connections_max:
            return False
        self._handshakes.add(peer)
        self._count()
        return True

    def expect_no_more(self, peer: asyncio.Protocol) -> None:
        """Its handshake has ended, well or not."""
        self._handshakes.discard(peer)
        self._count()

    def admit(self, peer: Peer) -> str:
        """Count a connection in; a sentence if it must be refused."""
        self._handshakes.discard(cast(asyncio.Protocol, peer))
        self._peers.add(peer)
        self._count()
        self.metrics.connections_total += 1
        if self._draining:
            return "the broker is shutting down"
        if self.quiesced and peer.is_client:
            return "the broker is quiesced by an operator and takes no new connections: connect later"
        if self.connections > self.config.connections_max:
            return f"the broker has {self.config.connections_max} connections and takes no more"
        return ""

    @property
    def clients(self) -> Iterator[Peer]:
        """Connected, whether they have logged in or not."""
        return (peer for peer in list(self._peers) if peer.is_client)

    @property
    def connections(self) -> int:
        """That there are, handshakes included."""
        return len(self._peers) + len(self._handshakes)

    def _count(self) -> None:
        self.metrics.connections = self.connections

    def dismiss(self, peer: Peer) -> None:
        self._peers.discard(peer)
        self._count()

    def bound_unsettled(self) -> None:
        """R20's cap on the deliveries of a whole connection. To be called about once a second: to count them at each delivery would cost more
        than the few MiB that a greedy client gets too much in a second."""
        for peer in list(self._peers):
            peer.bound_unsettled(self.config.connection_unsettled_max)

    # -- listeners ----------------------------------------------------------------------------------------------------------------------
    async def listen(
        self, stomp: Callable[[Node], asyncio.Protocol], amqp: Callable[[Node], asyncio.Protocol], paused: Collection[str] = ()
    ) -> None:
        """Open every listener that the configuration names, but for those that are `paused`. Raises OSError if a port is taken."""
        config = self.config
        self._prepare("stomp", lambda: stomp(self), config.stomp_port, config.stomp_tls_port, "")
        self._prepare("amqp", lambda: amqp(self), config.amqp_port, config.amqp_tls_port, config.tls_client_ca)
        self.paused = {name for name in self._openers if name in paused}
        for name in self._openers:
            if name not in self.paused:
                await self._open(name)

    def _prepare(self, name: str, peer: Callable[[], asyncio.Protocol], port: int, tls_port: int, client_ca: str) -> None:
        """`client_ca`: who issues certificates with which clients log in; empty: nobody."""
        config = self.config

        async def plain() -> asyncio.Server:
            return await asyncio.get_running_loop().create_server(peer, config.bind, port, backlog=BACKLOG)

        async def secured() -> TlsListener:
            tls = TlsListener(_tls(config, client_ca), config.login_seconds, peer, self.expect, self.expect_no_more, self.host.fail)
            self.certificate_ends_at = _certificate_ends_at(config)
            await tls.listen(config.bind, tls_port, BACKLOG)
            return tls

        self._openers[name], self._ports[name] = plain, port
        if config.tls:
            self._certificates[name] = client_ca
            self._certificates_at = _changed_at(config)
            self._openers[f"{name}+tls"], self._ports[f"{name}+tls"] = secured, tls_port

    async def _open(self, name: str) -> None:
        self._servers[name] = await self._openers[name]()
        log.info("Listening for %s on %s:%d", name, self.config.bind, self._ports[name])

    def pause_listener(self, name: str) -> None:
        """Its port is closed; who has come by it stays."""
        self.paused.add(name)
        if server := self._servers.pop(name, None):
            server.close()
            log.info("An operator has paused the listener for %s", name)

    async def resume_listener(self, name: str) -> None:
        """Raises OSError if the port is taken, or the certificate cannot be used."""
        if name not in self._servers:
            await self._open(name)
        self.paused.discard(name)

    def follow_certificates(self) -> None:
        """If their files have been replaced, handshakes from now on show the new ones. Files that are no certificate and its key, such as those that are just
        being written, change nothing. To be called about once a second."""
        if not self._certificates or (found := _changed_at(self.config)) == self._certificates_at:
            return
        self._certificates_at = found
        try:
            contexts = {name: _tls(self.config, client_ca) for name, client_ca in self._certificates.items()}
            self.certificate_ends_at = _certificate_ends_at(self.config)
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            log.error("The certificate stays as it is: %s cannot be used: %s", self.config.tls_cert, error)
            return
        for name, context in contexts.items():
            server = self._servers.get(f"{name}+tls")
            if isinstance(server, TlsListener):  # one that is paused reads them when it opens
                server.renew(context)
        log.info("The certificate of %s is shown from now on", self.config.tls_cert)

    @property
    def listeners(self) -> dict[str, dict[str, Any]]:
        """Name -> whether it is up, or paused by an operator, and where."""
        return {name: self._listener(name) for name in self._openers}

    def _listener(self, name: str) -> dict[str, Any]:
        server = self._servers.get(name)
        up = server is not None and server.is_serving()
        return {"up": up, "paused": name in self.paused, "host": self.config.bind, "port": self._ports[name]}

    def wind_down(self) -> None:
        """No new connections, nothing more read from those there are."""
        self._draining = True
        for server in self._servers.values():
            server.close()
        for peer in self._peers:
            peer.hold()

    async def close(self, sentence: str) -> None:
        """Tell every peer and close it once its outputs are flushed; those that do not read them within a second, as they are: behind
        them is no node any more."""
        self.wind_down()
        for peer in list(self._peers):
            peer.shut(sentence)
        for _ in range(20):
            if not self._peers:
                return
            await asyncio.sleep(0.05)
        for peer in list(self._peers):
            peer.sever()


def _changed_at(config: BrokerConfig) -> tuple[tuple[int, int], ...]:
    """When each of the files was written, in ns, and its inode; of one that is not there, nothing."""
    found = []
    for path in (config.tls_cert, config.tls_key, config.tls_client_ca):
        try:
            status = Path(path).stat()
        except OSError:
            found.append((0, 0))
        else:
            found.append((status.st_mtime_ns, status.st_ino))
    return tuple(found)


def _certificate_ends_at(config: BrokerConfig) -> float | None:
    """Raises OSError."""
    return ends_at(Path(config.tls_cert).read_text("ascii", "replace"))


def _tls(config: BrokerConfig, client_ca: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(config.tls_cert, config.tls_key)
    # Session tickets come right after the handshake. A client that reads in one thread and writes in another (stomp.py before 9) may lose the CONNECT
    # that it writes while it reads them, and hang until its login is late; and who stays connected for days has nothing of resuming a session.
    context.num_tickets = 0
    if client_ca:
        context.load_verify_locations(client_ca)
        context.verify_mode = ssl.CERT_OPTIONAL
    return context
