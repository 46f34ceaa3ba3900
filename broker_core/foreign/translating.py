"""A MESSAGE of one broker as the SEND to another: what is said of persistence (item 121), what is handed on, what the next broker would misread.

Persistence: reliable and assured are `persistent:true` over there, the three levels below say nothing. Expiry is kept as an instant, and for RabbitMQ, which
knows only how long, said in its way, too. The identifier, the time and the redelivery that the message had are handed on as properties; and a name by which the
other broker may know it when it comes twice.
"""

from __future__ import annotations

from broker_core.engine.message import LEVEL_NAMES, STORED
from broker_core.stomp.mapping import BROKERS_OWN, DUPLICATE_ID_OCTETS_MAX, OTHER_EXPIRATION, OTHER_SCHEDULES, is_whole
from broker_core.stomp.sections import DUPLICATE_IDS

from .definition import RABBITMQ

MESSAGE_ID, TIMESTAMP, REDELIVERED, REPLY_TO = "foreign-message-id", "foreign-timestamp", "foreign-redelivered", "foreign-reply-to"
"""Of the message, as the broker told it from which it was taken; the last: where its sender wants a reply and only that broker can bring it."""
SPECIAL = frozenset((*BROKERS_OWN, *OTHER_SCHEDULES, OTHER_EXPIRATION, "destination", "persistent", "reliability", "expires", "priority", "reply-to"))
"""Of the frame or of the broker that wrote it, or said anew below."""
NAMED = ("/queue/", "/topic/")
"""Addresses that mean something to more than one connection. Which broker they are of is for those who agreed on them."""
GROUP = ("JMSXGroupID", "JMSXGroupSeq")


def is_persistent(headers: dict[str, str]) -> bool:
    """Of a MESSAGE: by the level that its broker gave it, else by what its sender said."""
    level = headers.get("reliability")
    if level in LEVEL_NAMES:
        return LEVEL_NAMES.index(level) >= STORED
    return headers.get("persistent", "").lower() == "true"


def sending(headers: dict[str, str], destination: str, now: int, *, source: str, target: str) -> list[tuple[str, str]]:
    """The headers of the SEND, but for receipt and content-length. `source`, `target`: kinds of brokers; `now`: ms since the epoch."""
    said = [("destination", destination)]
    if is_persistent(headers):
        said.append(("persistent", "true"))
    said += _expiry(headers, now, source, target)
    priority = headers.get("priority", "")
    if priority.isascii() and priority.isdigit():
        said.append(("priority", str(min(int(priority[:9]), 9))))
    reply_to = headers.get("reply-to")
    if reply_to:
        said.append(("reply-to" if reply_to.startswith(NAMED) else REPLY_TO, reply_to))
    said += _origin(headers, source)
    taken = {name for name, _ in said}
    for name, value in headers.items():
        if name not in SPECIAL and name not in taken and _may_be_said(name, value):
            said.append((name, value))
    return said


def _expiry(headers: dict[str, str], now: int, source: str, target: str) -> list[tuple[str, str]]:
    expires = headers.get("expires", "")
    instant = int(expires) if expires.isascii() and expires.isdigit() and len(expires) < 19 else 0
    lives = headers.get(OTHER_EXPIRATION, "")
    if not instant and source == RABBITMQ and lives.isascii() and lives.isdigit() and len(lives) < 16:
        instant = now + int(lives)
    if not instant:
        return []
    said = [("expires", str(instant))]
    if target == RABBITMQ:
        said.append((OTHER_EXPIRATION, str(max(instant - now, 0))))
    return said


def _origin(headers: dict[str, str], source: str) -> list[tuple[str, str]]:
    """Who it was: by the first broker of several."""
    said = []
    message_id = headers.get("message-id", "")
    if MESSAGE_ID not in headers and message_id:
        said.append((MESSAGE_ID, message_id))
    if TIMESTAMP not in headers and headers.get("timestamp"):
        said.append((TIMESTAMP, headers["timestamp"]))
    if headers.get("redelivered", "").lower() == "true":
        said.append((REDELIVERED, "true"))
    # RabbitMQ's message-id is of the delivery, not of the message: a second delivery has another.
    lasting = message_id if source != RABBITMQ else headers.get("amqp-message-id", "")
    if 0 < len(lasting.encode()) <= DUPLICATE_ID_OCTETS_MAX and not any(headers.get(name) for name in DUPLICATE_IDS):
        said.append((DUPLICATE_IDS[1], lasting))
    return said


def _may_be_said(name: str, value: str) -> bool:
    """A broker would refuse the whole message for it."""
    if name in DUPLICATE_IDS:
        return 0 < len(value.encode()) <= DUPLICATE_ID_OCTETS_MAX
    if name == GROUP[1]:
        return is_whole(value, 10)
    return name != GROUP[0] or 0 < len(value) <= 255
