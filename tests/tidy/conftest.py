"""Reports the sizes of files at the end of a run: size is a question for the reader, not a refusal."""

from __future__ import annotations

from pathlib import Path

import pytest

LINES = 300
REPOSITORY = Path(__file__).resolve().parents[2]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    tops = ("broker_core", "console", "tests")
    lines = {path: len(path.read_text("utf-8").splitlines()) for top in tops for path in (REPOSITORY / top).rglob("*.py")}
    terminalreporter.section("size", sep="-")
    for top in tops:
        counts = [count for path, count in lines.items() if path.is_relative_to(REPOSITORY / top)]
        terminalreporter.write_line(f"{top}: {len(counts)} files, {sum(counts)} lines, the longest {max(counts)}")
    for path, count in sorted(lines.items(), key=lambda item: -item[1]):
        if count > LINES:
            terminalreporter.write_line(f"  more than {LINES} lines: {path.relative_to(REPOSITORY)} ({count})")
