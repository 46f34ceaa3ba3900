"""When a consumer acknowledges, and how: the decision table of modes, destinations and policies (checklist items 50 to 58, 139 to 148).

|                 | queue            | topic            | queue, optimized      | topic, optimized      |
|-----------------|------------------|------------------|-----------------------|-----------------------|
| AUTO            | each             | each             | 65% or 300 ms         | 65% or 300 ms         |
| DUPS_OK         | the policy's     | the policy's     | 65% or 300 ms         | the policy's          |
| CLIENT          | cumulative, when asked, whatever else is set                                        |
| INDIVIDUAL      | that message, when asked                                                            |
| SESSION_TRANSACTED | cumulative, within the transaction, at the flow threshold and by commit          |
| NO_ACKNOWLEDGE  | never: the broker does it                                                           |

DUPS_OK's policy is ten messages of the session or 7 s (profiles sun and websphere); each on queues and 50% on topics (profile activemq), or 7 s.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from broker_core.client.destinations import Administered
from broker_core.client.settings import OPTIMIZED_PERCENT, AcknowledgeMode, Batch, Settings
from broker_core.engine.link import NO_THRESHOLD
from broker_core.stomp.limits import Limits

PREFETCH_MAX = Limits().prefetch_max
OUTSTANDING_OCTETS_MAX = Limits().outstanding_octets_max
"""What a broker lets be outstanding on one consumer (R16), unless it says otherwise."""
LEFT_MS = 7_000
"""A batch that has no timeout of its own: an operator may lower what is delivered ahead, nothing tells those who are connected, and they would wait for ever
to have enough. Not in a transaction: its first acknowledgement begins it, and with it the time that the broker gives it."""


class When(Enum):
    EACH = "each message by itself"
    BATCH = "cumulatively, when enough has been consumed"
    ASKED = "when the application asks for it"
    NEVER = "the broker did it"


@dataclass(frozen=True, slots=True)
class Acknowledging:
    """What a consumer does about what it has handed over."""

    when: When
    wire: str
    """Header `ack` of SUBSCRIBE."""
    confirmed: bool = False
    """The session waits until the broker says that it is done."""
    messages: int = 0
    """BATCH: after so many."""
    of_session: bool = False
    """They are counted over all consumers of the session."""
    timeout_ms: int = 0
    """BATCH: at the latest so long after the first."""
    threshold: int = NO_THRESHOLD
    """Percent of the prefetch, header `consumer-flow-threshold` of SUBSCRIBE: a consumer that had all of it gets more when no more than so much is not
    acknowledged. Never so little that it would wait for more with a batch that waits for it."""


def acknowledging(mode: AcknowledgeMode, on_topic: bool, prefetch: int, settings: Settings) -> Acknowledging:
    """The table."""
    plan = _plan(mode, on_topic, prefetch, settings)
    if plan.when is When.ASKED or plan.when is When.NEVER:
        return plan  # what the application has in its hands may never be acknowledged, and it must get on
    waiting = -(-100 * (plan.messages - 1) // prefetch) if plan.messages else 0
    return replace(plan, threshold=min(max(int(settings.consumer_flow_threshold), 1, waiting), NO_THRESHOLD))


def lowered(plan: Acknowledging, threshold: int, prefetch: int) -> Acknowledging:
    """The plan for a prefetch that is less than was asked for with this threshold."""
    return replace(plan, threshold=threshold, messages=min(plan.messages, prefetch * threshold // 100 + 1))


def _plan(mode: AcknowledgeMode, on_topic: bool, prefetch: int, settings: Settings) -> Acknowledging:
    waits = settings.ack_on_acknowledge is not False
    if mode is AcknowledgeMode.NO_ACKNOWLEDGE:
        return Acknowledging(When.NEVER, "auto")
    if mode is AcknowledgeMode.CLIENT:
        return Acknowledging(When.ASKED, "client", waits)
    if mode is AcknowledgeMode.INDIVIDUAL:
        return Acknowledging(When.ASKED, "client-individual", waits)
    if mode is AcknowledgeMode.SESSION_TRANSACTED:
        return Acknowledging(When.BATCH, "client", messages=share(prefetch, settings.consumer_flow_threshold))
    waits = waits if mode is AcknowledgeMode.AUTO else settings.ack_on_acknowledge is True
    if settings.optimize_acknowledge and (mode is AcknowledgeMode.AUTO or not on_topic):
        batch: Batch | None = Batch(percent=OPTIMIZED_PERCENT, timeout=settings.optimize_acknowledge_timeout)
        waits = settings.ack_on_acknowledge is True
    elif mode is AcknowledgeMode.AUTO:
        batch = None
    else:
        batch = settings.dups_ok_policy.on_topics if on_topic else settings.dups_ok_policy.on_queues
    if batch is None:
        return Acknowledging(When.EACH, "client-individual", waits)
    messages = min(batch.messages, prefetch) if batch.messages else share(prefetch, batch.percent)
    return Acknowledging(When.BATCH, "client", waits, messages, bool(batch.messages), round(batch.timeout * 1000) or LEFT_MS)


def share(prefetch: int, percent: float) -> int:
    """The least number of messages that is so much of the prefetch; at least one."""
    return max(1, -int(-prefetch * percent // 100))


def prefetch_of(settings: Settings, on_topic: bool, durable: bool, browses: bool, administered: Administered | None = None) -> int:
    """How many messages may be delivered to a consumer ahead of their acknowledgement."""
    if administered is not None and administered.consumer_flow_limit is not None:
        return administered.consumer_flow_limit or PREFETCH_MAX
    if settings.consumer_flow_limit is not None:
        return settings.consumer_flow_limit or PREFETCH_MAX
    policy = settings.prefetch_policy
    if browses:
        return policy.browser
    if not on_topic:
        return policy.queue
    if durable:
        return policy.optimized_durable_topic if settings.optimize_acknowledge else policy.durable_topic
    return policy.topic
