"""The five levels of reliability, cell by cell (checklist items 113, 114, 122, 129), over real processes. What a backup keeps is in test_backup, what a foreign
link in test_foreign."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.acceptance import levels
from tests.acceptance.levels_table import KEYS, Count, Demand, Key, Row, broken, table
from tests.support.service import Service

DEMANDS = {key: key[0].promise(key[1]).demand for key in KEYS}
AS_PROMISED = {key: Count(7 if demand is Demand.ALL else 0, 7) for key, demand in DEMANDS.items()}
IN_ONE_SERVICE = [key for key in KEYS if key[0] not in (Row.BACKUP, Row.LINK)]


@pytest.fixture(scope="module")
def found() -> Mapping[Key, Count]:
    with Service(environment=levels.ENVIRONMENT) as service:
        observed = levels.run(service)
    print(table(observed))
    return observed


@pytest.mark.parametrize("key", IN_ONE_SERVICE, ids=lambda key: f"{key[0].name} {key[1]}")
def test_a_level_keeps_what_is_promised_of_it(found: Mapping[Key, Count], key: Key) -> None:
    assert key not in broken(found), table(found)


@pytest.mark.slow
def test_each_round_of_five_keeps_the_whole_table() -> None:
    found = levels.rounds(5)
    assert broken(found) == [], table(found)


@pytest.mark.parametrize("key", [key for key in KEYS if DEMANDS[key] is not Demand.NOTHING], ids=lambda key: f"{key[0].name} {key[1]}")
def test_a_cell_that_is_not_as_promised_is_seen(key: Key) -> None:
    wrong = AS_PROMISED | {key: Count(1, 7)}
    assert broken(AS_PROMISED) == []
    assert broken(wrong) == [key]
    assert table(wrong).count("WRONG: ") == 1
    assert broken({other: count for other, count in AS_PROMISED.items() if other != key}) == [key]


def test_what_is_permitted_is_not_demanded() -> None:
    permitted = [key for key in KEYS if DEMANDS[key] is Demand.NOTHING]
    assert broken(AS_PROMISED | dict.fromkeys(permitted, Count(3, 7))) == []
