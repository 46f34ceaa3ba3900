"""What tests of the client share."""

from __future__ import annotations

import pytest

from tests.client.broker import Cut, byte_by_byte, whole


@pytest.fixture(params=[whole, byte_by_byte], ids=["whole", "byte by byte"])
def cut(request: pytest.FixtureRequest) -> Cut:
    return request.param
