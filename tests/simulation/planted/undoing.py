"""What purges have discarded, and operators want back."""

from __future__ import annotations

from typing import Any

from broker_core.engine import discarding, maintenance, recovery, undoing

from .plant import Plant


class _Nothing:
    """Records that hold no segment."""

    def __init__(self, right: Any) -> None:
        self._right = right

    def within(self, *_: Any) -> Any:
        return iter(())

    def lowest(self, _key: Any, position: int) -> int:
        return position

    def __getattr__(self, name: str) -> Any:
        return getattr(self._right, name)


def record_is_forgotten_at_recovery(plant: Plant) -> None:
    """After a kill nothing can be undone."""
    plant.put(recovery, "restore_undo", lambda _shard, _row: None)


def segments_go_under_a_record(plant: Plant) -> None:
    """The janitor drops and compacts what only a record holds."""
    right = maintenance.maintain

    def maintain(shard: Any) -> Any:
        records, shard.records = shard.records, _Nothing(shard.records)
        steps = right(shard)
        shard.records = records
        return steps

    from broker_core.engine import engine

    plant.put(engine, "maintain", maintain)


def undo_is_not_in_the_ledger(plant: Plant) -> None:
    """What came back is known in memory only: after a kill it is discarded again."""

    def reopen(_shard: Any, cursor: Any, first: int, last: int, _mark: int) -> None:
        cursor.reopen(first, last)

    plant.put(undoing, "_reopen", reopen)


def what_is_held_is_undone_too(plant: Plant) -> None:
    """A purge keeps what consumers and transactions hold as if it had discarded that, too."""
    right = discarding._keep_for_undo

    plant.put(discarding, "_keep_for_undo", lambda shard, record, cursor, _held: right(shard, record, cursor, []))


def cursor_stays_where_it_is(plant: Plant) -> None:
    """What comes back is behind those who read on."""
    plant.put(undoing, "_go_back", lambda *_: None)


BUGS = (
    record_is_forgotten_at_recovery,
    segments_go_under_a_record,
    undo_is_not_in_the_ledger,
    what_is_held_is_undone_too,
    cursor_stays_where_it_is,
)
