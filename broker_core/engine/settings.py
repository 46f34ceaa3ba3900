"""What an operator may set of a destination, and within which bounds."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, fields
from typing import Any

from .address import DEAD_MESSAGE_QUEUE, is_reserved, is_topic, is_valid
from .levels import DEFAULTS as RELIABILITIES
from .levels import NONE, contradiction
from .message import LEVEL_NAMES

FLOW_CONTROL, REMOVE_OLDEST, REMOVE_LOW_PRIORITY, REJECT_NEWEST = "FLOW_CONTROL", "REMOVE_OLDEST", "REMOVE_LOW_PRIORITY", "REJECT_NEWEST"
"""What becomes of a message for which there is no room (Open MQ's limitBehavior): see docs/semantics.md."""
REMOVING = (REMOVE_OLDEST, REMOVE_LOW_PRIORITY)
"""Behaviors that make room for whatever comes."""
UNLIMITED = -1


@dataclass(slots=True, frozen=True)
class Settings:
    """Durations in ms, sizes in octets. -1: unlimited."""

    redelivery_max: int = 10
    """Redeliveries of a message that fails: one failure more and it is dead (R9); 0: the first failure kills, -1: never."""
    redelivery_delay_ms: int = 1_000
    redelivery_multiplier: float = 2.0
    redelivery_delay_max_ms: int = 60_000
    use_dead: bool = True
    """False: dead messages are discarded (Open MQ's useDMQ)."""
    dead_queue: str = ""
    """Where dead messages go, as in `queue/orders.dead`; empty: the dead message queue of all."""
    duplicate_window_ms: int = 0
    """For so long the identifiers of accepted messages are remembered, so that one sent again is dropped; 0: none is (see duplicates)."""
    archive_ms: int = 0
    """For so long the data pipeline keeps the bodies of stored messages in its lake; 0: it keeps none."""
    default_reliability: str = NONE
    """The level of messages whose producers leave it to the destination; `none`: that of their delivery mode (see levels)."""
    maximum_reliability: str = LEVEL_NAMES[-1]
    """What is sent with a higher level is refused."""
    reliability_override: bool = True
    """False: every message gets the default level, whatever its producer says."""
    max_messages: int = UNLIMITED
    """Held at a time (Open MQ's maxNumMsgs), delivered ones included, delayed ones not. Of a topic: by the subscription that holds most."""
    max_octets: int = UNLIMITED
    """Of their header sections and bodies (maxTotalMsgBytes)."""
    max_message_octets: int = UNLIMITED
    """Of one message (maxBytesPerMsg)."""
    max_producers: int = UNLIMITED
    """Connections that have sent to it and are open (maxNumProducers)."""
    max_active_consumers: int = UNLIMITED
    """Of a queue: those that are served, the first to register (maxNumActiveConsumers)."""
    max_backup_consumers: int = 0
    """Of a queue: those that stand by beyond them, and take over in order of registration (maxNumBackupConsumers). Further ones are refused."""
    consumer_flow_limit: int = UNLIMITED
    """The most that a consumer's prefetch may be (consumerFlowLimit); 0: no limit either."""
    time_to_live_ms: int = UNLIMITED
    """Of messages that state none."""
    time_to_live_max_ms: int = UNLIMITED
    """Of all; one that states more, or none, has this."""
    limit_behavior: str = FLOW_CONTROL
    """When one of the first two is reached."""
    undo_ms: int = UNLIMITED
    """For so long a purge of it can be undone; -1: as long as the service has it, 0: none can."""
    foreign_link: str = ""
    """Of a queue: the link over which its messages are forwarded to another broker (engine.foreign); empty: they stay here."""
    foreign_address: str = ""
    """What the other broker calls it, in its own way; empty: as here, as in `/queue/orders`."""

    def delay_ms(self, failures: int) -> int:
        """The back-off before the delivery that follows the given number of failures, at least 1."""
        if not self.redelivery_delay_ms:
            return 0
        exponent = min(failures - 1, 64)
        return int(min(self.redelivery_delay_ms * self.redelivery_multiplier**exponent, self.redelivery_delay_max_ms))

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def contradiction(self) -> str:
        """A sentence that says which of them do not go together, or nothing."""
        if self.foreign_address and not self.foreign_link:
            return "foreign_address is an address at the far end of a link: name the foreign_link, too"
        return contradiction(self)

    @property
    def limits_messages(self) -> bool:
        """Some message may be looked at before it enters."""
        return self.bounds_depth or any(getattr(self, name) != UNLIMITED for name in OF_A_MESSAGE)

    @property
    def bounds_depth(self) -> bool:
        return self.max_messages != UNLIMITED or self.max_octets != UNLIMITED

    @property
    def turns_away(self) -> bool:
        """When it is full nothing is removed: what comes waits, or is refused."""
        return self.bounds_depth and self.limit_behavior not in REMOVING

    def exceeded_by(self, messages: int, octets: int) -> bool:
        """So much is more than may be held."""
        return UNLIMITED < self.max_messages < messages or UNLIMITED < self.max_octets < octets

    @staticmethod
    def problem(values: dict[str, Any], address: str = "") -> str:
        """A sentence that says what is wrong with `values`, or nothing. `address`: of the destination, where it is known."""
        for name, value in values.items():
            if name in CHOICES:
                if value not in CHOICES[name]:
                    return f"{name} must be one of {', '.join(CHOICES[name])}"
            elif name in QUEUES:
                if sentence := _no_queue(name, value, address):
                    return sentence
            elif name in TEXTS:
                if not (isinstance(value, str) and TEXTS[name][0].fullmatch(value) and len(value.encode(errors="replace")) <= NAME_OCTETS_MAX):
                    return f"{name} must be {TEXTS[name][1]}, or empty"
            elif name in BOUNDS:
                if sentence := _out_of_bounds(name, value):
                    return sentence
            else:
                return f"{name} is not a setting; the settings are {', '.join(NAMES)}"
        if is_topic(address) and (names := [name for name in QUEUES_ONLY if name in values and values[name] != getattr(DEFAULTS, name)]):
            return f"{names[0]} is for queues: the subscriptions of a topic are its consumers"
        if is_reserved(address) and values.get("foreign_link"):
            return f"foreign_link is for clients' queues: {address} is the broker's own"
        if address == DEAD_MESSAGE_QUEUE and values.get("limit_behavior") in (FLOW_CONTROL, REJECT_NEWEST):
            return "limit_behavior of the dead message queue must be REMOVE_OLDEST or REMOVE_LOW_PRIORITY: what dies is never refused"
        return ""


def _out_of_bounds(name: str, value: Any) -> str:
    kind, low, high = BOUNDS[name]
    if type(value) is not kind and not (kind is float and type(value) is int):
        return f"{name} must be {'true or false' if kind is bool else 'a number'}"
    if not (isinstance(value, int | float) and low <= value <= high):
        return f"{name} must lie between {low} and {high}"
    if not value and name in NOT_ZERO:
        return f"{name} must be {UNLIMITED}, for no limit, or at least 1"
    return ""


def _no_queue(name: str, value: Any, address: str) -> str:
    """Why it is no queue that this destination's messages may go to."""
    if not isinstance(value, str) or (value and not (value.startswith("queue/") and is_valid(value))) or any("\ud800" <= c <= "\udfff" for c in str(value)):
        return f"{name} must be the address of a queue, as in queue/orders.dead, or empty"
    if value and is_reserved(value) and value != DEAD_MESSAGE_QUEUE:
        return f"{name} must not begin with queue/mq.: these names are the broker's"
    if value and address in (value, DEAD_MESSAGE_QUEUE):
        return f"{name} must be another queue: what dies on {address} for the second time is gone"
    return ""


BOUNDS: dict[str, tuple[type, float, float]] = {
    "redelivery_max": (int, -1, 10_000),
    "redelivery_delay_ms": (int, 0, 86_400_000),
    "redelivery_multiplier": (float, 1.0, 100.0),
    "redelivery_delay_max_ms": (int, 0, 86_400_000),
    "use_dead": (bool, False, True),
    "duplicate_window_ms": (int, 0, 7 * 86_400_000),
    "archive_ms": (int, 0, 100 * 365 * 86_400_000),
    "reliability_override": (bool, False, True),
    "max_messages": (int, UNLIMITED, 1 << 40),
    "max_octets": (int, UNLIMITED, 1 << 50),
    "max_message_octets": (int, UNLIMITED, 1 << 40),
    "max_producers": (int, UNLIMITED, 1_000_000),
    "max_active_consumers": (int, UNLIMITED, 1_000_000),
    "max_backup_consumers": (int, UNLIMITED, 1_000_000),
    "consumer_flow_limit": (int, UNLIMITED, 65_535),
    "time_to_live_ms": (int, UNLIMITED, 100 * 365 * 86_400_000),
    "time_to_live_max_ms": (int, UNLIMITED, 100 * 365 * 86_400_000),
    "undo_ms": (int, UNLIMITED, 30 * 86_400_000),
}
"""Of every number and flag: its type, least and greatest value."""
OF_A_MESSAGE = ("max_message_octets", "max_producers", "time_to_live_ms", "time_to_live_max_ms")
NOT_ZERO = frozenset(("max_messages", "max_octets", "max_active_consumers", *OF_A_MESSAGE))
"""Nothing could ever be sent, or consumed."""
QUEUES_ONLY = ("max_active_consumers", "max_backup_consumers", "foreign_link", "foreign_address")
CHOICES: dict[str, tuple[str, ...]] = {
    "default_reliability": RELIABILITIES,
    "maximum_reliability": LEVEL_NAMES,
    "limit_behavior": (FLOW_CONTROL, REMOVE_OLDEST, REMOVE_LOW_PRIORITY, REJECT_NEWEST),
}
"""Of every setting that is a word: which it may be."""
QUEUES = ("dead_queue",)
"""Settings that name a queue."""
LINK_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
NAME_OCTETS_MAX = 255
TEXTS: dict[str, tuple[re.Pattern[str], str]] = {
    "foreign_link": (re.compile(rf"(?:{LINK_NAME.pattern})?"), "the name of a link: 1 to 63 letters, digits, dots, dashes and underscores"),
    "foreign_address": (re.compile(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]*"), f"an address of at most {NAME_OCTETS_MAX} octets, without control characters"),
}
"""Settings that are a text: which it may be, as a pattern and in words."""
DEFAULTS = Settings()
NAMES = tuple(field.name for field in fields(Settings))
assert {*BOUNDS, *CHOICES, *QUEUES, *TEXTS} == set(NAMES)
