"""What operators are told of how long messages waited, and why they died: counted once a batch or a death, so that a message on its way costs nothing."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from .outcome import Outcome

if TYPE_CHECKING:
    from .destination import Destination
    from .message import Message
    from .shard import Shard

WAITED_MS = (1, 5, 10, 50, 100, 500, 1_000, 5_000, 10_000, 60_000, 300_000, 3_600_000, 86_400_000)
"""Upper bounds of the buckets: from what leaves at once to what waits for a day."""
CAUSES = ("expired", "undeliverable", "rejected", "oldest", "low_priority", "refused")
"""Why messages die, as operators are told; `refused`: sent by SQL, where nobody is there to hear it."""
_CAUSE = {
    Outcome.EXPIRED: 0, Outcome.UNDELIVERABLE: 1, Outcome.REJECTED: 2, Outcome.OLDEST: 3, Outcome.LOW_PRIORITY: 4,
}  # fmt: skip
REFUSED = 5


class Observed:
    """Of a destination or of the shard, since recovery."""

    __slots__ = ("died", "waited", "waited_ms")

    def __init__(self) -> None:
        self.waited = [0] * (len(WAITED_MS) + 1)
        """Acknowledged messages by how long they had been there, up to each bound and beyond the last; not cumulative."""
        self.waited_ms = 0
        """The sum."""
        self.died = [0] * len(CAUSES)

    def acknowledged(self, milliseconds: int, messages: int) -> None:
        self.waited[bisect_left(WAITED_MS, milliseconds)] += messages
        self.waited_ms += milliseconds * messages


def note_acknowledged(shard: Shard, destination: Destination, message: Message, messages: int) -> None:
    """So many of a lane were acknowledged in this batch. The one that is looked at stands for all of them."""
    waited = max(shard.now - message.accepted_at, 0)
    shard.observed.acknowledged(waited, messages)
    (destination.observed or _begin(destination)).acknowledged(waited, messages)


def note_dead(shard: Shard, destination: Destination, outcome: Outcome, messages: int) -> None:
    cause = _CAUSE[outcome]
    shard.observed.died[cause] += messages
    (destination.observed or _begin(destination)).died[cause] += messages


def _begin(destination: Destination) -> Observed:
    destination.observed = Observed()
    return destination.observed
