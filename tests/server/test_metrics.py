"""What the node counts about itself."""

from __future__ import annotations

import pytest

from broker_core.engine.message import Header, Message
from broker_core.engine.writes import Commit
from broker_core.server.metrics import COMMIT_SECONDS, Metrics


@pytest.mark.parametrize(
    ("seconds", "bucket"), [(0.0, 0), (0.0005, 0), (0.00051, 1), (0.01, 4), (0.011, 5), (5.0, 10), (5.1, 11), (1e9, 11)]
)
def test_a_commit_falls_into_the_bucket_with_the_next_higher_bound(seconds: float, bucket: int) -> None:
    metrics = Metrics()
    metrics.committed(Commit(1, 0, 0, synchronous=True, segment=1), seconds)
    assert [n for n, count in enumerate(metrics.commit_buckets) if count] == [bucket]
    assert len(metrics.commit_buckets) == len(COMMIT_SECONDS) + 1, "the last has no bound"


def test_commits_messages_and_seconds_are_summed() -> None:
    metrics = Metrics()
    messages = [Message(Header(b""), b"", 0)] * 3
    metrics.committed(Commit(1, 0, 0, synchronous=True, segment=1, messages=messages), 0.25)
    metrics.committed(Commit(2, 0, 0, synchronous=False, segment=1), 0.5)
    told = metrics.as_dict()
    assert (told["commits_total"], told["synchronous_commits_total"], told["messages_stored_total"]) == (2, 1, 3)
    assert told["commit_seconds_sum"] == 0.75
    assert sum(told["commit_seconds_buckets"]) == 2
