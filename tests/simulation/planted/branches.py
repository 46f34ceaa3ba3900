"""Branches of distributed transactions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from broker_core.engine import branches, engine, prepared, recovery
from broker_core.engine.branch import State

from .plant import Plant


def prepared_ends_with_its_connection(plant: Plant) -> None:
    """Who prepared a branch is lost, and it is rolled back as one that is not prepared."""
    right_prepare, right_lose = branches.prepare, engine.lose_branches
    begun: dict[int, list[Any]] = {}

    def prepare(shard: Any, branch: Any, room: Any) -> Any:
        begun.setdefault(branch.peer, []).append(branch)
        return right_prepare(shard, branch, room)

    def lose(shard: Any, peer: Any) -> None:
        for branch in begun.pop(peer.number, ()):
            if branch.state is State.PREPARED and shard.branches.numbered.get(branch.number) is branch:
                prepared.roll_back_prepared(shard, branch)
        right_lose(shard, peer)

    plant.put(branches, "prepare", prepare)
    plant.put(engine, "lose_branches", lose)


def acknowledgements_not_hardened(plant: Plant) -> None:
    """A prepare stores what the branch sends, and not what it acknowledged."""
    right = prepared._hardened
    plant.put(prepared, "_hardened", lambda branch: replace(right(branch), settled=[]))


def sends_not_hardened(plant: Plant) -> None:
    """The other way round."""
    right = prepared._hardened
    plant.put(prepared, "_hardened", lambda branch: replace(right(branch), sends=right(branch).sends[:-1]))


def reserved_is_paged_in(plant: Plant) -> None:
    """After a restart pages bring what a prepared branch has acknowledged."""

    def take(cursor: Any, message: Any) -> None:
        cursor.reserved[message.position] = message

    plant.put(prepared, "_take", take)


def restored_after_the_first_delivery(plant: Plant) -> None:
    """A restart knows of prepared branches, and not what they have reserved: it is delivered meanwhile."""
    plant.put(prepared, "_take", lambda _cursor, _message: None)


def outcome_leaves_the_rows(plant: Plant) -> None:
    """The commit of a prepared branch does not take its rows along: after a restart it is prepared again."""
    right = prepared._end

    def end(shard: Any, branch: Any, state: Any) -> None:
        right(shard, branch, state)
        shard.batch.resolved = [(number, state) for number, state in shard.batch.resolved if state]

    plant.put(prepared, "_end", end)


def prepared_are_rolled_back_at_start(plant: Plant) -> None:
    """As all others are."""
    plant.put(recovery, "restore_branches", lambda _shard, _found: None)


def hand_is_forgotten(plant: Plant) -> None:
    """What an administrator ended is not remembered: its transaction manager hears that there is no such branch, and takes it for lost."""
    right = prepared._end
    plant.put(prepared, "_end", lambda shard, branch, _state: right(shard, branch, None))


BUGS = (
    prepared_ends_with_its_connection,
    acknowledgements_not_hardened,
    sends_not_hardened,
    reserved_is_paged_in,
    restored_after_the_first_delivery,
    outcome_leaves_the_rows,
    prepared_are_rolled_back_at_start,
    hand_is_forgotten,
)
