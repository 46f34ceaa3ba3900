"""What a history is like: each seed has one of these climates, in turn, so that what is rare in one is frequent in another."""

from __future__ import annotations

from dataclasses import dataclass, replace

from broker_core.engine import Limits
from broker_core.engine.settings import REMOVE_OLDEST, Settings

from .audit import DEAD
from .clients import QUEUES
from .interests import TOPICS
from .repeating import NAMES_MAX
from .session import GROUPED, TOPIC

SETTINGS = Settings(redelivery_max=3, redelivery_delay_ms=4, redelivery_multiplier=2.0, redelivery_delay_max_ms=20)
FULL = replace(SETTINGS, max_messages=6, max_octets=2_500, max_active_consumers=2, max_backup_consumers=-1)
LIMITS = Limits(
    page_rows=4,
    page_octets=1200,
    window_rows=8,
    window_octets=2400,
    memory_octets=6000,
    link_octets=2500,
    link_unsettled=12,
    segment_rows=32,
    segment_octets=64 << 10,
    reap_ms=400,
    settings=SETTINGS,
    expiry_rows=4,
    expiry_steps=5,
    schedule_ahead_ms=60,
    schedule_rows=6,
    schedule_octets=2000,
    compact_below=0.35,
    looks=20,
    deliveries=9,
    fan_out=2,
    returns=3,
    timers=3,
    duplicate_ids_max=NAMES_MAX,
    scan_rows=3,
    scan_positions=8,
)


@dataclass(frozen=True, slots=True)
class Climate:
    """Probabilities are of a client's step, of a message, or of what an operator does next."""

    name: str
    limits: Limits = LIMITS
    sends_to: tuple[str, ...] = (*QUEUES, TOPIC)
    consumes: tuple[str, ...] = (*QUEUES, *QUEUES, DEAD, TOPIC, TOPIC)
    producers: float = 0.4
    """Of sessions that only produce; as many of the others only consume, `both` do either."""
    both: float = 0.2
    volatile: int = 150
    """Of 600 commands those in which most of what is sent is volatile."""
    delayed: float = 0.15
    expiring: float = 0.12
    refused: int = 6
    """Of a hundred messages those that are refused whenever they come."""
    held: int = 6
    """The same of those that a consumer keeps for long."""
    rejected: float = 0.15
    """Of what is refused: never to be delivered again."""
    confirmed: float = 0.5
    """Of acknowledgements those that ask for a receipt."""
    transactions: float = 0.05
    branches: float = 0.0
    """Of transactions those that are branches of distributed ones."""
    spoiled: float = 0.05
    """Of transactions those that acknowledge what is not outstanding."""
    doubts: float = 0.03
    """Of COMMITs those behind which the client or the node is gone."""
    selective: float = 0.35
    exclusive: float = 0.05
    looks: float = 0.04
    prefetch: tuple[int, ...] = (1, 2, 5, 10, 50)
    leaves: float = 0.02
    """Consumers that close at a step."""
    cuts: float = 0.5
    """Connections that end without a word."""
    subscribers: int = 0
    """Clients with subscriptions of ordinary topics."""
    repeaters: int = 1
    """Clients that send again what is in doubt."""
    large: float = 0.01
    """Of stored messages those with a large body."""
    crowded: bool = False
    """In the end it is looked at what large bodies and a full memory do to those who wait."""
    kills: float = 0.05
    purges: float = 0.05
    changes: float = 0.0
    """Of an operator's steps those that change the limits of a queue."""
    guarded: bool = False
    """Operators change rules of access, and close connections."""
    managed: bool = False
    """Operators quiesce, drain and replace the node, and take back what consumers hold."""
    keepers: int = 0
    """Clients of the queues between which operators move messages."""
    slow_in: int = 20
    """Reads of which one takes long."""
    amqp: float = 0.0
    """Of clients those that speak AMQP, and not STOMP."""
    released: float = 0.1
    """Of what these do not keep: given back, as nobody has looked at it."""
    faults: int = 1
    """How many times as many faults of the store as in the first climate. Each ends a node, and what it had lost from memory is read again: where there
    are few, nothing mends what goes wrong in memory."""


CLIMATES = (
    Climate("mixed"),
    Climate(
        "topics",
        replace(LIMITS, memory_octets=16_000, window_octets=1200, deliveries=30),
        sends_to=(*QUEUES, *(TOPIC,) * 12),
        consumes=(*QUEUES, DEAD, *(TOPIC,) * 6),
        producers=0.6,
        volatile=450,
        expiring=0.2,
        leaves=0.08,
        kills=0.01,
        faults=0,
    ),
    Climate(
        "groups",
        replace(LIMITS, memory_octets=20_000, link_octets=5000, link_unsettled=50, returns=1),
        sends_to=(*QUEUES, *(GROUPED,) * 8),
        consumes=(*QUEUES, DEAD, TOPIC, *(GROUPED,) * 6),
        delayed=0.3,
        selective=0.1,
        prefetch=(1, 2, 3, 5),
        leaves=0.06,
        cuts=0.7,
        kills=0.01,
        faults=0,
    ),
    Climate("storms", kills=0.15, faults=4, transactions=0.1, repeaters=3),
    Climate(
        "depths",
        replace(LIMITS, page_rows=3, memory_octets=3000, window_rows=4, segment_rows=12, compact_below=0.5, undo_ms=150),
        sends_to=(*QUEUES, *("queue/d",) * 3, TOPIC),
        producers=0.6,
        volatile=250,
        delayed=0.05,
        leaves=0.06,
        purges=0.10,
        slow_in=4,
        kills=0.01,
        faults=0,
    ),
    Climate(
        "failures",
        replace(LIMITS, memory_octets=12_000),
        sends_to=(*QUEUES, TOPIC, TOPIC),
        refused=40,
        rejected=0.05,
        confirmed=0.8,
        expiring=0.3,
        transactions=0.1,
    ),
    Climate(
        "choices",
        replace(LIMITS, scan_rows=2, window_rows=4, page_rows=8, page_octets=4000, memory_octets=20_000),
        held=20,
        confirmed=0.9,
        expiring=0.05,
        selective=0.7,
        exclusive=0.3,
        looks=0.2,
        kills=0.01,
    ),
    Climate(
        "transactions",
        replace(LIMITS, transaction_ms_max=18, memory_octets=40_000),
        producers=0.1,
        both=0.8,
        volatile=50,
        delayed=0.05,
        expiring=0.05,
        held=2,
        transactions=0.4,
        spoiled=0.12,
        doubts=0.25,
        kills=0.01,
        faults=0,
    ),
    Climate(
        "subscriptions",
        replace(LIMITS, memory_octets=10_000),
        sends_to=(*QUEUES, TOPIC, *TOPICS * 4),
        producers=0.7,
        volatile=300,
        subscribers=3,
        kills=0.03,
    ),
    Climate(
        "branches",
        replace(LIMITS, memory_octets=40_000),
        producers=0.1,
        both=0.8,
        volatile=200,
        delayed=0.05,
        expiring=0.1,
        held=2,
        transactions=0.3,
        branches=0.8,
        doubts=0.1,
        kills=0.03,
        purges=0.03,
        faults=2,
    ),
)
LIMITED = (
    Climate(
        "full",
        replace(LIMITS, memory_octets=12_000, admissions=3, settings=FULL),
        producers=0.5,
        delayed=0.05,
        transactions=0.15,
        leaves=0.04,
        changes=0.2,
        kills=0.01,
        faults=0,
    ),
    Climate(
        "removals",
        replace(LIMITS, memory_octets=12_000, removals=6, settings=replace(SETTINGS, max_messages=8, limit_behavior=REMOVE_OLDEST)),
        sends_to=(*QUEUES, TOPIC, TOPIC),
        producers=0.6,
        leaves=0.05,
        changes=0.05,
        kills=0.03,
    ),
)
CROWDED = Climate(
    "crowded",
    replace(LIMITS, memory_octets=4000, window_octets=1200, page_octets=900),
    sends_to=(*QUEUES, *("queue/d",) * 2, TOPIC),
    producers=0.6,
    volatile=400,
    leaves=0.06,
    large=0.4,
    crowded=True,
    kills=0.01,
    faults=0,
)
EVERY, CROWDED_AT = 35, 19


OPERATED = Climate(
    "operated",
    replace(LIMITS, operation_rows=4, operation_effort=70, memory_octets=9000, undo_ms=3_600_000),
    sends_to=(*QUEUES,),
    consumes=(*QUEUES, DEAD, DEAD),
    producers=0.3,
    keepers=3,
    kills=0.09,
)
GUARDED = Climate("guarded", replace(LIMITS, memory_octets=10_000), consumes=(*QUEUES, *QUEUES, DEAD, TOPIC), subscribers=1, kills=0.02, guarded=True)
MANAGED = Climate(
    "managed",
    replace(LIMITS, memory_octets=10_000),
    transactions=0.0,
    looks=0.0,
    held=20,
    leaves=0.03,
    subscribers=1,
    kills=0.02,
    managed=True,
)
SPOKEN = (
    Climate(
        "amqp",
        replace(LIMITS, memory_octets=20_000, page_rows=8, page_octets=4000),
        sends_to=(*QUEUES, TOPIC, *TOPICS),
        transactions=0.12,
        looks=0.08,
        leaves=0.05,
        refused=12,
        confirmed=0.7,
        subscribers=2,
        kills=0.02,
        amqp=0.75,
    ),
)
"""Where most clients speak AMQP."""


NAMES = {climate.name: climate for climate in (*CLIMATES, *LIMITED, CROWDED, OPERATED, GUARDED, MANAGED, *SPOKEN)}
AMQP_SHARE = 0.4
"""Of clients, in those histories of any climate in which some speak AMQP: one of six."""


def climate_of(seed: int, name: str = "") -> Climate:
    """The one of this name; without one every seed has its own."""
    if name:
        return NAMES[name]
    if seed % EVERY == CROWDED_AT:
        return CROWDED
    if seed % 23 == 17:
        return GUARDED
    if seed % 29 == 24:
        return MANAGED
    if seed % 11 == 9:
        return OPERATED
    if seed % 13 == 9:
        return SPOKEN[seed // 13 % len(SPOKEN)]
    own = LIMITED[seed // 7 % len(LIMITED)] if seed % 7 == 5 else CLIMATES[seed % len(CLIMATES)]
    return replace(own, amqp=AMQP_SHARE) if seed % 7 == 6 or seed % 21 == 19 else own
