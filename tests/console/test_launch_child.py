"""One supervised process, with real processes: restarted when it dies, stopped when asked, killed when it will not stop, never orphaned."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from console.launch import child
from console.launch.child import Child, Role

PATIENCE_SECONDS = 15
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for folder in ("run", "log"):
        (tmp_path / folder).mkdir()
    return tmp_path


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "BACKOFF_SECONDS", 0.02)
    monkeypatch.setattr(child, "BACKOFF_SECONDS_MAX", 0.05)


@contextlib.asynccontextmanager
async def kept(home: Path, script: str, **options) -> AsyncIterator[Child]:
    running = Child(Role("web", [sys.executable, "-u", "-c", script], **options), home)
    try:
        yield running
    finally:
        await running.stop(time.monotonic())


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():
            await asyncio.sleep(0.005)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def pid_of(home: Path) -> int:
    try:
        return int((home / "run" / "web.pid").read_text())
    except (OSError, ValueError):
        return 0


def log_of(home: Path) -> str:
    return (home / "log" / "web.log").read_text()


async def test_it_is_started_again_when_it_is_killed(home: Path) -> None:
    async with kept(home, "import time; time.sleep(60)"):
        await until(lambda: pid_of(home) > 0)
        first = pid_of(home)
        os.kill(first, signal.SIGKILL)
        await until(lambda: pid_of(home) not in (0, first))
        assert "was ended by SIGKILL; starting again" in log_of(home)


async def test_one_that_keeps_dying_is_started_ever_more_seldom(home: Path) -> None:
    async with kept(home, "raise SystemExit(3)") as running:
        await until(lambda: running.restarts >= 4)
    waits = [line.rpartition(" in ")[2] for line in log_of(home).splitlines() if "ended with code 3" in line]
    assert waits[:4] == ["0.02 s", "0.04 s", "0.05 s", "0.05 s"]


async def test_one_that_had_started_is_started_again_at_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "STEADY_SECONDS", 0)
    monkeypatch.setattr(child, "BACKOFF_SECONDS", 600)
    async with kept(home, "raise SystemExit(3)") as running:
        await until(lambda: running.restarts >= 3)
    assert {line.rpartition("; ")[2] for line in log_of(home).splitlines() if "starting again" in line} == {"starting again at once"}


async def test_one_that_said_that_it_serves_is_started_again_at_once_however_soon_it_dies(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "BACKOFF_SECONDS", 600)
    async with kept(home, "print('I: now serving all'); raise SystemExit(3)", up="now serving") as running:
        await until(lambda: running.restarts >= 3)
    assert {line.rpartition("; ")[2] for line in log_of(home).splitlines() if "starting again" in line} == {"starting again at once"}


async def test_what_an_earlier_one_said_does_not_count_for_one_that_dies_on_its_way_up(home: Path) -> None:
    script = "import os\nif not os.path.exists('run/been'): open('run/been', 'w'); print('now serving')\nraise SystemExit(3)"
    async with kept(home, f"import os; os.chdir({str(home)!r})\n{script}", up="now serving") as running:
        await until(lambda: running.restarts >= 3)
    endings = [line.rpartition("; ")[2] for line in log_of(home).splitlines() if "starting again" in line]
    assert endings[:3] == ["starting again at once", "starting again in 0.02 s", "starting again in 0.04 s"]


async def test_it_ends_when_asked_and_is_not_started_again(home: Path) -> None:
    async with kept(home, "import time; time.sleep(60)") as running:
        await until(lambda: pid_of(home) > 0)
        pid = pid_of(home)
        await running.stop(time.monotonic() + PATIENCE_SECONDS)
        assert not running.killed
        assert not is_running(pid)
        assert not (home / "run" / "web.pid").exists()
        assert "starting again" not in log_of(home)


async def test_one_that_does_not_end_is_killed_with_what_it_started(home: Path) -> None:
    sleeper = "[sys.executable, '-c', 'import time; time.sleep(60)']"
    script = f"import subprocess, sys; print(subprocess.Popen({sleeper}, start_new_session=True).pid); {STUBBORN}"
    async with kept(home, script) as running:
        await until(lambda: (home / "log" / "web.log").exists() and "deaf" in log_of(home))
        pid, grandchild = pid_of(home), int(log_of(home).splitlines()[0])
        await running.stop(time.monotonic() + 0.1)
        assert running.killed
        await until(lambda: not is_running(pid) and not is_running(grandchild))


async def test_its_end_does_not_wait_for_what_it_left_running(home: Path) -> None:
    sleeper = "[sys.executable, '-c', 'import time; time.sleep(6)']"
    began = time.monotonic()
    async with kept(home, f"import subprocess, sys; subprocess.Popen({sleeper}, start_new_session=True); sys.exit(3)") as running:
        await until(lambda: running.restarts == 1)
    assert time.monotonic() - began < 5


async def test_it_can_be_stopped_while_it_waits_to_be_started_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "BACKOFF_SECONDS", 600)
    async with kept(home, "raise SystemExit(3)") as running:
        await until(lambda: running.restarts == 1)
        await running.stop(time.monotonic() + PATIENCE_SECONDS)
        assert not running.killed


async def test_it_can_be_stopped_before_it_was_started(home: Path) -> None:
    async with kept(home, "import time; time.sleep(60)") as running:
        await running.stop(time.monotonic() + PATIENCE_SECONDS)
        assert not running.killed
        assert pid_of(home) == 0


async def test_a_full_disk_or_a_lost_folder_does_not_stop_the_restarts(home: Path) -> None:
    async with kept(home, "print('runs')"):
        (home / "run").rmdir()
        await until(lambda: log_of(home).count("runs\n") >= 2)
        assert "its pid file could not be written" in log_of(home)


async def test_what_cannot_be_started_is_tried_again(home: Path) -> None:
    program = home / "program"
    running = Child(Role("web", [str(program)]), home)
    await until(lambda: running.restarts >= 2)
    assert "could not be started ([Errno 2]" in log_of(home)
    program.write_text("#!/bin/sh\necho at last\n")
    program.chmod(0o755)
    await until(lambda: "at last" in log_of(home))
    await running.stop(time.monotonic() + PATIENCE_SECONDS)


async def test_ctrl_c_on_the_terminal_is_not_for_it(home: Path) -> None:
    async with kept(home, "import os; print(os.getpgrp())"):
        await until(lambda: "\n" in log_of(home))
        assert int(log_of(home).splitlines()[0]) != os.getpgrp()


async def test_what_it_says_is_shown_under_its_name_and_logged(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = "import os, time; print('one', flush=True); os.write(2, b'two\\nno end'); time.sleep(60)"
    async with kept(home, script) as running:
        await until(lambda: "two" in log_of(home))
        await running.stop(time.monotonic() + PATIENCE_SECONDS)
    assert log_of(home).splitlines() == ["one", "two", "no end"]
    assert "web      | two\n" in capsys.readouterr().out


async def test_lines_without_end_and_octets_that_are_no_text_do_no_harm(home: Path) -> None:
    script = "import sys; w = sys.stdout.buffer.write; w(b'x' * 1_000_000 + b'\\n' + b'\\xff\\xfe\\n' + b'after\\n'); sys.stdout.flush()"
    async with kept(home, script):
        await until(lambda: "after" in log_of(home))
    lines = log_of(home).splitlines()
    assert sum(len(line) for line in lines if line.startswith("x")) >= 1_000_000
    assert "\ufffd\ufffd" in lines


@pytest.mark.parametrize("death_signal", [signal.SIGKILL, signal.SIGINT])
async def test_it_does_not_outlive_a_supervisor_that_is_killed(home: Path, death_signal: signal.Signals) -> None:
    up = home / "up"  # Python that is still starting may ignore KeyboardInterrupt, as raised where nobody can catch it
    supervisor = textwrap.dedent(f"""
        import asyncio, signal, sys
        from pathlib import Path
        from console.launch.child import Child, Role

        async def main():
            command = [sys.executable, "-c", "import time; open({str(up)!r}, 'w').close(); time.sleep(60)"]
            Child(Role("web", command, death_signal=signal.{death_signal.name}), Path({str(home)!r}))
            await asyncio.sleep(60)

        asyncio.run(main())
    """)
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", supervisor)
    await until(up.exists)
    pid = pid_of(home)
    process.kill()
    await process.wait()
    await until(lambda: not is_running(pid))
