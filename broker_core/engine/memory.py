"""How full the memory for messages is, in four levels with the names of Open MQ's, and what is done at each."""

from __future__ import annotations

from enum import IntEnum

from .shard import Shard
from .subscription import Subscription

VOLATILE_SHARE = 0.75
"""Of the memory for bodies; the rest stays free for pages, so that a flood of volatile messages does not slow stored ones."""


SMALL = 64
"""While memory is short a page is so many times smaller: what one lane may have even then."""


class MemoryLevel(IntEnum):
    GREEN = 0
    """Whatever comes is kept at hand, as far as windows allow."""
    YELLOW = 1
    """Volatile messages that come and that nobody waits for go to disk, and best effort is dropped (placing.py)."""
    ORANGE = 2
    """There is room for less than a page: pages are small, and what idle consumers have ahead is forgotten (paging.py)."""
    RED = 3
    """Nothing more is kept at hand or read ahead: who has nothing reads small pages, one after the other."""


def memory_level(shard: Shard) -> MemoryLevel:
    memory, limits = shard.memory, shard.limits
    if memory >= limits.memory_octets:
        return MemoryLevel.RED
    if memory + limits.page_octets > limits.memory_octets:
        return MemoryLevel.ORANGE
    return MemoryLevel.YELLOW if memory >= limits.memory_octets * VOLATILE_SHARE else MemoryLevel.GREEN


def is_cooling(shard: Shard, subscription: Subscription) -> bool:
    """Memory is full, and more than a small page of what it holds waits for back-offs: whoever fails whatever comes, as fast as it comes, would have any
    amount of volatile messages waiting there. Until some are back the subscription gets nothing, and what comes goes to disk."""
    limits = shard.limits
    if shard.memory < limits.memory_octets:
        return False
    return sum([cursor.delayed_octets for cursor in subscription.order]) > limits.page_octets // SMALL
