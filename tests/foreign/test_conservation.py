"""Whatever breaks, every message is at the other broker or dead here; and a carrier with a bug is found out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from broker_core.foreign import carrier as carriers
from broker_core.foreign import translating
from broker_core.foreign.carrier import Carrier
from tests.foreign.histories import Broken, History

SEEDS = 150


def play(seeds: int) -> None:
    for seed in range(seeds):
        try:
            History(seed).run()
        except Broken as broken:
            raise Broken(f"seed {seed}: {broken}") from broken


def test_nothing_is_lost_and_nothing_comes_twice_unsaid() -> None:
    play(SEEDS)


# -- planted bugs -----------------------------------------------------------------------------------------------------------------------
def acknowledged_when_it_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not when it is confirmed."""
    right = Carrier._begin

    def begin(self: Carrier, section: Any, now: int) -> None:
        right(self, section, now)
        self.source.write("ACK", [("id", section.headers["ack"])])
        self._way = dict.fromkeys(self._way, "")

    def of_target(self: Carrier, event: Any, now: int) -> None:
        if event[0].command == "RECEIPT":
            self._way.pop(event[0].headers["receipt-id"])
        else:
            right_of_target(self, event, now)

    right_of_target = Carrier._of_target
    monkeypatch.setattr(Carrier, "_begin", begin)
    monkeypatch.setattr(Carrier, "_of_target", of_target)


def the_last_one_is_to_blame(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the one that the ERROR names."""
    right = Carrier._target_error

    def target_error(self: Carrier, headers: dict[str, str], body: bytes, now: int) -> None:
        right(self, headers | ({"receipt-id": list(self._way)[-1]} if self._way else {}), body, now)

    monkeypatch.setattr(Carrier, "_target_error", target_error)


def a_redelivery_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translating, "REDELIVERED", "x")


def a_part_of_a_body_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last one, of bodies that come in parts."""
    right = carriers.End.go_on

    def go_on(self: Any, part: bytes) -> None:
        right(self, part if len(part) != 1 else b"?")

    monkeypatch.setattr(carriers.End, "go_on", go_on)


@pytest.mark.parametrize(
    "bug",
    [acknowledged_when_it_is_sent, the_last_one_is_to_blame, a_redelivery_is_not_told, a_part_of_a_body_is_forgotten],
)
def test_a_planted_bug_is_found(bug: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    with pytest.raises(Broken):
        play(SEEDS)
