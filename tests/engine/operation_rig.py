"""Operations of operators on the bench: from the request to what came of it."""

from __future__ import annotations

from typing import Any

from broker_core.engine.writes import OperationRow
from tests.engine.rig import QUEUE, Bench

OTHER = "queue/other"


def ready(**limits: Any) -> Bench:
    """A bench with `OTHER`."""
    bench = Bench(**limits)
    bench.control("create", OTHER)
    return bench


def operate(bench: Bench, verb: str, address: str = QUEUE, **arguments: object) -> OperationRow:
    """From the request to the operation's end."""
    answer = bench.control("operate", address, verb=verb, **arguments)
    assert "operation" in answer, answer
    return row(bench, answer["operation"])


def row(bench: Bench, number: int) -> OperationRow:
    return bench.database.tables.operations[number]


def counts(row: OperationRow) -> tuple[str, int, int, int, int]:
    return row.state.value, row.looked_at, row.done, row.skipped, row.failed


def steps(bench: Bench, count: int) -> None:
    """Of a slow bench: so many batches, before each of which what was asked for is read."""
    for _ in range(count):
        bench.read()
        bench.flush()


def crashes_after(bench: Bench, flushes: int) -> None:
    """After so many steps of a slow bench; the next term does all that is left."""
    steps(bench, flushes)
    bench.slow = False
    bench.start()
    bench.flush()
