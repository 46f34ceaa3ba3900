"""What a consumer gets beside the message as it came: its header, and the annotations that the broker adds or takes away."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from .composite import write_composite
from .encoding import encode
from .performatives import UINT_MAX, MessageHeader
from .sections import open_message
from .types import Symbol, ULong


def write_header(durable: bool, priority: int, ttl: int, failures: int) -> bytes:
    """The section header. `ttl`: ms; 0: it lives for ever. `failures`: earlier deliveries that failed; without any, this is the first one."""
    if ttl:
        return write_composite(MessageHeader(durable, priority, min(ttl, UINT_MAX), not failures, failures))
    return _remembered_header(durable, priority, failures)


@lru_cache(maxsize=1024)
def _remembered_header(durable: bool, priority: int, failures: int) -> bytes:
    return write_composite(MessageHeader(durable, priority, None, not failures, failures))


def with_annotations(octets: bytes, changes: dict[str, Any]) -> bytes:
    """The octets of an Opening with these message-annotations, in place of those that have the same names; None takes one away."""
    opening = open_message(octets)
    assert opening is not None, "complete"
    annotations = {name: value for name, value in opening.annotations().items() if name not in changes}
    annotations |= {Symbol(name): value for name, value in changes.items() if value is not None}
    rest = octets[opening.annotations_end :]
    return ANNOTATIONS_START + encode(annotations) + rest if annotations else rest


def without_body(octets: bytes) -> bytes:
    """The octets of an Opening whose body was cut off: as much of a body as there must be, of the same kind."""
    opening = open_message(octets)
    assert opening is not None, "complete"
    return octets[: opening.application_properties_end] + _EMPTY[opening.content]


_EMPTY: dict[type | None, bytes] = {bytes: b"\0\x53\x75\xa0\0", ULong: b"\0\x53\x77\xa0\0", str: b"\0\x53\x77\xa1\0", None: b"\0\x53\x77\x40"}


def without_expiry(octets: bytes) -> bytes:
    """The octets of an Opening without absolute-expiry-time: clients throw away what has expired, even if it was among the dead that they looked for it."""
    opening = open_message(octets)
    assert opening is not None, "complete"
    properties = opening.properties()
    if properties.absolute_expiry_time is None:
        return octets
    written = write_composite(replace(properties, absolute_expiry_time=None))
    return octets[: opening.annotations_end] + written + octets[opening.properties_end :]


ANNOTATIONS_START = b"\0\x53\x72"
