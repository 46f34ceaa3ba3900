"""Engine time (R12)."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from broker_core.engine.recovered import LedgerRow, Recovered
from broker_core.engine.writes import Checkpoint
from broker_core.server import clock
from broker_core.server.clock import AHEAD_MS_MAX, Clock, believable


def test_it_never_goes_back_and_never_before_the_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = SimpleNamespace(at=50.0)
    monkeypatch.setattr(clock, "time", SimpleNamespace(monotonic=lambda: ours.at))
    engine_time = Clock(1_000_000, 50.0)
    assert engine_time.now() == 1_000_000
    ours.at = 49.0
    assert engine_time.now() == 1_000_000
    ours.at = 51.5
    assert engine_time.now() == 1_001_500
    engine_time.not_before(2_000_000)
    assert engine_time.now() == 2_000_000
    engine_time.not_before(5)
    ours.at = 52.0
    assert engine_time.now() == 2_000_000
    ours.at = 1_051.0
    assert engine_time.now() == 2_001_000


def test_a_ledger_a_little_ahead_is_believed_and_one_far_ahead_for_a_second_only() -> None:
    rows = [LedgerRow(number, at, 0, 1, [], [], [], []) for number, at in ((1, 5_000), (2, 10_900))]
    found = Recovered(1, 10_000, Checkpoint(0, 9_000, 0), rows)
    assert believable(found) is found
    rows.append(LedgerRow(3, 99_000, 7, 1, [(1, 0, 1, 1)], [], [], []))
    believed = believable(found)
    assert [row.at for row in believed.ledger] == [5_000, 10_900, 10_000 + AHEAD_MS_MAX]
    assert (believed.ledger[-1].sequence, believed.ledger[-1].accepted) == (7, [(1, 0, 1, 1)])
    assert believed.checkpoint == found.checkpoint
    assert rows[-1].at == 99_000, "what the store holds is its own"
    assert believable(Recovered(1, 10_000, Checkpoint(0, 99_000, 0))).checkpoint.at == 10_000 + AHEAD_MS_MAX
