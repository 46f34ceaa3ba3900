"""Engine time (R12)."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from broker_core.server import clock
from broker_core.server.clock import Clock


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
