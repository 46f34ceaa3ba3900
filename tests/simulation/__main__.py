"""`python -m tests.simulation --seeds N [--seed S] [--climate NAME]`: N seeded histories on all cores, or one of them told in full."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Mapping
from functools import partial

from .climates import NAMES, climate_of
from .world import MUST_HAPPEN, SEEDS_FOR_ALL, Verdict, run_seed


def verdict_of(seed: int, climate: str) -> Verdict:
    return run_seed(seed, climate=climate)[0]


def missing(total: Mapping[str, int], seeds: int) -> list[str]:
    """What should have happened in so many seeds and has not."""
    return [what for what in MUST_HAPPEN if not total.get(what)] if seeds >= SEEDS_FOR_ALL else []


def tell(seed: int, climate: str) -> int:
    verdict, events = run_seed(seed, climate=climate, keep_events=True)
    for event in events:
        print(event)
    print(verdict.where)
    print(dict(sorted(verdict.counts.items())))
    print(f"seed {seed}, {climate_of(seed, climate).name}: {verdict.problem or 'every promise was kept'} (trace {verdict.trace})")
    return 1 if verdict.problem else 0


def play(first: int, seeds: int, climate: str) -> int:
    began = time.monotonic()
    total: Counter[str] = Counter()
    broken: list[Verdict] = []
    with multiprocessing.Pool(os.cpu_count(), maxtasksperchild=200) as pool:
        for verdict in pool.imap_unordered(partial(verdict_of, climate=climate), range(first, first + seeds), chunksize=4):
            total += verdict.counts
            if verdict.problem:
                broken.append(verdict)
                print(f"seed {verdict.seed}, {climate_of(verdict.seed, climate).name}: {verdict.problem}", flush=True)
    took = time.monotonic() - began
    print(", ".join(f"{count} {what}" for what, count in sorted(total.items())))
    print(f"{seeds} seeds in {took:.1f} s ({seeds / took:.2f} a second), {total['commands']} commands, {len(broken)} broken")
    absent = [] if climate else missing(total, seeds)
    if climate:
        print(f"what happens in {climate} is not all that is dangerous")
    elif seeds < SEEDS_FOR_ALL:
        print(f"whether everything that is dangerous has happened is not looked at: it takes {SEEDS_FOR_ALL} seeds")
    else:
        print(f"what is dangerous and has not happened: {', '.join(absent) or 'nothing'}")
    return 1 if broken or absent else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many histories")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--seed", type=int, help="only this one, with every event")
    parser.add_argument("--climate", choices=sorted(NAMES), default="", help="this one for all, instead of each seed's own")
    arguments = parser.parse_args()
    if arguments.seed is None:
        return play(arguments.first, arguments.seeds, arguments.climate)
    return tell(arguments.seed, arguments.climate)


if __name__ == "__main__":
    sys.exit(main())
