"""Headers as the memory store keeps them."""

from __future__ import annotations

from typing import Any

from broker_core.engine.message import Header

from .rows import instant, text_octets


def cleaned(header: Header) -> Header:
    """As its columns give it back."""
    kept: dict[str, Any] = {name: text_octets(getattr(header, name)).decode() for name in ("message_id", "client_id", "annotations")}
    kept |= {"expiration": instant(header.expiration), "delay": 0, "group": None}
    if all(getattr(header, name) == value for name, value in kept.items()):
        return header
    made = replace_header(header, **kept)
    made.lane = header.lane  # which need not be the one of its reliability (R19)
    return made


def replace_header(header: Header, **changes: Any) -> Header:
    names = ("octets", "priority", "reliability", "expiration", "encoding", "message_id", "client_id", "annotations")
    return Header(**({name: getattr(header, name) for name in names} | changes))
