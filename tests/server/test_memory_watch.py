"""The log says how full the memory for messages is, and is not filled by it."""

from __future__ import annotations

import logging

import pytest

from broker_core.engine.memory import MemoryLevel
from broker_core.server.memory_watch import MemoryWatch

GREEN, YELLOW, ORANGE, RED = MemoryLevel


def test_each_rise_is_told_once_and_that_it_is_green_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "surety.memory")
    watch = MemoryWatch()
    for level in (GREEN, YELLOW, GREEN, YELLOW, ORANGE, YELLOW, ORANGE, RED, ORANGE, GREEN, GREEN):
        watch.look(level, 100 << 20, 128 << 20)
    told = [record.getMessage() for record in caplog.records]
    assert [line.split()[5].strip(",") for line in told] == ["yellow", "green", "yellow", "orange", "red", "green"]
    assert told[0] == "The memory for messages is yellow, 100 of 128 MiB: messages that are not persistent go to disk as they come, and best effort is dropped."
