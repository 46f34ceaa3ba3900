"""What a connection factory can be told, by the names of JMS in snake_case, and the profiles of three providers. Durations are seconds.

Open MQ's names are kept less their `imq`; the defaults are Open MQ's (profile `sun`). ActiveMQ's and WebSphere's are one word away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Any


class AcknowledgeMode(IntEnum):
    """How what a session consumes is acknowledged; the numbers are those of JMS, Open MQ and ActiveMQ."""

    SESSION_TRANSACTED = 0
    """By commit. Not to be asked for: a session made with transacted=True has it."""
    AUTO = 1
    """Each message, when receive() returns it or its listener has returned."""
    CLIENT = 2
    """By Message.acknowledge(): all that the session has consumed."""
    DUPS_OK = 3
    """Lazily, some at a time; after a failure they may come twice."""
    INDIVIDUAL = 4
    """By Message.acknowledge(): that message alone."""
    NO_ACKNOWLEDGE = 32768
    """By the broker, as soon as it has sent the message."""


class DeliveryMode(IntEnum):
    NON_PERSISTENT = 1
    PERSISTENT = 2


class Reliability(StrEnum):
    """The five levels, as header `reliability` says them, and to leave it to the destination."""

    BEST_EFFORT = "best-effort"
    EXPRESS = "express"
    RELIABLE_NONPERSISTENT = "reliable-np"
    RELIABLE = "reliable"
    ASSURED = "assured"
    AS_DESTINATION = "as-destination"
    """The destination's default; if it has none, the broker's for the delivery mode."""

    @property
    def is_persistent(self) -> bool:
        """It is the level of messages that are on disk."""
        return self in (Reliability.RELIABLE, Reliability.ASSURED)


class AddressListBehavior(StrEnum):
    PRIORITY = "PRIORITY"
    """In the order of the list."""
    RANDOM = "RANDOM"
    """Starting anywhere."""


class Profile(StrEnum):
    SUN = "sun"
    ACTIVEMQ = "activemq"
    WEBSPHERE = "websphere"


@dataclass(frozen=True, slots=True)
class Batch:
    """Acknowledge cumulatively: after so many messages or so much of the prefetch, whichever is given, and at the latest after `timeout`."""

    messages: int = 0
    """Counted over all consumers of the session; 0: `percent` says it."""
    percent: float = 0.0
    """Of the consumer's prefetch, counted for each consumer."""
    timeout: float = 0.0
    """Since the first message that is not acknowledged; 0: 7 s, so that none waits for a batch that never fills."""


@dataclass(frozen=True, slots=True)
class DupsOkPolicy:
    """When sessions with DUPS_OK acknowledge; None: each message, as AUTO does, but without waiting."""

    on_queues: Batch | None = Batch(messages=10, timeout=7.0)
    on_topics: Batch | None = Batch(messages=10, timeout=7.0)


@dataclass(frozen=True, slots=True)
class PrefetchPolicy:
    """How many messages the broker may send ahead of their acknowledgement, by what a consumer is."""

    queue: int = 1000
    topic: int = 1000
    durable_topic: int = 1000
    optimized_durable_topic: int = 1000
    """With optimized acknowledge."""
    browser: int = 1000


OPTIMIZED_PERCENT = 65.0
"""Of the prefetch, after which optimized acknowledge sends one cumulative acknowledgement (ActiveMQ)."""


@dataclass(slots=True, kw_only=True)
class Settings:
    """Everything a connection is told, but where its sockets and secrets come from. Copied when a connection is made."""

    # -- where the broker is ----------------------------------------------------------------------------------------------------------
    address_list: str | Sequence[str] = "stomp://127.0.0.1:61613"
    """`stomp://HOST[:PORT]`, with TLS `stomp+tls://HOST[:PORT]`; several in a sequence or separated by commas. Behind one may stand what ActiveMQ's
    applications say there, `?jms.optimizeAcknowledge=true&jms.optimizeAcknowledgeTimeOut=300`, which counts before the settings of that name."""
    address_list_behavior: AddressListBehavior = AddressListBehavior.PRIORITY
    address_list_iterations: int = 1
    """How often the whole list is tried before connecting, or connecting again, has failed; -1: for ever."""
    reconnect_enabled: bool = False
    """Connect again when the connection is lost, and open its consumers again."""
    reconnect_attempts: int = 0
    """At each address before the next one is tried, if reconnecting is enabled, for the first connection too; 0 is like 1, -1: for ever."""
    reconnect_interval: float = 3.0
    """Between attempts at one address."""
    socket_connect_timeout: float = 0.0
    """0: the operating system's, and half a minute for agreeing on TLS."""
    ping_interval: float = 30.0
    """At least so often either side says something; a broker that is silent twice as long is lost, and not waited for by `close()`. 0: never."""

    # -- who this is ------------------------------------------------------------------------------------------------------------------
    configured_client_id: str = ""
    """The client identifier of every connection of this factory."""
    disable_set_client_id: bool = False
    """Applications may not choose another one."""
    enable_shared_client_id: bool = False
    """Connections of the same account that say so, too, may have the same one at the same time."""

    # -- what is waited for -----------------------------------------------------------------------------------------------------------
    ack_on_produce: bool | None = None
    """Whether send() waits until the broker has the message; None: for persistent ones only. Without, nothing slows a producer down."""
    ack_on_acknowledge: bool | None = None
    """Whether acknowledging waits until the broker has done it; None: as the mode says, True: in DUPS_OK too, False: never."""
    ack_timeout: float = 0.0
    """How long the broker's answer is waited for; 0: for ever."""
    async_send_completion_wait_timeout: float = 180.0
    """How long close() waits for messages that were sent with a completion listener."""

    # -- how much is under way --------------------------------------------------------------------------------------------------------
    prefetch_policy: PrefetchPolicy = PrefetchPolicy()
    consumer_flow_limit: int | None = None
    """The same figure for every consumer, in place of the policy's; 0: the broker's maximum."""
    consumer_flow_threshold: float = 50.0
    """Percent of the limit: a consumer that had all of it gets more when no more than this is not acknowledged, where the session acknowledges by
    itself; what was consumed in a transaction is told to the broker when it is so much; and where reading stops at a limit it goes on below this
    part of it."""
    connection_flow_count: int = 100
    """Messages taken from the connection before its control messages get their turn; 0: no metering."""
    connection_flow_limit_enabled: bool = False
    connection_flow_limit: int = 1000
    """Messages held for all consumers of the connection together, beyond which no more is read."""

    # -- how consumers acknowledge ----------------------------------------------------------------------------------------------------
    dups_ok_policy: DupsOkPolicy = DupsOkPolicy()
    optimize_acknowledge: bool = False
    """AUTO everywhere and DUPS_OK on queues: acknowledge after 65% of the prefetch or the timeout, whichever comes first."""
    optimize_acknowledge_timeout: float = 0.3

    # -- what messages are sent as ----------------------------------------------------------------------------------------------------
    override_delivery_mode: DeliveryMode | None = None
    override_priority: int | None = None
    override_expiration: float | None = None
    """A time to live in seconds, 0: for ever."""
    override_headers_to_temporary_destinations: bool = False
    """The overrides hold for temporary destinations too."""
    nonpersistent_reliability: Reliability | None = None
    """The level that stands for NON_PERSISTENT; None: the broker's (express)."""
    persistent_reliability: Reliability | None = None
    """The level that stands for PERSISTENT; None: the broker's (assured)."""
    set_jmsx_user_id: bool = False
    set_jmsx_app_id: bool = False
    set_jmsx_producer_txid: bool = False
    set_jmsx_consumer_txid: bool = False
    set_jmsx_rcv_timestamp: bool = False
    app_id: str = ""
    """What JMSXAppID says."""

    # -- browsers ---------------------------------------------------------------------------------------------------------------------
    queue_browser_retrieve_timeout: float = 60.0
    """How long a browser waits for its next message."""

    @property
    def adds_properties(self) -> bool:
        """To what is sent."""
        return self.set_jmsx_user_id or self.set_jmsx_app_id or self.set_jmsx_producer_txid


PROFILES: dict[Profile, dict[str, Any]] = {
    Profile.SUN: {},
    Profile.ACTIVEMQ: {
        "prefetch_policy": PrefetchPolicy(queue=1000, topic=32767, durable_topic=100, optimized_durable_topic=1000, browser=500),
        "dups_ok_policy": DupsOkPolicy(on_queues=None, on_topics=Batch(percent=50.0)),
    },
    Profile.WEBSPHERE: {
        "nonpersistent_reliability": Reliability.EXPRESS,
        "persistent_reliability": Reliability.RELIABLE,
    },
}
"""What differs from the defaults above."""
