"""When a certificate ends, as its file says."""

from __future__ import annotations

import base64
import time
from pathlib import Path

import pytest

from broker_core.server.certificate import ends_at
from tests.support.certificates import certificate

DAY, YEAR = 86_400, 365


def in_days(days: int) -> object:
    return pytest.approx(time.time() + days * DAY, abs=60)


@pytest.mark.parametrize("days", [-1, 1, 12, 40 * YEAR], ids=["ended", "tomorrow", "soon", "after 2050"])
def test_it_ends_when_it_says(tmp_path: Path, days: int) -> None:
    path, _ = certificate(tmp_path, days=days)
    assert ends_at(path.read_text()) == in_days(days)


def test_a_chain_ends_with_the_first_of_it(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (soon, _), (later, key) = certificate(tmp_path / "a", days=3), certificate(tmp_path, days=40 * YEAR)
    assert ends_at(key.read_text() + later.read_text() + soon.read_text()) == in_days(3)


@pytest.mark.parametrize("der", [b"", b"\x30", b"\x30\x80", b"\x30\x84\xff\xff\xff\xff", b"\x30\x03\x30\x01\xa0", b"\x30\x00" * 20])
def test_what_nobody_can_read_is_not_known(der: bytes) -> None:
    text = base64.b64encode(der).decode()
    assert ends_at(f"-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n") is None


@pytest.mark.parametrize("text", ["", "no certificate", "\N{SNOWMAN}"])
def test_nor_of_what_is_none(text: str) -> None:
    assert ends_at(text) is None
    assert ends_at(f"-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n") is None
