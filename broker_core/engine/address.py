"""Canonical addresses: `queue/orders`, `topic/prices`. Names follow Open MQ: letters, digits, _ $ . - and start with none of `mq.` but ours."""

from __future__ import annotations

import re

DEAD_MESSAGE_QUEUE = "queue/mq.sys.dmq"
NAME_OCTETS_MAX = 255
"""A name fits a PostgreSQL index entry and a log line; ActiveMQ's and RabbitMQ's limit is the same."""
KINDS = ("queue", "topic", "temp-queue", "temp-topic")

_NAME = re.compile(r"[^\x00-\x20\x7f/*>][^\x00-\x1f\x7f*>]*")


def is_valid(address: str) -> bool:
    """True if `address` is `<kind>/<name>` with a name that can be stored, listed and addressed from every protocol."""
    kind, slash, name = address.partition("/")
    return kind in KINDS and slash == "/" and len(name.encode("utf-8", "surrogatepass")) <= NAME_OCTETS_MAX and _NAME.fullmatch(name) is not None


def is_topic(address: str) -> bool:
    """True for topics, temporary ones included."""
    return address.startswith(("topic/", "temp-topic/"))


def is_temporary(address: str) -> bool:
    """True for what belongs to one connection and ends with it."""
    return address.startswith("temp-")


def is_reserved(address: str) -> bool:
    """True for destinations of the broker itself, which clients may not create."""
    return address.partition("/")[2].startswith("mq.")
