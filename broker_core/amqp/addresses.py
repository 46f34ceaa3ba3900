"""Addresses as AMQP clients write them, and the broker's: `queue://N`, `topic://N`, `temp-queue://N`, `temp-topic://N`, the same with slashes, a bare N is
a queue. What a terminus's capabilities, or a message's annotations, say of the kind counts more (JMS mapping)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from broker_core.engine import address as addresses
from broker_core.engine.pattern import has_wildcards, problem
from broker_core.engine.refusal import Refusal

from .refusals import INVALID_FIELD, NOT_ALLOWED, LinkFault, quoted

CAPABILITIES = {"queue": "queue", "topic": "topic", "temporary-queue": "temp-queue", "temporary-topic": "temp-topic"}
"""Of a terminus: what kind of node it is."""
CAPABILITY_OF = {kind: capability for capability, kind in CAPABILITIES.items()}
KINDS = ("queue", "topic", "temp-queue", "temp-topic")
"""By the numbers of the annotations that tell of which kind the destinations in `to` and `reply-to` are:"""
DESTINATION_KIND, REPLY_KIND = "x-opt-jms-dest", "x-opt-jms-reply-to"


def kind_of(capabilities: Sequence[str]) -> str:
    """Of the node that a terminus names; empty: it says nothing."""
    for capability in capabilities:
        if capability in CAPABILITIES:
            return CAPABILITIES[capability]
    return ""


def kind_numbered(number: object) -> str:
    """What an annotation says; empty: nothing."""
    return KINDS[number] if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < len(KINDS) else ""


@lru_cache(maxsize=4096)
def address_of(written: str, kind: str = "") -> str:
    """The canonical address. Raises LinkFault."""
    address = _checked(written, kind)
    if not addresses.is_valid(address):
        reason = "wildcards are for consumers, on topics" if has_wildcards(address) else Refusal.INVALID_DESTINATION.value
        raise LinkFault(INVALID_FIELD, f"the address {quoted(written)} is not valid: {reason}")
    return address


def pattern_of(written: str, kind: str) -> str:
    """The canonical address, or the pattern, of what a consumer names. Raises LinkFault."""
    address = _checked(written, kind)
    if not has_wildcards(address):
        return address_of(written, kind)
    if sentence := problem(address):
        raise LinkFault(INVALID_FIELD, f"the address {quoted(written)} is not valid: {sentence}")
    return address


def _checked(written: str, kind: str) -> str:
    if address := canonical(written, kind):
        return address
    raise LinkFault(INVALID_FIELD, f"the address {quoted(written)} is none of queue://NAME, topic://NAME, temp-queue://NAME, temp-topic://NAME")


def canonical(written: str, kind: str = "") -> str:
    """Its name may not be valid. Empty: it is no address of ours."""
    for known in KINDS:
        for prefix in (f"{known}://", f"/{known}/"):
            if written.startswith(prefix):
                return f"{kind or known}/{written[len(prefix) :]}"
    return "" if written.startswith("/") else f"{kind or 'queue'}/{written}"


@lru_cache(maxsize=4096)
def written(address: str) -> str:
    """As clients are told it."""
    kind, _, name = address.partition("/")
    return f"{kind}://{name}"


def check_own(address: str, session: str) -> None:
    """A temporary destination is consumed by the connection that made it and by nobody else. Raises LinkFault."""
    if addresses.is_temporary(address) and not address.partition("/")[2].startswith(f"{session}."):
        raise LinkFault(NOT_ALLOWED, Refusal.NOT_THE_OWNER.value)
