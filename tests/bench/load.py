"""A neutral STOMP 1.2 load: the same octets against any broker. `python -m tests.bench.load --help`.

Producers send messages of `--size` octets, each with a number of its own, at most `--window` of them unconfirmed, a receipt asked for
each. Consumers acknowledge cumulatively every `--ackevery` messages, or each by itself with `--ack client-individual`. Every connection is
a process of its own, and costs as little as Python can, for driver and broker share the machine. Printed: the confirmed rate, the
end-to-end rate (first send to last delivery), latencies of a sample, with `--every` the rate of each interval; `--json` prints one line
for programs. A run in which a message arrives twice or never fails, unless `--exact 0`. Bodies hold no NUL octet, so frames end at NUL.
Take a new `--dest` for every run. SIGTERM ends one early, in order.

    --queues 10000           send round robin to DEST.0 ... DEST.9999, consumers share them
    --stray 100              every 100th message goes to DEST.stray, which nobody consumes
    --rate 5000              messages a second, all producers together; 0: as fast as it goes
    --transaction 10         ten messages a transaction; the commit's receipt confirms them
    --priorities 10          priorities 0 to 9 in turn; if nothing is sent meanwhile they must arrive highest first
    --durable 1              DEST is a topic, every consumer a durable subscriber of it, who gets all messages, each producer's in order
    --inactive 4990          so many durable subscriptions more, whose subscribers are away
    --selectors 1000         DEST is a topic, and 1,000 selectors share the messages evenly: see --selector
    --deaf 1 --slow 1        the last consumer never reads, the one before acknowledges once a second
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing as mp
import signal
import sys
import time
from multiprocessing.sharedctypes import RawArray
from queue import Empty
from typing import Any

from tests.bench.connection import STAMP_OCTETS
from tests.bench.consumer import DECLARE_SECONDS, consume, receive
from tests.bench.dawdler import deaf, inactive, is_deaf, is_slow, slow, usual
from tests.bench.producer import produce

SUBSCRIBE_PER_SECOND = 2_000
"""Subscriptions that any broker here takes down."""


def options(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.bench.load", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    texts = {"host": "127.0.0.1", "user": "guest", "password": "guest", "vhost": "/", "dest": "/queue/bench", "ack": "client", "header": "",
             "selector": "part = 'p{n}'"}  # fmt: skip
    for name, text in texts.items():
        parser.add_argument(f"--{name}", default=text)
    for name, number in {
        "port": 61613, "n": 60_000, "size": 1024, "window": 100, "prefetch": 200, "ackevery": 20, "producers": 2, "consumers": 2,
        "persistent": 1, "receipt": 1, "durable": 0, "every": 0, "exact": 1, "queues": 0, "stray": 0, "rate": 0, "seconds": 0, "json": 0,
        "transaction": 0, "priorities": 0, "selectors": 0, "inactive": 0, "deaf": 0, "slow": 0,
    }.items():  # fmt: skip
        parser.add_argument(f"--{name}", default=number, type=int)
    chosen = parser.parse_args(arguments)
    if problem := _problem(chosen):
        parser.error(problem)
    chosen.header = "".join(line + "\n" for line in chosen.header.split("|") if line).encode()
    return chosen


def _problem(o: argparse.Namespace) -> str:
    """What does not go together; empty: nothing."""
    if o.size < STAMP_OCTETS:
        return f"--size is at least {STAMP_OCTETS}"
    if sum(map(bool, (o.queues, o.priorities, o.selectors))) > 1 or (o.durable and o.queues):
        return "--queues, --priorities and --selectors exclude each other, and --queues is for queues"
    if o.transaction and (o.stray or not o.receipt or o.window < o.transaction):
        return "a transaction needs a receipt and fits the window; nothing of it strays"
    if o.inactive and not o.durable:
        return "--inactive is for a topic: --durable 1"
    if o.consumers and usual(o) < 1:
        return "some consumer must keep up"
    return ""


# -- the run ------------------------------------------------------------------------------------------------------------------------
def shares(o: argparse.Namespace) -> int:
    """Messages of each producer; of a drain, of all together."""
    share = o.n // max(1, o.producers)
    return share - share % (o.transaction or 1)


def is_shared(o: argparse.Namespace) -> bool:
    """Every message goes to one consumer; else to each."""
    return bool(o.selectors) or not o.durable


def is_stray(o: argparse.Namespace, number: int) -> bool:
    return bool(o.stray) and number % o.stray == o.stray - 1


class Run:
    """The processes of one run and what they share."""

    def __init__(self, o: argparse.Namespace) -> None:
        self.o, self.share = o, shares(o)
        self.total = self.share * max(1, o.producers)
        self.results, self.start = mp.Queue(), mp.Event()
        self.running, self.sending = mp.Value("b", 1, lock=False), mp.Value("b", 1, lock=False)
        strays = max(1, o.producers) * (self.share // o.stray) if o.stray else 0
        self.expected = mp.Value("q", self.total - strays, lock=False)
        """Messages that must arrive: at the consumers together, or at each subscriber."""
        self.counts = RawArray("q", max(1, o.consumers))
        self.seen = RawArray("b", self.total if is_shared(o) else 1)
        self.rates: list[float] = []
        self.processes = [self._consumer(k) for k in range(o.consumers)]
        for k in range(o.producers):
            self.processes.append(mp.Process(target=produce, args=(o, k * self.share, self.share, self.results, self.start, self.running)))

    def _consumer(self, k: int) -> Any:
        o, results, start, counts, expected = self.o, self.results, self.start, self.counts, self.expected
        if is_deaf(o, k):
            return mp.Process(target=deaf, args=(o, k, results, self.sending))
        if is_slow(o, k):
            return mp.Process(target=slow, args=(o, k, results, start, self.sending, counts, expected, self.seen))
        if is_shared(o):
            return mp.Process(target=consume, args=(o, k, results, start, counts, expected, self.seen))
        return mp.Process(target=receive, args=(o, k, self.share, results, start, counts, expected))

    def report(self) -> dict[str, Any]:
        """Let it run; its figures. Raises SystemExit if a process fails."""
        o = self.o
        for process in self.processes:
            process.start()
        signal.signal(signal.SIGTERM, lambda *_: setattr(self.running, "value", 0))  # as when the time is over; the processes themselves are not told
        # Everyone is logged in and subscribed before the clock starts.
        time.sleep(2.0 + DECLARE_SECONDS * o.consumers + (o.queues + o.selectors) / SUBSCRIBE_PER_SECOND)
        began = time.time()
        self.start.set()
        rows = self._collect(began)
        sent = sum(row["sent"] for row in rows) if o.producers else self.total
        sends_ended = max((row["ended"] for row in rows if row["role"] == "producer"), default=None)
        deliveries_ended = max((row["ended"] for row in rows if row["role"] == "consumer"), default=None)
        delivered = sum(self.counts[: usual(o)])
        copies = 1 if is_shared(o) else usual(o)
        arrived = sum(self.seen) if is_shared(o) else delivered
        return {
            "messages": sent, "delivered": delivered, "rates": self.rates,
            "twice": sum(row["twice"] for row in rows), "risen": sum(row["risen"] for row in rows),
            "never": self.expected.value * copies - arrived if o.consumers else 0,
            "sent_rate": sent / (sends_ended - began) if sends_ended else None,
            "delivered_rate": delivered / (deliveries_ended - began) if deliveries_ended else None,
            "confirm_ms": _quantiles(rows, "producer"), "end_to_end_ms": _quantiles(rows, "consumer"),
            "seconds": max(sends_ended or 0, deliveries_ended or 0) - began,
        }  # fmt: skip

    def _collect(self, began: float) -> list[dict[str, Any]]:
        """Wait for every process; with --seconds the producers are told to stop then, and what they sent is what must arrive."""
        o, rows = self.o, []
        mark, before, sending = began, 0, o.producers
        while len(rows) < len(self.processes):
            try:
                row = self.results.get(timeout=0.2)
            except Empty:
                self._refuse_failed()
            else:
                rows.append(row)
                if row["role"] == "producer":
                    sending -= 1
                    strays = sum(is_stray(o, number) for number in range(row["sent"], self.share)) if o.stray else 0
                    self.expected.value -= self.share - row["sent"] - strays
                    self.sending.value = sending > 0
            now = time.time()
            if o.seconds and now - began >= o.seconds:
                self.running.value = 0
            if o.every and now - mark >= o.every:
                self.rates.append((sum(self.counts) - before) / (now - mark))
                mark, before = now, sum(self.counts)
                if not o.json:
                    print(f"{now - began:6.0f} s {self.rates[-1]:,.0f} deliveries/s", flush=True)
        return rows

    def _refuse_failed(self) -> None:
        if any(process.exitcode for process in self.processes):
            for process in self.processes:
                process.terminate()
            raise SystemExit("a process of the load failed")


def run(o: argparse.Namespace) -> dict[str, Any]:
    """One run; its figures. Raises SystemExit if a process fails or, with --exact, a message arrives twice, never or out of turn."""
    with inactive(o) if o.inactive else contextlib.nullcontext():
        report = Run(o).report()
    if o.exact and (report["twice"] or report["never"] or report["risen"]):
        raise SystemExit(f"not exact: twice or out of order {report['twice']}, never {report['never']}, lower priority first {report['risen']}")
    return report


def _quantiles(rows: list[dict[str, Any]], role: str) -> dict[str, float] | None:
    values = sorted(value for row in rows if row["role"] == role for value in row["latency"])
    return {"p50": values[len(values) // 2], "p99": values[int(len(values) * 0.99)], "max": values[-1]} if values else None


def main() -> None:
    o = options()
    report = run(o)
    if o.json:
        print(json.dumps(report))
        return
    text = [f"sent {report['sent_rate']:,.0f} msg/s"] if report["sent_rate"] else []
    text += [f"end-to-end {report['delivered_rate']:,.0f} msg/s"] if report["delivered_rate"] else []
    for name in ("confirm_ms", "end_to_end_ms"):
        if report[name]:
            text.append(f"{name.replace('_ms', ' ms')} p50 {report[name]['p50']:.2f} p99 {report[name]['p99']:.2f}")
    print("; ".join(text))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
