"""Looking for a planted bug, in a process of its own: a search takes seconds, and there are many bugs."""

from __future__ import annotations

from collections import Counter

from tests.simulation import planted
from tests.simulation.world import run_seed

SEEDS = 120
FOUND = ("Broken:", "AssertionError:", "SegmentMissing:")
"""A promise that was not kept, or what the store refuses. Anything else may be a bug that does not fit the product any more."""

_IN: dict[str, tuple[str, ...]] = {
    "full": (
        "confirmed_while_it_waits", "overtaken_while_it_waits", "let_in_and_forgotten", "dropped_from_a_commit", "backups_are_served",
        "last_backup_takes_over",
    ),
    "removals": ("removed_without_a_trace",),
    "crowded": ("large_bodies_weigh_all_of_it", "full_memory_holds_up_who_waits"),
    "operated": (
        "move_is_not_in_the_ledger", "page_is_believed", "retried_are_dead_still", "purged_messages_stay", "bodies_on_disk_forgotten",
        *(bug.__name__ for bug in planted.undoing.BUGS),
    ),
    "guarded": tuple(bug.__name__ for bug in planted.access.BUGS),
    "managed": tuple(bug.__name__ for bug in planted.managing.BUGS),
    "amqp": tuple(bug.__name__ for bug in planted.amqp.BUGS),
    "branches": (
        "prepared_ends_with_its_connection", "acknowledgements_not_hardened", "sends_not_hardened", "reserved_is_paged_in",
        "restored_after_the_first_delivery", "outcome_leaves_the_rows", "prepared_are_rolled_back_at_start", "hand_is_forgotten",
    ),
}
CLIMATE = {name: climate for climate, names in _IN.items() for name in names}
"""Bugs that show in a climate that few seeds have."""
_LATE: dict[int, tuple[str, ...]] = {
    1: ("credit_is_used_up", "made_by_hand_is_forgotten", "producers_are_not_asked"),
    2: ("browser_shows_what_is_over", "sends_later_than_acknowledgements"),
    3: ("stolen_and_kept", "hands_over_before_it_answers", "last_backup_takes_over"),
    4: ("wishes_ignored", "expiry_ends_with_the_flush", "twice_in_one_batch"),
    6: ("drained_node_delivers_on",),
    7: ("cut_off_is_whole", "newest_exclusive_consumer_leads", "acknowledgements_later_than_sends", "timed_out_and_confirmed"),
    9: ("deleted_when_read",),
    10: ("bodies_on_disk_forgotten", "burials_forgotten"),
    11: ("backups_are_served",),
    12: ("overtaken_while_it_waits",),
    15: ("failures_not_durable",),
    18: ("volatile_begins_in_the_past", "own_messages_come", "ended_and_goes_on", "patterns_match_old_topics_only"),
    19: ("given_back_twice",),
    28: ("reader_forgotten", "selector_stays_as_it_was"),
    38: ("nack_does_not_wait",),
    103: ("retried_are_dead_still",),
}  # fmt: skip
FIRST = {name: seed for seed, names in _LATE.items() for name in names}
"""A seed in which the bug was found, of those that the first few do not find: it is looked at before all others. Where it is wrong by now nothing is lost
but the time for one history."""

BUGS = {bug.__name__: bug for bug in planted.BUGS}


def search(name: str) -> str:
    """Nothing if the bug is found, else a sentence."""
    others: Counter[str] = Counter()
    with planted.planted(BUGS[name], blind=True):
        for seed in sorted(range(SEEDS), key=lambda seed: seed != FIRST.get(name)):
            problem = run_seed(seed, climate=CLIMATE.get(name, ""))[0].problem
            if problem.startswith(FOUND):
                return ""
            if problem.startswith(("TypeError", "AttributeError", "NameError")):
                return f"it does not fit the product any more: {problem}"
            others[problem.partition(":")[0] or "no problem at all"] += 1
    return f"nothing was found but {dict(others)}"
