"""Messages as operators see them: pages of a queue or of a subscription, one message, its body."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import connection

from broker_core.viewing import MessageFilter, StoredBody, rendering
from broker_core.viewing.groups import Groups
from broker_core.viewing.groups import groups as grouped
from broker_core.viewing.page import Key, Page, Seen, browse
from console.permissions import BROWSE_BODIES, BROWSE_HEADERS, may

from .audit import Actor, require
from .looking import look, read, shared
from .refusals import NotThere

MESSAGES_MAX = 1_000
EXPORT_PAGE = 100


class NoMessage(NotThere):
    """It is not there any more, or never was."""


@dataclass(slots=True, frozen=True)
class View:
    """One message, all of it that the actor may see."""

    seen: Seen
    headers: Mapping[str, str]
    properties: Mapping[str, Any]
    added: Mapping[str, Any]
    body: rendering.ShownBody | None
    """None: the actor may not read bodies here."""


def page(
    actor: Actor, address: str, wanted: MessageFilter, limit: int, *, after: Key | None = None, newest_first: bool = False, subscription: int | None = None,
    bodies: bool = False,
) -> Page:  # fmt: skip
    """Raises PermissionDenied, NodeSilent, Declined. Whoever looks for what bodies say must be allowed to read them."""
    require(actor, BROWSE_HEADERS, "browse", address, reads=True)
    if wanted.needs_body or bodies:
        require(actor, BROWSE_BODIES, "browse", address, reads=True)
    return browse(
        lambda asked: look(actor.name, "browse", address, asked), read, time.monotonic, wanted, min(limit, MESSAGES_MAX), after=after,
        newest_first=newest_first, subscription=subscription, bodies=bodies,
    )  # fmt: skip


def pages(actor: Actor, address: str, wanted: MessageFilter, limit: int | None = None, *, subscription: int | None = None) -> Iterator[list[Seen]]:
    """Messages with their bodies, `limit` at the most (None: all there are), oldest first; some ms of work at a time. Raises as `page`."""
    after: Key | None = None
    while limit is None or limit > 0:
        found = page(actor, address, wanted, EXPORT_PAGE if limit is None else min(limit, EXPORT_PAGE), after=after, subscription=subscription, bodies=True)
        if limit is not None:
            limit -= len(found.seen)
        yield found.seen
        after = found.next
        if after is None:
            return


def groups(actor: Actor, address: str, after: Key | None = None, *, again: bool = False) -> Groups:
    """Dead messages of a queue by reason, origin and error, as far as one look goes; `again`: as of the last second will do. Raises as `page`."""
    require(actor, BROWSE_HEADERS, "browse", address, reads=True)

    def counted() -> Groups:
        return grouped(lambda asked: look(actor.name, "browse", address, asked), read, time.monotonic, after)

    return shared(("groups", address, after), counted) if again else counted()


# -- one message ------------------------------------------------------------------------------------------------------------------------
def found(actor: Actor, address: str, key: Key, subscription: int | None = None) -> Seen:
    """The message with its body, if it is still there. Raises NoMessage, and as `look`."""
    seen = browse(
        lambda asked: look(actor.name, "browse", address, asked), read, time.monotonic, MessageFilter(), 1, after=key, subscription=subscription, bodies=True
    ).seen
    if not seen or (seen[0].lane, seen[0].message.position) != key:
        raise NoMessage("There is no such message any more: it was consumed, moved or removed.")
    return seen[0]


def message(actor: Actor, address: str, key: Key, subscription: int | None = None) -> View:
    """Raises PermissionDenied, NoMessage, NodeSilent, Declined."""
    require(actor, BROWSE_HEADERS, "browse", address, reads=True)
    it = found(actor, address, key, subscription)
    headers, properties, added = rendering.headers_of(it.message)
    if not may(actor, BROWSE_BODIES, address):
        return View(it, headers, properties, added, None)
    content = rendering.content_of(it.message)
    head = b"".join(chunks(content.body, rendering.SHOWN_OCTETS)) if content is not None and isinstance(content.body, StoredBody) else b""
    return View(it, headers, properties, added, rendering.shown(content, head))


def body(actor: Actor, address: str, key: Key, subscription: int | None = None) -> tuple[rendering.Content, Iterator[bytes]]:
    """The whole body, a chunk at a time. Raises as `message`."""
    require(actor, BROWSE_BODIES, "read body", address, reads=True)
    content = rendering.content_of(found(actor, address, key, subscription).message)
    if content is None:
        raise NoMessage("The message has no body any more.")
    return content, _all(content)


def _all(content: rendering.Content) -> Iterator[bytes]:
    if content.beginning:
        yield content.beginning
    if isinstance(content.body, StoredBody):
        yield from chunks(content.body)
    else:
        yield content.body


def chunks(stored: StoredBody, octets: int = 1 << 20) -> Iterator[bytes]:
    """All of it, or of less than a chunk no more than so many octets. Raises NoMessage: its message was settled meanwhile."""
    left, number = stored.size if octets >= 1 << 20 else min(stored.size, octets), 0
    while left > 0:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT substr(octets, 1, %(octets)s) FROM surety.body_chunk WHERE shard = 0 AND body = %(body)s AND chunk = %(chunk)s",
                {"octets": octets, "body": stored.body, "chunk": number},
            )
            row = cursor.fetchone()
        if row is None:
            raise NoMessage("The message was consumed while its body was read.")
        yield bytes(row[0])
        left, number = left - len(row[0]), number + 1
