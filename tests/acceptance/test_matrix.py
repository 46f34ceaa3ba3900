"""Every cell of the document's matrix of delivery modes, destinations and restarts, over real processes."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.acceptance import matrix
from tests.acceptance.matrix import DEMANDED, Fate, Key, Mode, Target
from tests.support.service import Service


@pytest.fixture(scope="module")
def found(home: Service) -> Mapping[Key, str]:
    observed = matrix.run(home)
    print(matrix.table(observed))
    return observed


@pytest.mark.parametrize("key", DEMANDED, ids=lambda key: " x ".join(part.value for part in key))
def test_a_message_becomes_what_the_document_demands(found: Mapping[Key, str], key: Key) -> None:
    assert found[key] == DEMANDED[key]


def test_the_table_shows_what_is_not_as_demanded() -> None:
    key = Mode.PERSISTENT, Target.QUEUE, Fate.KILL
    rows = matrix.table(DEMANDED | {key: matrix.LOST}).splitlines()
    assert [row for row in rows if "WRONG: lost; demanded: survives" in row] == [row for row in rows if row.startswith("| persistent x queue")]
    assert "WRONG" not in matrix.table(DEMANDED)
