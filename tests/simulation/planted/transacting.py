"""Transactions."""

from __future__ import annotations

from typing import Any

from broker_core.engine import transactions

from .plant import Plant


def aborted_sends_appear(plant: Plant) -> None:
    """What a transaction sent is placed although it is rolled back."""
    right = transactions.roll_back

    def roll_back(shard: Any, transaction: Any, outcome: Any, peer: Any = None) -> None:
        for send in transaction.sends if peer is not None else ():
            if transactions.why_not(shard, send) is None:
                destination = transactions.obtain(shard, send.peer, send.address)
                transactions.accept(shard, destination, send.message, send.message.accepted_at)
        right(shard, transaction, outcome, peer)

    plant.put(transactions, "roll_back", roll_back)


def transaction_torn(plant: Plant) -> None:
    """A commit leaves out the last of several sends."""
    right = transactions._commit

    def commit(shard: Any, transaction: Any) -> None:
        if len(transaction.sends) > 1:
            transaction.sends.pop()
        right(shard, transaction)

    plant.put(transactions, "_commit", commit)


def reserved_forgotten(plant: Plant) -> None:
    """What a transaction acknowledged stays reserved when it is rolled back."""
    plant.put(transactions, "unreserve", lambda _subscription, _message: False)


BUGS = (
    aborted_sends_appear,
    transaction_torn,
    reserved_forgotten,
)
