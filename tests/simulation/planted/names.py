"""Duplicate detection."""

from __future__ import annotations

from typing import Any

from broker_core.engine import duplicates, maintenance, recovery, sending, transactions

from .plant import Plant


def names_forgotten_at_recovery(plant: Plant) -> None:
    """After a crash what was accepted before is accepted again."""
    plant.put(recovery, "restore", lambda *_: None)


def names_deleted_too_early(plant: Plant) -> None:
    """Rows of what is still remembered are deleted: the next term does not know them."""
    right = maintenance.trims

    def trims(shard: Any) -> Any:
        steps = right(shard)
        for step in steps:
            step.before = [(destination, shard.now) for destination, _ in step.before]
        return steps

    plant.put(maintenance, "trims", trims)


def named_before_the_commit(plant: Plant) -> None:
    """What a transaction was told is remembered at once, and still when it was rolled back."""
    right = transactions._send

    def send(shard: Any, transaction: Any, command: Any, sent: Any) -> None:
        right(shard, transaction, command, sent)
        destination, name = shard.destinations.get(sent.address), sent.message.header.duplicate_id
        if name and destination is not None and destination.known_ids is not None and transaction.refusal is None:
            duplicates.remember(shard, destination, name, stored=False)

    def commit(shard: Any, destination: Any, message: Any, sent_at: int) -> None:
        known, destination.known_ids = destination.known_ids, None
        accept(shard, destination, message, sent_at)
        destination.known_ids = known

    accept = transactions.accept
    plant.put(transactions, "_send", send)
    plant.put(transactions, "accept", commit)


def twice_in_one_batch(plant: Plant) -> None:
    """What the open batch has accepted is not known yet."""
    right = sending.is_duplicate

    def is_duplicate(shard: Any, destination: Any, message: Any) -> bool:
        open_batch = message.header.duplicate_id in shard.batch.remembered.get(destination, ())
        return not open_batch and right(shard, destination, message)

    plant.put(sending, "is_duplicate", is_duplicate)


BUGS = (
    names_forgotten_at_recovery,
    names_deleted_too_early,
    named_before_the_commit,
    twice_in_one_batch,
)
