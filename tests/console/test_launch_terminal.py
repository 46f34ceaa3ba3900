"""Ctrl-C at a terminal, through GNU make: an orderly stop is a success, and the terminal goes back to whom it belonged."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

from tests.tidy.rules import REPOSITORY

SUPERVISOR = """
import signal, sys
from console.launch.terminal import own_foreground
def end(*_):
    raise SystemExit({code})
with own_foreground():
    signal.signal(signal.SIGINT, end)
    print("running", flush=True)
    signal.pause()
"""
MAKEFILE = "run:\n\t@exec {python} supervisor.py\n\t@echo afterwards\n"
CTRL_C, CTRL_Z = b"\x03", b"\x1a"


class Terminal:
    """A terminal with `make run` as its first program, in a folder with a supervisor that ends with `code`."""

    def __init__(self, folder: Path, code: int) -> None:
        (folder / "supervisor.py").write_text(SUPERVISOR.format(code=code))
        (folder / "Makefile").write_text(MAKEFILE.format(python=sys.executable))
        self.shown = b""
        self._descriptor, theirs = pty.openpty()
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(REPOSITORY)}
        command = ["setsid", "--ctty", "make", "run"]
        self._make = subprocess.Popen(command, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)

    def read_until(self, text: bytes) -> None:
        while text not in self.shown:
            self.shown += os.read(self._descriptor, 1024)

    def type(self, keys: bytes) -> None:
        os.write(self._descriptor, keys)

    def end(self) -> int:
        """The exit code; negative: the signal that ended it."""
        try:
            while part := os.read(self._descriptor, 1024):
                self.shown += part
        except OSError:  # how the end of a pseudo-terminal shows
            pass
        os.close(self._descriptor)
        return self._make.wait(30)


def test_ctrl_c_ends_make_with_what_the_supervisor_returned(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, 0)
    terminal.read_until(b"running")
    terminal.type(CTRL_C)
    assert terminal.end() == 0, terminal.shown
    assert b"afterwards" in terminal.shown, "make went on, and could still write to its terminal"
    assert b"***" not in terminal.shown


def test_a_stop_that_was_not_orderly_is_still_a_failure(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, 1)
    terminal.read_until(b"running")
    terminal.type(CTRL_C)
    assert terminal.end() == 2
    assert b"Error 1" in terminal.shown


def test_ctrl_z_does_not_leave_make_waiting_for_a_supervisor_that_is_stopped(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, 0)
    terminal.read_until(b"running")
    terminal.type(CTRL_Z)
    terminal.type(CTRL_C)
    assert terminal.end() == 0, terminal.shown


def test_without_a_terminal_nothing_changes() -> None:
    look = """
import os, signal
from console.launch.terminal import own_foreground
def found(): return os.getpgrp(), signal.getsignal(signal.SIGTSTP)
before = found()
with own_foreground():
    assert found() == before
"""
    subprocess.run(["setsid", sys.executable, "-c", look], cwd=REPOSITORY, check=True, timeout=30)
