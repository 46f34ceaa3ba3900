"""Who gets what, in which order, and how much of it."""

from __future__ import annotations

from tests.engine.rig import Bench


def test_a_link_never_holds_more_deliveries_than_the_cap() -> None:
    bench = Bench(link_unsettled=3)
    bench.send("a", "b", "c", "d", "e")
    assert bench.attach() == ["a", "b", "c"]
    assert bench.bodies(bench.settle(1)) == ["d"]
