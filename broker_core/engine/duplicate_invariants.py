"""What must hold of remembered identifiers after every flush (see invariants)."""

from __future__ import annotations

from itertools import pairwise

from .shard import Shard


def check_duplicates(shard: Shard) -> None:
    """Who has a window remembers, in order and within bounds, and is looked through in turn."""
    known = {destination: destination.known_ids for destination in shard.destinations.values() if destination.known_ids is not None}
    for destination in shard.destinations.values():
        wanted = destination.owner is None and destination.settings.duplicate_window_ms > 0
        assert (destination in known) == wanted, f"{destination.address} has a window of {destination.settings.duplicate_window_ms} ms"
    turns = list(shard.duplicates.turns)
    assert len(turns) == len(known) and set(turns) == set(known), "destinations that remember are not those that are looked through"
    for destination, ids in known.items():
        instants = ids.instants()
        assert all(a <= b for a, b in pairwise(instants)), f"{destination.address} does not remember in the order of acceptance"
        assert len(instants) <= shard.limits.duplicate_ids_max, f"{destination.address} remembers {len(instants)} identifiers"
        assert not instants or instants[-1] <= shard.now, f"{destination.address} remembers what is still to come"
        late = ids.trimmed_before > min([*instants, shard.now])
        assert not late, f"rows of what {destination.address} remembers are deleted"
        assert destination.number not in shard.duplicates.leaving, f"{destination.address} remembers, and its rows are all to be deleted"
    total = sum(map(len, known.values()))
    assert shard.duplicates.ids == total, f"{shard.duplicates.ids} identifiers are said to be remembered, {total} are"
