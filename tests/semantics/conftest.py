"""Scenarios run on virtual time, as the node's own tests do."""

from __future__ import annotations

from tests.server.conftest import run as run  # noqa: PLC0414  # the fixture, for this room too
