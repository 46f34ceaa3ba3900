"""A hundred seeded histories keep every promise; the same seed tells the same history; `make simulate` plays more of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.simulation.world import COMMANDS, MUST_HAPPEN, run_seed

REPOSITORY = Path(__file__).resolve().parents[2]
SEEDS = 100


def test_every_promise_is_kept_in_a_hundred_histories() -> None:
    command = [sys.executable, "-m", "tests.simulation", "--seeds", str(SEEDS)]
    played = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=600)
    assert played.returncode == 0, played.stdout + played.stderr


def test_the_same_seed_tells_the_same_history() -> None:
    first, events = run_seed(3, keep_events=True)
    again, told_again = run_seed(3, keep_events=True)
    assert first.problem == again.problem == ""
    assert (first.trace, first.counts) == (again.trace, again.counts)
    assert events == told_again
    assert first.trace != run_seed(4)[0].trace


def test_everything_that_is_dangerous_happens_in_one_history() -> None:
    counts = run_seed(5)[0].counts
    assert counts["commands"] >= COMMANDS
    assert [what for what in MUST_HAPPEN if not counts[what]] == []
    assert counts["commits"] / counts["checkpoints"] < 6
