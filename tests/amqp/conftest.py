"""Conversations are held twice: in one piece, and byte by byte."""

from __future__ import annotations

import pytest

from tests.amqp.conversation import Client, Cut, byte_by_byte, whole


@pytest.fixture(params=[whole, byte_by_byte], ids=["whole", "byte by byte"])
def cut(request: pytest.FixtureRequest) -> Cut:
    cut: Cut = request.param
    return cut


@pytest.fixture
def client(cut: Cut) -> Client:
    """Logged in, with a session on channel 0."""
    return Client(cut=cut).opens()
