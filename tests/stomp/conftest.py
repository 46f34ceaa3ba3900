"""Every conversation is held twice: in one piece, and byte by byte."""

from __future__ import annotations

import pytest

from tests.stomp.conversation import Cut, byte_by_byte, whole


@pytest.fixture(params=[whole, byte_by_byte], ids=["whole", "byte by byte"])
def cut(request: pytest.FixtureRequest) -> Cut:
    return request.param
