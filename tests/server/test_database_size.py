"""A cap on the database's size (R21), for servers whose disk the broker cannot see: above it producers wait, and go on below."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from broker_core.server.space import Space
from broker_core.server.supervisor import SIZE_SECONDS

from .conftest import Run
from .rig import turns
from .terms import Operators, Term

MIB = 1 << 20


class Sized(Operators):
    """A database of `octets`, and how often it was asked."""

    def __init__(self, octets: int) -> None:
        super().__init__()
        self.octets, self.asked = octets, 0

    async def database_octets(self) -> int:
        self.asked += 1
        return self.octets


def capped(monkeypatch: pytest.MonkeyPatch, octets: int, octets_max: int) -> tuple[Term, Sized]:
    term, operators = Term(monkeypatch), Sized(octets)
    term.operators = term.term._operators = operators  # type: ignore[assignment]
    term.term._config = replace(term.term._config, database_url="postgresql://surety@db.example/surety", database_octets_max=octets_max)
    return term, operators


def test_above_the_cap_producers_wait_and_the_status_says_why(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        term, operators = capped(monkeypatch, 900 * MIB, 800 * MIB)
        await term.start()
        client = await term.client()
        client.send(b"waits", "1")
        await asyncio.sleep(10)
        assert client.receipts() == []
        status = operators.statuses[-1]
        assert status["space_low"] is True
        assert status["space_reason"] == "the database holds 900 MiB, and SURETY_DATABASE_OCTETS_MAX allows 800 MiB"
        assert status["space_database_octets"] == 900 * MIB
        operators.octets = 800 * MIB
        await asyncio.sleep(2 * SIZE_SECONDS)
        assert client.receipts() == ["1"]
        assert operators.statuses[-1]["space_low"] is False
        await term.end()

    run(story())


def test_the_size_is_asked_for_every_few_seconds(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        term, operators = capped(monkeypatch, MIB, 800 * MIB)
        await term.start()
        await asyncio.sleep(60)
        assert 60 / SIZE_SECONDS - 1 <= operators.asked <= 60 / SIZE_SECONDS + 1
        await term.end()

    run(story())


def test_without_a_cap_nobody_asks(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        term, operators = capped(monkeypatch, 900 * MIB, 0)
        await term.start()
        client = await term.client()
        client.send(b"goes", "1")
        await asyncio.sleep(10)
        assert client.receipts() == ["1"]
        assert operators.asked == 0
        assert operators.statuses[-1]["space_database_octets"] is None
        await turns()
        await term.end()

    run(story())


def test_a_size_that_is_not_known_yet_is_not_too_large() -> None:
    space = Space(None, 0, MIB)
    space.look()
    assert not space.low
    space.database_octets = MIB
    space.look()
    assert not space.low, "the cap itself is allowed"
    space.database_octets = MIB + 1
    space.look()
    assert space.low
