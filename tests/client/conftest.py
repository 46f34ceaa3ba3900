"""What tests of the client share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.client.broker import Cut, byte_by_byte, whole
from tests.client.listening import ListeningBroker


@pytest.fixture(params=[whole, byte_by_byte], ids=["whole", "byte by byte"])
def cut(request: pytest.FixtureRequest) -> Cut:
    return request.param


@pytest.fixture
def broker() -> Iterator[ListeningBroker]:
    with ListeningBroker() as listening:
        yield listening
