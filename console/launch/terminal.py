"""Ctrl-C at a terminal is for the supervisor alone, not for the make or script that waits for it.

The terminal sends the signal to every process of its foreground process group. GNU make waits for its recipe and then ends by that
same signal whatever the recipe returned (commands.c, fatal_error_signal), so an orderly stop would look like a failure.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator


@contextlib.contextmanager
def own_foreground() -> Iterator[None]:
    """Be the terminal's foreground process group, alone. Nothing happens without a terminal, in the background, or if we are already."""
    terminal = _controlling_terminal()
    if terminal is None:
        yield
        return
    try:
        group = os.getpgrp()
        if os.tcgetpgrp(terminal) != group or group == os.getpid():
            yield
            return
        os.setpgid(0, 0)
        _give(terminal, os.getpid())
        stopping = signal.signal(signal.SIGTSTP, signal.SIG_IGN)  # the shell's job is who waits for us: it could not continue us
        try:
            yield
        finally:
            signal.signal(signal.SIGTSTP, stopping)
            with contextlib.suppress(OSError):  # the terminal is gone, or who waited for us is
                _give(terminal, group)
                os.setpgid(0, group)
    finally:
        os.close(terminal)


def _controlling_terminal() -> int | None:
    try:
        return os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None


def _give(terminal: int, group: int) -> None:
    """Who gives the terminal from the background would be stopped by SIGTTOU (tcsetpgrp(3))."""
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        os.tcsetpgrp(terminal, group)
    finally:
        signal.signal(signal.SIGTTOU, before)
