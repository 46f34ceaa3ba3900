"""Six properties of the engine, each held by a history against a naive model (docs/behaviours.md, Properties): a planted bug that breaks it is found, by what
can be seen alone, with the invariants switched off."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from broker_core.engine import delivering, dispatch
from broker_core.engine.subscription import Subscription
from tests.engine import rig
from tests.engine.test_model import Histories
from tests.engine.test_recovery_model import Recoveries
from tests.engine.test_transactions_model import Transactions
from tests.semantics.planted import lost_alone
from tests.simulation.planted import durability, redelivery, storage, transacting
from tests.simulation.planted.plant import Bug, Plant

EXAMPLES_MAX = 3000


def lanes_by_age(plant: Plant) -> None:
    """Lanes are served in the order in which they came into being, whatever their priority."""
    right = Subscription.cursor

    def cursor(self: Subscription, lane: Any) -> Any:
        known, made = list(self.order), right(self, lane)
        if made not in known:
            self.order[:] = [*known, made]
        return made

    plant.put(Subscription, "cursor", cursor)


def delivered_and_left(plant: Plant) -> None:
    """The last of several that leave together waits for the next consumer as well."""
    right = delivering._take

    def take(shard: Any, link: Any, cursor: Any, count: int) -> Any:
        messages = right(shard, link, cursor, count)
        if len(messages) > 1 and not cursor.returned:
            last = messages[-1]
            cursor.ready.appendleft(last)
            cursor.octets += last.size
            shard.memory += last.size
        return messages

    plant.put(delivering, "_take", take)


def one_beyond_credit(plant: Plant) -> None:
    """Who has no credit left gets one message more."""
    right = delivering.room_of

    def room_of(shard: Any, link: Any) -> int:
        return right(shard, link) or int(link.credit == 0 and link.number in shard.links)

    plant.put(dispatch, "room_of", room_of)


FOUND: list[tuple[str, type[RuleBasedStateMachine], Bug]] = [
    ("conservation", Histories, storage.floor_raised_too_far),
    ("order", Histories, lanes_by_age),
    ("exclusivity", Histories, delivered_and_left),
    ("nothing beyond credit", Histories, one_beyond_credit),
    ("all or none", Transactions, transacting.transaction_torn),
    ("all or none", Transactions, lost_alone),
    ("recovery", Recoveries, durability.settled_without_ledger),
    ("recovery", Recoveries, redelivery.offered_mark_lost),
]


@pytest.mark.parametrize(("_property", "machine", "bug"), FOUND, ids=[f"{name}: {bug.__name__}" for name, _, bug in FOUND])
def test_a_bug_that_breaks_the_property_is_found(_property: str, machine: Any, bug: Bug) -> None:
    seeded = settings(machine.TestCase.settings, max_examples=EXAMPLES_MAX, derandomize=True, database=None, phases=[Phase.generate])
    plant = Plant()
    plant.put(rig, "check", lambda _engine: None)
    bug(plant)
    try:
        with pytest.raises(AssertionError):
            run_state_machine_as_test(machine, settings=seeded)
    finally:
        plant.pull()
