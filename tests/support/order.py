"""Which tests run beside which, when several processes share them: what takes long begins first, and what shares something dear stays together."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

TOGETHER = ("tests/pipeline/",)
"""Rooms that one process runs as a whole: each process that runs tests of them starts Spark, which takes 30 processor seconds until it is warm."""
FIRST = ("tests/pipeline/", "tests/simulation/", "tests/acceptance/", "tests/browser/", "tests/foreign/", "tests/amqp/", "tests/console/")
"""Rooms whose files take longest, so that no process is left alone with one of them at the end. All others follow as they were found."""


class ByRooms(LoadFileScheduling):
    """A file at a time, but for rooms that stay together."""

    def _split_scope(self, nodeid: str) -> str:
        return next((room for room in TOGETHER if nodeid.startswith(room)), super()._split_scope(nodeid))


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
