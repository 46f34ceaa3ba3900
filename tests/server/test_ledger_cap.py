"""The ledger must not fill the space that the database may take: nothing but time would free it."""

from __future__ import annotations

import dataclasses

from broker_core.config import BrokerConfig
from broker_core.server.limits import ledger_cap

CONFIG = BrokerConfig()


def test_without_a_cap_of_the_database_the_ledger_has_its_own() -> None:
    assert ledger_cap(CONFIG) == CONFIG.ledger_octets_max


def test_the_ledger_takes_at_most_half_of_what_the_database_may() -> None:
    assert ledger_cap(dataclasses.replace(CONFIG, database_octets_max=1_000_000_000)) == 500_000_000
    assert ledger_cap(dataclasses.replace(CONFIG, database_octets_max=1 << 49)) == CONFIG.ledger_octets_max
