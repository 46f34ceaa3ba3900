"""All composite types of AMQP 1.0 as one table: each class is a described list, its attributes are the fields in their order (transport 2.7, messaging 3,
transactions 4.5, security 5.3). An attribute is None where the peer said nothing and the specification has no default. Values are never changed once made:
those that repeat may be shared.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from .composite import (
    ADDRESS, ANY, BINARY, BOOLEAN, DELIVERY_TAG, FIELDS, MAP, MESSAGE_ID, STRING, SYMBOL, TIMESTAMP, TRANSACTION_ID, UBYTE, UINT, ULONG, USHORT, composed,
    described, one_of, wire,
)  # fmt: skip

SENDER, RECEIVER = False, True
"""The roles."""
UINT_MAX = (1 << 32) - 1


class SenderSettleMode(IntEnum):
    UNSETTLED = 0
    SETTLED = 1
    MIXED = 2


class ReceiverSettleMode(IntEnum):
    FIRST = 0
    SECOND = 1


class TerminusDurability(IntEnum):
    NONE = 0
    CONFIGURATION = 1
    UNSETTLED_STATE = 2


class SaslCode(IntEnum):
    OK = 0
    AUTH = 1
    """Wrong credentials."""
    SYS = 2
    SYS_PERM = 3
    SYS_TEMP = 4


LINK_DETACH, SESSION_END, CONNECTION_CLOSE, NEVER = EXPIRY_POLICIES = ("link-detach", "session-end", "connection-close", "never")
MOVE, COPY = "move", "copy"
"""Distribution modes."""


# -- errors and outcomes --------------------------------------------------------------------------------------------------------------
@described(0x1D, "error")
@dataclass(slots=True)
class Error:
    condition: str = wire(SYMBOL, "", mandatory=True)
    description: str | None = wire(STRING)
    info: dict[str, Any] | None = wire(FIELDS)


ERROR = composed("an error", Error)


@described(0x23, "received")
@dataclass(slots=True)
class Received:
    section_number: int = wire(UINT, 0, mandatory=True)
    section_offset: int = wire(ULONG, 0, mandatory=True)


@described(0x24, "accepted")
@dataclass(slots=True)
class Accepted: ...


@described(0x25, "rejected")
@dataclass(slots=True)
class Rejected:
    error: Error | None = wire(ERROR)


@described(0x26, "released")
@dataclass(slots=True)
class Released: ...


@described(0x27, "modified")
@dataclass(slots=True)
class Modified:
    delivery_failed: bool = wire(BOOLEAN, default=False)
    undeliverable_here: bool = wire(BOOLEAN, default=False)
    message_annotations: dict[Any, Any] | None = wire(FIELDS)


Outcome = Accepted | Rejected | Released | Modified
OUTCOME = composed("an outcome", Accepted, Rejected, Released, Modified)


# -- transactions ---------------------------------------------------------------------------------------------------------------------
@described(0x30, "coordinator")
@dataclass(slots=True)
class Coordinator:
    capabilities: tuple[str, ...] = wire(SYMBOL, multiple=True)


@described(0x31, "declare")
@dataclass(slots=True)
class Declare:
    global_id: Any = wire(ANY)


@described(0x32, "discharge")
@dataclass(slots=True)
class Discharge:
    txn_id: bytes = wire(TRANSACTION_ID, b"", mandatory=True)
    fail: bool = wire(BOOLEAN, default=False)


@described(0x33, "declared")
@dataclass(slots=True)
class Declared:
    txn_id: bytes = wire(TRANSACTION_ID, b"", mandatory=True)


@described(0x34, "transactional-state")
@dataclass(slots=True)
class TransactionalState:
    txn_id: bytes = wire(TRANSACTION_ID, b"", mandatory=True)
    outcome: Outcome | None = wire(OUTCOME)


DeliveryState = Received | Accepted | Rejected | Released | Modified | Declared | TransactionalState
DELIVERY_STATE = composed("a delivery state", Received, Accepted, Rejected, Released, Modified, Declared, TransactionalState)


# -- termini --------------------------------------------------------------------------------------------------------------------------
@described(0x28, "source")
@dataclass(slots=True)
class Source:
    address: str | None = wire(ADDRESS)
    durable: int = wire(one_of(range(3), UINT), TerminusDurability.NONE)
    expiry_policy: str = wire(one_of(EXPIRY_POLICIES, SYMBOL), SESSION_END)
    timeout: int = wire(UINT, 0)
    """Seconds."""
    dynamic: bool = wire(BOOLEAN, default=False)
    dynamic_node_properties: dict[str, Any] | None = wire(FIELDS)
    distribution_mode: str | None = wire(SYMBOL)
    filter: dict[str, Any] | None = wire(FIELDS)
    """Described values."""
    default_outcome: Outcome | None = wire(OUTCOME)
    outcomes: tuple[str, ...] = wire(SYMBOL, multiple=True)
    capabilities: tuple[str, ...] = wire(SYMBOL, multiple=True)


@described(0x29, "target")
@dataclass(slots=True)
class Target:
    address: str | None = wire(ADDRESS)
    durable: int = wire(one_of(range(3), UINT), TerminusDurability.NONE)
    expiry_policy: str = wire(one_of(EXPIRY_POLICIES, SYMBOL), SESSION_END)
    timeout: int = wire(UINT, 0)
    """Seconds."""
    dynamic: bool = wire(BOOLEAN, default=False)
    dynamic_node_properties: dict[str, Any] | None = wire(FIELDS)
    capabilities: tuple[str, ...] = wire(SYMBOL, multiple=True)


@described(0x2B, "delete-on-close")
@dataclass(slots=True)
class DeleteOnClose: ...


@described(0x2C, "delete-on-no-links")
@dataclass(slots=True)
class DeleteOnNoLinks: ...


@described(0x2D, "delete-on-no-messages")
@dataclass(slots=True)
class DeleteOnNoMessages: ...


@described(0x2E, "delete-on-no-links-or-messages")
@dataclass(slots=True)
class DeleteOnNoLinksOrMessages: ...


# -- connections, sessions and links --------------------------------------------------------------------------------------------------
@described(0x10, "open")
@dataclass(slots=True)
class Open:
    container_id: str = wire(STRING, "", mandatory=True)
    hostname: str | None = wire(STRING)
    max_frame_size: int = wire(UINT, UINT_MAX)
    channel_max: int = wire(USHORT, 65535)
    idle_time_out: int | None = wire(UINT)
    """Ms."""
    outgoing_locales: tuple[str, ...] = wire(SYMBOL, multiple=True)
    incoming_locales: tuple[str, ...] = wire(SYMBOL, multiple=True)
    offered_capabilities: tuple[str, ...] = wire(SYMBOL, multiple=True)
    desired_capabilities: tuple[str, ...] = wire(SYMBOL, multiple=True)
    properties: dict[str, Any] | None = wire(FIELDS)


@described(0x11, "begin")
@dataclass(slots=True)
class Begin:
    remote_channel: int | None = wire(USHORT)
    next_outgoing_id: int = wire(UINT, 0, mandatory=True)
    incoming_window: int = wire(UINT, 0, mandatory=True)
    outgoing_window: int = wire(UINT, 0, mandatory=True)
    handle_max: int = wire(UINT, UINT_MAX)
    offered_capabilities: tuple[str, ...] = wire(SYMBOL, multiple=True)
    desired_capabilities: tuple[str, ...] = wire(SYMBOL, multiple=True)
    properties: dict[str, Any] | None = wire(FIELDS)


@described(0x12, "attach")
@dataclass(slots=True)
class Attach:
    name: str = wire(STRING, "", mandatory=True)
    handle: int = wire(UINT, 0, mandatory=True)
    role: bool = wire(BOOLEAN, SENDER, mandatory=True)
    snd_settle_mode: int = wire(one_of(range(3), UBYTE), SenderSettleMode.MIXED)
    rcv_settle_mode: int = wire(one_of(range(2), UBYTE), ReceiverSettleMode.FIRST)
    source: Source | None = wire(composed("a source", Source))
    target: Target | Coordinator | None = wire(composed("a target", Target, Coordinator))
    unsettled: dict[bytes, Any] | None = wire(MAP)
    """The states as described values."""
    incomplete_unsettled: bool = wire(BOOLEAN, default=False)
    initial_delivery_count: int | None = wire(UINT)
    max_message_size: int | None = wire(ULONG)
    offered_capabilities: tuple[str, ...] = wire(SYMBOL, multiple=True)
    desired_capabilities: tuple[str, ...] = wire(SYMBOL, multiple=True)
    properties: dict[str, Any] | None = wire(FIELDS)


@described(0x13, "flow")
@dataclass(slots=True)
class Flow:
    next_incoming_id: int | None = wire(UINT)
    incoming_window: int = wire(UINT, 0, mandatory=True)
    next_outgoing_id: int = wire(UINT, 0, mandatory=True)
    outgoing_window: int = wire(UINT, 0, mandatory=True)
    handle: int | None = wire(UINT)
    """None: it is about the session alone."""
    delivery_count: int | None = wire(UINT)
    link_credit: int | None = wire(UINT)
    available: int | None = wire(UINT)
    drain: bool = wire(BOOLEAN, default=False)
    echo: bool = wire(BOOLEAN, default=False)
    properties: dict[str, Any] | None = wire(FIELDS)


@described(0x14, "transfer")
@dataclass(slots=True)
class Transfer:
    handle: int = wire(UINT, 0, mandatory=True)
    delivery_id: int | None = wire(UINT)
    delivery_tag: bytes | None = wire(DELIVERY_TAG)
    message_format: int | None = wire(UINT)
    settled: bool | None = wire(BOOLEAN)
    more: bool = wire(BOOLEAN, default=False)
    rcv_settle_mode: int | None = wire(one_of(range(2), UBYTE))
    state: DeliveryState | None = wire(DELIVERY_STATE)
    resume: bool = wire(BOOLEAN, default=False)
    aborted: bool = wire(BOOLEAN, default=False)
    batchable: bool = wire(BOOLEAN, default=False)


@described(0x15, "disposition")
@dataclass(slots=True)
class Disposition:
    role: bool = wire(BOOLEAN, SENDER, mandatory=True)
    first: int = wire(UINT, 0, mandatory=True)
    last: int | None = wire(UINT)
    settled: bool = wire(BOOLEAN, default=False)
    state: DeliveryState | None = wire(DELIVERY_STATE)
    batchable: bool = wire(BOOLEAN, default=False)


@described(0x16, "detach")
@dataclass(slots=True)
class Detach:
    handle: int = wire(UINT, 0, mandatory=True)
    closed: bool = wire(BOOLEAN, default=False)
    error: Error | None = wire(ERROR)


@described(0x17, "end")
@dataclass(slots=True)
class End:
    error: Error | None = wire(ERROR)


@described(0x18, "close")
@dataclass(slots=True)
class Close:
    error: Error | None = wire(ERROR)


# -- security -------------------------------------------------------------------------------------------------------------------------
@described(0x40, "sasl-mechanisms")
@dataclass(slots=True)
class SaslMechanisms:
    sasl_server_mechanisms: tuple[str, ...] = wire(SYMBOL, mandatory=True, multiple=True)


@described(0x41, "sasl-init")
@dataclass(slots=True)
class SaslInit:
    mechanism: str = wire(SYMBOL, "", mandatory=True)
    initial_response: bytes | None = wire(BINARY)
    hostname: str | None = wire(STRING)


@described(0x42, "sasl-challenge")
@dataclass(slots=True)
class SaslChallenge:
    challenge: bytes = wire(BINARY, b"", mandatory=True)


@described(0x43, "sasl-response")
@dataclass(slots=True)
class SaslResponse:
    response: bytes = wire(BINARY, b"", mandatory=True)


@described(0x44, "sasl-outcome")
@dataclass(slots=True)
class SaslOutcome:
    code: int = wire(one_of(range(5), UBYTE), SaslCode.OK, mandatory=True)
    additional_data: bytes | None = wire(BINARY)


# -- sections of messages -------------------------------------------------------------------------------------------------------------
@described(0x70, "header")
@dataclass(slots=True)
class MessageHeader:
    durable: bool = wire(BOOLEAN, default=False)
    priority: int = wire(UBYTE, 4)
    ttl: int | None = wire(UINT)
    """Ms."""
    first_acquirer: bool = wire(BOOLEAN, default=False)
    delivery_count: int = wire(UINT, 0)
    """Earlier deliveries that failed."""


@described(0x73, "properties")
@dataclass(slots=True)
class MessageProperties:
    message_id: Any = wire(MESSAGE_ID)
    user_id: bytes | None = wire(BINARY)
    to: str | None = wire(ADDRESS)
    subject: str | None = wire(STRING)
    reply_to: str | None = wire(ADDRESS)
    correlation_id: Any = wire(MESSAGE_ID)
    content_type: str | None = wire(SYMBOL)
    content_encoding: str | None = wire(SYMBOL)
    absolute_expiry_time: int | None = wire(TIMESTAMP)
    creation_time: int | None = wire(TIMESTAMP)
    group_id: str | None = wire(STRING)
    group_sequence: int | None = wire(UINT)
    reply_to_group_id: str | None = wire(STRING)


Performative = Open | Begin | Attach | Flow | Transfer | Disposition | Detach | End | Close
SaslPerformative = SaslMechanisms | SaslInit | SaslChallenge | SaslResponse | SaslOutcome

ACCEPTED, RELEASED = Accepted(), Released()
"""They say nothing more, and are shared."""
