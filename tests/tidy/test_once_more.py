"""What failed beside others and is run once more: few tests may, and what is wrong fails again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.once_more import EXCUSED_MAX
from tests.support.service import REPOSITORY

BUSY = "from pathlib import Path\n\ndef test_first_time_only():\n    there = Path('flag').exists()\n    Path('flag').touch()\n    assert there\n"
RIGHT = "def test_right():\n    pass\n"


def pytest_in(folder: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", f"--rootdir={folder}", *options, str(folder)]
    given = {"PYTHONPATH": str(REPOSITORY), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | environment
    return subprocess.run(command, cwd=folder, env=given, capture_output=True, text=True, check=False, timeout=120)


def written(folder: Path, *texts: str) -> Path:
    (folder / "pytest.ini").write_text("[pytest]\n")
    for number, text in enumerate(texts):
        (folder / f"test_{number}.py").write_text(text)
    return folder


def test_what_fails_beside_others_alone_is_run_by_itself_and_told(tmp_path: Path) -> None:
    written(tmp_path, BUSY, RIGHT)
    assert pytest_in(tmp_path).returncode == 1
    again = pytest_in(tmp_path, "--once-more")
    assert again.returncode == 0, again.stdout
    assert "once more by itself: test_0.py::test_first_time_only" in again.stdout
    assert "1 passed" in again.stdout


def test_what_is_wrong_fails_again(tmp_path: Path) -> None:
    written(tmp_path, "def test_wrong():\n    assert False\n", RIGHT)
    assert pytest_in(tmp_path).returncode == 1
    assert pytest_in(tmp_path, "--once-more").returncode == 1


def test_many_failures_have_no_excuse(tmp_path: Path) -> None:
    written(tmp_path, *[BUSY.replace("flag", f"flag{number}") for number in range(EXCUSED_MAX + 1)])
    assert pytest_in(tmp_path).returncode == 1
    again = pytest_in(tmp_path, "--once-more")
    assert again.returncode == 1
    assert "4 tests failed" in again.stdout + again.stderr


def test_a_run_that_broke_off_has_no_excuse(tmp_path: Path) -> None:
    written(tmp_path, "import nothing_of_this_name\n", RIGHT)
    assert pytest_in(tmp_path).returncode == 2
    assert pytest_in(tmp_path, "--once-more").returncode == 1


def test_a_run_that_ends_at_its_first_failure_has_no_excuse(tmp_path: Path) -> None:
    written(tmp_path, BUSY, "def test_wrong():\n    assert False\n")
    assert pytest_in(tmp_path, "-x").returncode == 1
    assert pytest_in(tmp_path, "--once-more").returncode == 1


def test_one_that_is_killed_has_no_excuse_from_the_run_before(tmp_path: Path) -> None:
    written(tmp_path, BUSY, "import os\n\ndef test_killed():\n    if os.environ.get('KILLED'):\n        os._exit(137)\n")
    assert pytest_in(tmp_path).returncode == 1
    assert pytest_in(tmp_path, KILLED="1").returncode == 137
    assert pytest_in(tmp_path, "--once-more").returncode == 1
