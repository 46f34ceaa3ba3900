"""Seeded histories keep every promise, among fifty is everything that is dangerous; the same seed tells the same history; `make simulate` plays more."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.__main__ import missing
from tests.simulation.climates import CLIMATES, LIMITED, SPOKEN, climate_of
from tests.simulation.world import COMMANDS, MUST_HAPPEN, SEEDS_FOR_ALL, run_seed

REPOSITORY = Path(__file__).resolve().parents[2]
IN_AMQP = 22
"""A seed whose climate is AMQP's."""


def play(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "tests.simulation", *arguments], cwd=REPOSITORY, capture_output=True, text=True, timeout=600)


def test_every_promise_is_kept_in_a_dozen_histories() -> None:
    played = play("--seeds", "12")
    assert played.returncode == 0, played.stdout + played.stderr


@pytest.mark.slow
def test_every_promise_is_kept_in_fifty_histories_with_everything_dangerous_among_them() -> None:
    played = play("--seeds", str(SEEDS_FOR_ALL))
    assert played.returncode == 0, played.stdout + played.stderr
    assert "what is dangerous and has not happened: nothing" in played.stdout


def test_a_run_says_what_has_not_happened_in_it() -> None:
    happened = dict.fromkeys(MUST_HAPPEN, 1)
    assert missing(happened, SEEDS_FOR_ALL) == []
    assert missing(happened | {"kills": 0}, SEEDS_FOR_ALL) == ["kills"]
    assert missing({}, SEEDS_FOR_ALL) == [*MUST_HAPPEN]


def test_a_few_histories_are_not_asked_for_everything_and_say_so() -> None:
    assert missing({}, SEEDS_FOR_ALL - 1) == []
    assert "is not looked at" in play("--seeds", "1").stdout


OF_CLIMATES = [*range(len(CLIMATES)), IN_AMQP]
"""A seed of each; `make test` plays one in three of them twice, `make verify` all."""


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=[pytest.mark.slow] if place % 3 else [], id=climate_of(seed).name) for place, seed in enumerate(OF_CLIMATES)]
)
def test_the_same_seed_tells_the_same_history(seed: int) -> None:
    first, events = run_seed(seed, keep_events=True)
    again, told_again = run_seed(seed, keep_events=True)
    assert first.problem == again.problem == ""
    assert (first.trace, first.counts) == (again.trace, again.counts)
    assert events == told_again
    assert first.counts["commands"] >= COMMANDS
    assert first.counts["commits"] / first.counts["checkpoints"] < 6


def test_some_speak_amqp_in_histories_of_other_climates_too() -> None:
    assert climate_of(IN_AMQP) is SPOKEN[0]
    mixed = {climate_of(seed).name for seed in range(400) if 0 < climate_of(seed).amqp < SPOKEN[0].amqp}
    assert mixed >= {climate.name for climate in (*CLIMATES, *LIMITED)}


def test_another_seed_tells_another_history_of_the_same_climate() -> None:
    assert run_seed(0, commands=200)[0].trace != run_seed(len(CLIMATES), commands=200)[0].trace


def test_a_history_leaves_the_log_as_it_was(caplog: pytest.LogCaptureFixture) -> None:
    run_seed(0, commands=100)
    logging.getLogger("surety.client").warning("heard")
    assert caplog.messages == ["heard"]
