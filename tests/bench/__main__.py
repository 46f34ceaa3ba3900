"""`python -m tests.bench [case ...]`: ours and RabbitMQ in turn, medians and ratios as a Markdown table; all cases take about an hour.

    python -m tests.bench --list                     the cases
    python -m tests.bench assured confirm            two of them
    python -m tests.bench --write                    and put the table into docs/benchmarks.md
    python -m tests.bench pipeline --help            the data pipeline: not among the cases, it needs Java and takes long
    python -m tests.bench assured --runs 1 --seconds 5 --scale 0.01     a try

Starts a service of its own in a temporary folder (--home for another disk), and the peer, if RabbitMQ is installed.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path

from tests.bench import report
from tests.bench.cases import CASES
from tests.bench.machine import description
from tests.bench.peer import NOT_INSTALLED, RabbitMQ, is_installed, version
from tests.bench.run import Bench, Row
from tests.support.service import Service


def main() -> None:
    if sys.argv[1:2] == ["pipeline"]:
        from tests.bench import pipeline

        sys.exit(pipeline.main(sys.argv[2:]))
    parser = argparse.ArgumentParser("python -m tests.bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="case", help="default: all")
    parser.add_argument("--list", action="store_true", help="name the cases and end")
    parser.add_argument("--runs", type=int, default=3, help="of each broker (default 3)")
    parser.add_argument("--seconds", type=int, default=20, help="of each run (default 20)")
    parser.add_argument("--scale", type=float, default=1.0, help="part of the counts and minutes (default 1)")
    parser.add_argument("--no-peer", action="store_true", help="ours alone")
    parser.add_argument("--home", type=Path, help="SURETY_HOME of the measured service (default: a temporary folder)")
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks.md")
    chosen = parser.parse_args()
    if chosen.list:
        print("\n".join(CASES))
        return
    if unknown := [name for name in chosen.cases if name not in CASES]:
        parser.error(f"no case is named {', '.join(unknown)}; there are {', '.join(CASES)}")
    sys.exit(measure(chosen))


def measure(chosen: argparse.Namespace) -> int:
    """0 if every figure is what it must be."""
    rows: list[Row] = []
    failed = False
    with contextlib.ExitStack() as stack:
        peer = None
        if not chosen.no_peer and is_installed():
            peer = stack.enter_context(RabbitMQ())
        elif not chosen.no_peer:
            print(NOT_INSTALLED)
        service = stack.enter_context(Service(home=chosen.home))
        bench = Bench(service, peer, chosen.runs, chosen.seconds, chosen.scale)
        about = description(service, f"RabbitMQ {version()}" if peer else "none")
        print(about, "", *report.HEAD, sep="\n", flush=True)
        for name in chosen.cases or CASES:
            try:
                done = CASES[name](bench)
            except RuntimeError as error:
                print(f"{name} failed: {error}", file=sys.stderr, flush=True)
                failed = True
                continue
            print(*report.lines(done), sep="\n", flush=True)
            rows += done
            if chosen.write:  # at once: what comes after may be interrupted
                report.write(done, about)
    return int(failed or any(row.kept is False for row in rows))


if __name__ == "__main__":
    main()
