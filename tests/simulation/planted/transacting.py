"""Transactions."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

from broker_core.engine import transactions
from broker_core.engine.outcome import Outcome
from broker_core.engine.settlement import settle as settle_at_once

from tests.simulation import term
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
    right = transactions.commit

    def commit(shard: Any, transaction: Any, *how: Any) -> None:
        if len(transaction.sends) > 1:
            transaction.sends.pop()
        right(shard, transaction, *how)

    plant.put(transactions, "commit", commit)


def reserved_forgotten(plant: Plant) -> None:
    """What a transaction acknowledged stays reserved when it is rolled back."""
    plant.put(transactions, "unreserve", lambda _subscription, _message: False)


def _put_off(plant: Plant, split: Callable[[Any, Any], None]) -> None:
    """One half of a transaction is done by the next commit of the store, and the receipt waits for that. `split` says what stays and what is put off."""
    commit_all, confirm_now, flush_now = transactions.commit, transactions._confirm, term.Watched.flush
    fresh: list[tuple[Any, Callable[[], None]]] = []
    due: list[tuple[Any, Callable[[], None]]] = []
    torn: list[bool] = []

    def commit(shard: Any, transaction: Any, *how: Any) -> None:
        if transaction.sends and transaction.settles:
            later = copy(transaction)
            split(transaction, later)
            fresh.append((shard, lambda: commit_all(shard, later, *how)))
            torn.append(True)
        commit_all(shard, transaction, *how)

    def confirm(shard: Any, command: Any) -> None:
        if torn:
            torn.clear()
            fresh.append((shard, lambda: confirm_now(shard, command)))
        else:
            confirm_now(shard, command)

    def flush(self: Any, now: int, **how: Any) -> Any:
        for shard, work in due:
            if shard is self.shard:
                work()
        due[:], fresh[:] = fresh, []
        return flush_now(self, now, **how)

    plant.put(transactions, "commit", commit)
    plant.put(transactions, "_confirm", confirm)
    plant.put(term.Watched, "flush", flush)


def acknowledgements_later_than_sends(plant: Plant) -> None:
    """What a transaction sent is durable one commit before what it acknowledged is: a crash between leaves half of it."""

    def split(now: Any, later: Any) -> None:
        now.settles, later.sends, later.octets = [], [], 0

    _put_off(plant, split)


def sends_later_than_acknowledgements(plant: Plant) -> None:
    """The other way round: a crash between loses messages."""

    def split(now: Any, later: Any) -> None:
        now.sends, now.octets, later.settles = [], 0, []

    _put_off(plant, split)


def commits_what_it_could_not_do(plant: Plant) -> None:
    """An acknowledgement of what is not outstanding changes nothing, within a transaction either."""
    plant.put(transactions, "_not_outstanding", lambda shard, _transaction, command: transactions._confirm(shard, command))


def nack_does_not_wait(plant: Plant) -> None:
    """A NACK within a transaction counts before the commit."""
    right = transactions._settle

    def settle(shard: Any, transaction: Any, command: Any, work: Any) -> None:
        if work.outcome is Outcome.ACCEPTED:
            right(shard, transaction, command, work)
        else:
            settle_at_once(shard, work)
            transactions._confirm(shard, command)

    plant.put(transactions, "_settle", settle)


def timed_out_and_confirmed(plant: Plant) -> None:
    """The COMMIT of a transaction that was rolled back because it took too long is confirmed."""
    right = transactions.why_not_commit

    def why_not_commit(shard: Any, peer: Any, transaction: Any, *how: Any) -> Any:
        transaction.ends_at = shard.now + 1
        return right(shard, peer, transaction, *how)

    plant.put(transactions, "why_not_commit", why_not_commit)


BUGS = (
    aborted_sends_appear,
    transaction_torn,
    reserved_forgotten,
    acknowledgements_later_than_sends,
    sends_later_than_acknowledgements,
    commits_what_it_could_not_do,
    nack_does_not_wait,
    timed_out_and_confirmed,
)
