"""Which tests run beside which, when several processes share them: what takes long begins first, and what shares something dear stays together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from tests.support.service import REPOSITORY

TOGETHER = ("tests/pipeline/",)
"""Rooms that one process runs as a whole: each process that runs tests of them starts Spark, which takes 30 processor seconds until it is warm."""
SHARED = re.compile(r"\b(mortal|home|fuzzed|secured): (?:Service|Secured)\b")
"""Services of tests/acceptance/conftest.py that several files share: each process that runs one of these files starts its own, which takes 8 processor
seconds, and some more for as long as it is up. `mortal` is `home`."""
FIRST = ("tests/pipeline/", "tests/simulation/", "tests/acceptance/", "tests/browser/", "tests/foreign/", "tests/amqp/", "tests/console/")
"""Rooms whose files take longest, so that no process is left alone with one of them at the end. All others follow as they were found."""


ALONE = ("alone", "not slow and alone")
"""What is asked for by these is in few files, and to read the hundreds of others takes 20 seconds."""


class ByRooms(LoadFileScheduling):
    """A file at a time, but for rooms, and files that share a service, which stay together."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return next((room for room in TOGETHER if nodeid.startswith(room)), None) or _service_of(file) or file


@cache
def _service_of(file: str) -> str:
    """Which of the shared services its tests ask for; empty: none."""
    asked = SHARED.search((REPOSITORY / file).read_text(encoding="utf-8")) if file.startswith("tests/acceptance/") else None
    return asked[1].replace("mortal", "home") if asked else ""


def scheduled(config: pytest.Config, log: Producer | None) -> ByRooms | None:
    """None: as asked on the command line."""
    if config.getoption("dist") != "loadfile":
        return None
    # xdist would begin with the files that have most tests, which are the quick ones.
    config.option.loadscopereorder = False
    return ByRooms(config, log)


def rank(nodeid: str) -> int:
    return next((place for place, room in enumerate(FIRST) if nodeid.startswith(room)), len(FIRST))


def by_length(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    return sorted(items, key=lambda item: rank(item.nodeid))


def is_in_vain(path: Path, config: pytest.Config) -> bool:
    """A file of tests none of which runs alone, where those are asked for."""
    return config.option.markexpr in ALONE and path.name.startswith("test_") and path.suffix == ".py" and "mark.alone" not in path.read_text("utf-8")
