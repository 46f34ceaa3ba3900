"""Those that run alone are found without reading all others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tidy.test_once_more import pytest_in

ALONE = "import pytest\n\n@pytest.mark.alone\ndef test_alone():\n    pass\n"
UNREADABLE = "raise RuntimeError\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    alone\n    slow\n")
    (tmp_path / "test_alone.py").write_text(ALONE)
    (tmp_path / "test_unreadable.py").write_text(UNREADABLE)
    return tmp_path


@pytest.mark.parametrize("asked", ["alone", "not slow and alone"])
def test_a_file_without_any_is_not_read_when_they_are_asked_for(folder: Path, asked: str) -> None:
    ran = pytest_in(folder, "-m", asked)
    assert (ran.returncode, "1 passed" in ran.stdout) == (0, True), ran.stdout


@pytest.mark.parametrize("asked", ["not alone", "slow"])
def test_otherwise_every_file_is_read(folder: Path, asked: str) -> None:
    ran = pytest_in(folder, "-m", asked)
    assert ran.returncode == 2 and "test_unreadable.py" in ran.stdout, ran.stdout
