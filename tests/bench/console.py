"""The console of a full broker: how soon pages are painted, how soon they show what has changed, what open consoles cost the node."""

from __future__ import annotations

import contextlib
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

from playwright.sync_api import sync_playwright

from broker_core import control
from tests.bench.console_live import accepted, paused, progress
from tests.bench.console_pages import Painted, painted
from tests.bench.machine import processor_seconds
from tests.bench.run import Bench, Row
from tests.browser.watched import EXECUTABLE, Console, missing
from tests.support.service import REPOSITORY, Service, await_true

DESTINATIONS, DEPTH, TRAFFIC_RATE, TRAFFIC_QUEUES = 10_000, 5_000_000, 5_000, 100
BODY_OCTETS = 64
DEEP, TRAFFIC, WATCHED = "queue/bench.console.deep", "queue/bench.console.traffic", "queue/bench.console.watched"
CONSOLES = (0, 1, 100)
PATHS = ("/", "/destinations", "/destinations/{deep}")
"""What the open consoles show, in turn."""
PAINT_MS_MAX, UPDATE_MS_MAX, GROWTH_MAX = 300, 1_000, 0.05
WINDOW_SECONDS_MAX, SETTLE_SECONDS, WARM_SECONDS = 15, 3, 8
CREATED_SECONDS_MAX = 120
DEADLINE_MS = 600_000


def console(bench: Bench) -> list[Row]:
    """No peer: RabbitMQ's console is another kind of thing, and its broker does not hold five million messages here."""
    if problem := missing():
        raise RuntimeError(problem)
    service, destinations, depth = bench.ours, bench.count(DESTINATIONS), bench.count(DEPTH)
    create(service, destinations)
    bench.load(service, dest=f"/{DEEP}", n=depth, consumers=0, window=500, size=BODY_OCTETS)
    load = {"dest": f"/{TRAFFIC}", "rate": TRAFFIC_RATE, "queues": TRAFFIC_QUEUES, "ack": "client-individual", "n": 60_000_000}
    with bench.beside(service, **load) as traffic:
        time.sleep(WARM_SECONDS)
        deep = number_of(service, DEEP)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=EXECUTABLE, args=["--no-sandbox"])
            people = Console(browser, service)
            watched = people.page_as()
            pages = painted(watched, deep, depth)
            updates = {
                "a message accepted": accepted(watched.page, service, WATCHED, number_of(service, WATCHED)),
                "a destination paused": paused(watched.page, service, WATCHED, number_of(service, WATCHED)),
                "progress of an operation": progress(watched.page, service, DEEP),
            }
            cookie = "; ".join(f"{each['name']}={each['value']}" for each in watched.page.context.cookies())
            people.close()
            browser.close()
        taken = cost(bench, cookie, [path.format(deep=deep) for path in PATHS])
    beside = f"beside {traffic['delivered_rate']:,.0f} msg/s, {destinations:,} destinations, {depth:,} messages on one queue"
    return [*_painted(pages, beside), *_updates(updates, beside), *_costs(taken, beside)]


# -- a full broker ------------------------------------------------------------------------------------------------------------------
def create(service: Service, count: int) -> None:
    """Queues as an operator makes them: a part of them with settings, none with messages. In two transactions, so that the one that waits is the last."""
    settings = ({}, {}, {"max_messages": 100_000, "limit_behavior": "REJECT_NEWEST"}, {"redelivery_max": 5})
    with service.database() as connection:
        with connection.transaction(), connection.cursor() as cursor:
            for address in (DEEP, WATCHED):
                control.request(cursor, "create", address, {}, requested_by="bench", deadline_ms=DEADLINE_MS)
            for number in range(count):
                address = f"queue/shop.{number % 40}.orders.{number}"
                control.request(cursor, "create", address, settings[number % len(settings)], requested_by="bench", deadline_ms=DEADLINE_MS)

        def made() -> bool:
            [waiting] = connection.execute("SELECT count(*) FROM surety.control_request WHERE answered_at IS NULL").fetchone() or (0,)
            return waiting == 0

        await_true(made, CREATED_SECONDS_MAX, f"{count} destinations are not made", pause=0.2)
        refused = connection.execute("SELECT result::text FROM surety.control_request WHERE NOT done LIMIT 1").fetchone()
        if refused is not None:
            raise RuntimeError(f"a destination was not made: {refused[0]}")


def number_of(service: Service, address: str) -> int:
    with service.database() as connection:
        row = connection.execute("SELECT destination FROM surety.destination WHERE address = %s AND destroyed_at IS NULL", [address]).fetchone()
    assert row is not None, address
    return int(row[0])


# -- what open consoles cost --------------------------------------------------------------------------------------------------------
def cost(bench: Bench, cookie: str, paths: list[str]) -> dict[int, list[dict[str, float]]]:
    """By number of consoles: processor seconds a second of node and web, of each window, and what the node did meanwhile: a node that is starved of the
    processor makes fewer and larger commits of the same messages, and seems to cost less. Windows in turn, so that what else the machine does hits all of
    them."""
    taken: dict[int, list[dict[str, float]]] = {count: [] for count in CONSOLES}
    seconds = min(bench.seconds, WINDOW_SECONDS_MAX)
    for turn in range(bench.runs):
        for count in CONSOLES if turn % 2 == 0 else reversed(CONSOLES):
            with opened(bench.ours, cookie, count, paths) as had:
                time.sleep(SETTLE_SECONDS)
                before, began = _totals(bench.ours), time.monotonic()
                time.sleep(seconds)
                after, took = _totals(bench.ours), time.monotonic() - began
                taken[count].append({name: (after[name] - before[name]) / took for name in before})
            if count and had["told"] < count * seconds * 0.5:
                raise RuntimeError(f"{count} consoles were told only {had['told']} times in {seconds} s")
            taken[count][-1] |= {name: had.get(name, 0) / (seconds + SETTLE_SECONDS) for name in ("told", "fetched", "lost", "failed")}
    return taken


def _totals(service: Service) -> dict[str, float]:
    """Processor seconds, and the node's commits and messages that consumers are through with, as it has told them last: to half a second."""
    with service.database() as connection:
        row = connection.execute(
            """SELECT (metrics ->> 'commits_total')::float8, (metrics ->> 'settled_total')::float8
                 FROM surety.node_status WHERE role <> 'standby' ORDER BY at DESC LIMIT 1"""
        ).fetchone()
    assert row is not None, "a node serves"
    return {"commits": row[0], "messages": row[1], **{role: processor_seconds(service, role) for role in ("node", "web")}}


@contextlib.contextmanager
def opened(service: Service, cookie: str, count: int, paths: list[str]) -> Iterator[dict[str, int]]:
    """So many consoles are open meanwhile; what is given has afterwards what they had."""
    had: dict[str, int] = {}
    if not count:
        yield had
        return
    command = [sys.executable, "-m", "tests.bench.consoles", str(service.http_port), cookie, str(count), *paths]
    with subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            is_open = process.stdout.readline().strip() == "open"
            if is_open:
                yield had
        finally:
            said, complained = process.communicate()  # which ends its standard input
    if not is_open or process.returncode != 0:
        raise RuntimeError(f"consoles: {complained[-3000:]}")
    had |= json.loads(said.splitlines()[-1])


# -- rows ---------------------------------------------------------------------------------------------------------------------------
def _painted(pages: list[Painted], beside: str) -> list[Row]:
    slowest = sorted(pages, key=lambda page: -page.median)
    worst = max(pages, key=lambda page: max(page.ms))
    listed = ", ".join(f"{page.kind} {page.median:.0f} ms" for page in slowest[:4])
    notes = [
        f"{len(pages)} pages, {len(slowest[0].ms)} loads each, logged in; median of all {statistics.median(ms for page in pages for ms in page.ms):.0f} ms",
        f"slowest: {listed}", f"slowest load: {worst.kind} {max(worst.ms):.0f} ms", beside,
    ]  # fmt: skip
    kept = slowest[0].median < PAINT_MS_MAX
    return [Row("console: first paint of the slowest page", "ms", [slowest[0].median], f"< {PAINT_MS_MAX} ms", kept, notes=notes)]


def _updates(updates: dict[str, list[float]], beside: str) -> list[Row]:
    rows = []
    for what, took in updates.items():
        notes = [f"{len(took)} changes; at most {max(took):.0f} ms", beside]
        kept = max(took) < UPDATE_MS_MAX
        rows.append(Row(f"console: {what}, until the open page shows it", "ms", [statistics.median(took)], f"all < {UPDATE_MS_MAX:,} ms", kept, notes=notes))
    return rows


def _costs(taken: dict[int, list[dict[str, float]]], beside: str) -> list[Row]:
    def of(role: str, count: int) -> float:
        return statistics.median(each[role] for each in taken[count])

    nobody, most = CONSOLES[0], CONSOLES[-1]
    grown = of("node", most) / of("node", nobody) - 1
    shares = [f"{role} {', '.join(f'{of(role, count):.3f} s with {count}' for count in CONSOLES)}" for role in ("node", "web")]
    windows = f"of each second, median of {len(taken[most])} windows; node with {nobody}: {_all(taken[nobody])}, with {most}: {_all(taken[most])}"
    worked = "the node's work: " + ", ".join(f"{of('messages', count):,.0f} msg/s in {of('commits', count):,.0f} commits/s with {count}" for count in CONSOLES)
    asked = f"{most} consoles are told {of('told', most):.0f} times a second and fetch {of('fetched', most):.1f} parts"
    wrong = sum(each[name] for each in taken[most] for name in ("lost", "failed"))
    notes = [*shares, worked, windows, asked, *(["some answers failed"] if wrong else []), beside]
    title, must = f"console: what {most} open consoles cost the node", f"< {GROWTH_MAX:.0%} more"
    return [Row(title, "%", [100 * grown], must, grown < GROWTH_MAX, notes=notes, decimals=1)]


def _all(windows: list[dict[str, float]]) -> str:
    return " ".join(f"{each['node']:.3f}" for each in windows)
