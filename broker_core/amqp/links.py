"""The links of one connection, of all its sessions: what is made of an attach, and how the engine calls it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_core.engine.commands import Lookup

from .addresses import address_of, kind_of, written
from .coordinator import Transactions
from .performatives import SENDER, Attach, Coordinator, Target
from .receiver import Receiver
from .refusals import INVALID_FIELD, NOT_FOUND, RESOURCE_LIMIT, RESOURCE_LOCKED, LinkFault, SessionFault, quoted
from .sender import Sender
from .terminus import consumer_of, lifetime, temporary_kind

if TYPE_CHECKING:
    from .connection import Connection
    from .session import Session

SESSIONS_A_MICROSECOND = 4
"""Looked through for each attach."""
LINKS_PER_PEER = 65536
"""The engine's number of a link is peer * 65536 + n: so many links can be told apart on one connection."""


class Links:
    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.senders: dict[int, Sender] = {}
        """By the engine's number."""
        self._count = self._made = 0

    def make(self, session: Session, attach: Attach) -> Sender | Receiver | Transactions:
        """Raises LinkFault."""
        link = self._made_of(session, attach)
        if too_large := session.overflow(link.answer()):
            raise LinkFault(too_large.condition, too_large.description or "")
        if isinstance(link, Sender) and link.link:
            self.senders[link.link] = link
        return link

    def _made_of(self, session: Session, attach: Attach) -> Sender | Receiver | Transactions:
        connection = self.connection
        if attach.role == SENDER:  # the peer's: it produces
            return Transactions(session, attach) if isinstance(attach.target, Coordinator) else self._receiver(session, attach)
        number = self._next()
        consumer = consumer_of(attach, connection.peer, number, connection.client_id, connection.temporaries, self._temporary())
        connection.effort += consumer.effort
        if isinstance(consumer.commands[-1], Lookup):
            return Sender(session, attach, 0, consumer)
        return Sender(session, attach, number, consumer)

    def check_name(self, attach: Attach) -> None:
        """Raises LinkFault, SessionFault."""
        limits, sessions = self.connection.limits, self.connection.sessions.by_channel.values()
        self.connection.effort += len(sessions) // SESSIONS_A_MICROSECOND
        if sum([session.unanswered for session in sessions]) > limits.links_max:
            raise SessionFault(RESOURCE_LIMIT, f"more than {limits.links_max} links of one connection were detached, and that was not answered")
        if len(attach.name) > limits.name_max:
            raise LinkFault(INVALID_FIELD, f"a link's name has at most {limits.name_max} characters")
        links = 0
        for session in sessions:
            links += len(session.links)
            if (attach.name, attach.role) in session.names:
                raise LinkFault(RESOURCE_LOCKED, f"a link {quoted(attach.name)} is attached on this connection")
        if links >= limits.links_max:
            raise LinkFault(RESOURCE_LIMIT, f"more than {limits.links_max} links on one connection")

    def forget(self, link: int) -> None:
        """The engine says nothing of it any more."""
        self.senders.pop(link, None)

    def _receiver(self, session: Session, attach: Attach) -> Receiver:
        target = attach.target
        if not isinstance(target, Target):
            raise LinkFault(NOT_FOUND, "no link of this name is known whose target could be told: a producer states its own")
        if target.dynamic:
            address = f"{temporary_kind(target.capabilities)}/{self._temporary()}"
            answered = Target(
                written(address), dynamic=True, expiry_policy="link-detach", dynamic_node_properties=lifetime(), capabilities=target.capabilities
            )  # fmt: skip
            return Receiver(session, attach, address, answered)
        address = "" if target.address is None else address_of(target.address, kind_of(target.capabilities))
        return Receiver(session, attach, address, target)

    def _next(self) -> int:
        while True:
            self._count += 1
            link = self.connection.peer * LINKS_PER_PEER + self._count % LINKS_PER_PEER
            if link not in self.senders:
                return link

    def _temporary(self) -> str:
        self._made += 1
        return f"{self.connection.temporaries}.{self._made}"
