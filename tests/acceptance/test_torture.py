"""The kill loop in its short form: a minute of faults from a fixed seed, and the same with a second node standing by."""

import pytest

from tests.acceptance import delivery_audit, torture

pytestmark = pytest.mark.alone

SEED = 20260101


def test_kills_of_node_and_database_break_no_promise() -> None:
    assert torture.torture(SEED, torture.SHORT) == 0


@pytest.mark.slow
def test_kills_break_no_promise_with_a_second_node_standing_by_and_the_ledger_proves_every_message() -> None:
    missing = delivery_audit.cannot()
    if missing:
        pytest.skip(missing)
    assert torture.torture(SEED + 1, torture.SHORT, standby=True, audited=True) == 0
