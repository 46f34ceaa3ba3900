"""How much of the machine Spark may have."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from broker_core.pipeline.session import keep_to

pytestmark = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system does not tell threads where to run")


def kept(master: str, beforehand: set[int]) -> set[int]:
    """The processors of a thread that asked for it, of those that it had."""

    def asking() -> set[int]:
        os.sched_setaffinity(0, beforehand)
        keep_to(master)
        return os.sched_getaffinity(0)

    with ThreadPoolExecutor(1) as alone:
        return alone.submit(asking).result()


@pytest.mark.parametrize("master", ["local[1]", "local[1,4]"])
def test_so_many_processors_as_the_master_says_and_the_last_ones(master: str) -> None:
    machine = os.sched_getaffinity(0)
    assert kept(master, machine) == {max(machine)}
    assert kept(master, {min(machine)}) == {min(machine)}, "never one that was not allowed before"


@pytest.mark.parametrize("master", ["local[*]", "local[900]", "local", "local[0]", "spark://host:7077", "yarn"])
def test_all_of_them_where_nothing_less_is_said(master: str) -> None:
    machine = os.sched_getaffinity(0)
    assert kept(master, machine) == machine
