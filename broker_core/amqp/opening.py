"""Open and its answer: what the broker offers, and how it refuses (transport 2.7.1, the JMS mapping)."""

from __future__ import annotations

from dataclasses import dataclass

from .frames import FRAME_OCTETS_MIN
from .performatives import Error, Open
from .refusals import INVALID_FIELD, ConnectionFault, quoted
from .types import Symbol

SOLE_CONNECTION, ANONYMOUS_RELAY, DELAYED_DELIVERY, SHARED_SUBS = "sole-connection-for-container", "ANONYMOUS-RELAY", "DELAYED_DELIVERY", "SHARED-SUBS"
OFFERED = (SOLE_CONNECTION, ANONYMOUS_RELAY, DELAYED_DELIVERY, SHARED_SUBS)
PRODUCT = "Surety"
FAILED = "amqp:connection-establishment-failed"


@dataclass(slots=True)
class Opening:
    """A peer that is logged in wants to begin. Answer with `open` or `refuse_opening`."""

    container_id: str
    sole: bool
    """No other connection may have this container-id at the same time: it stands for a JMS client identifier."""


def opening_of(opened: Open, container_id_max: int) -> Opening:
    """Raises ConnectionFault."""
    container = opened.container_id
    if len(container) > container_id_max:
        raise ConnectionFault(INVALID_FIELD, f"the container-id must have at most {container_id_max} characters", {"invalid-field": Symbol("container-id")})
    if opened.max_frame_size < FRAME_OCTETS_MIN:
        text = f"max-frame-size is {opened.max_frame_size}; every peer takes frames of {FRAME_OCTETS_MIN} octets"
        raise ConnectionFault(INVALID_FIELD, text, {"invalid-field": Symbol("max-frame-size")})
    return Opening(container, SOLE_CONNECTION in opened.desired_capabilities)


def answer(instance: str, version: str, frame_octets_max: int, channels_max: int, idle_ms: int) -> Open:
    """Ours. `instance` names the installation."""
    return Open(
        f"surety-{instance}", None, frame_octets_max, channels_max - 1, idle_ms,
        offered_capabilities=OFFERED, properties={"product": PRODUCT, "version": version},
    )  # fmt: skip


def refusal(answered: Open) -> Open:
    """The same, where a Close with the reason follows at once."""
    answered.properties = {**(answered.properties or {}), FAILED: True}
    return answered


def taken(container_id: str, sentence: str) -> Error:
    """The container-id is another connection's."""
    return Error(INVALID_FIELD, f"{sentence} ({quoted(container_id)})", {"invalid-field": Symbol("container-id")})
