"""A neutral STOMP 1.2 load: the same octets against any broker. `python -m tests.bench.load --help`.

Producers send messages of `--size` octets, each with a number of its own, at most `--window` of them unconfirmed, a receipt asked for
each. Consumers acknowledge cumulatively every `--ackevery` messages, or each by itself with `--ack client-individual`. Every connection is
a process of its own, and costs as little as Python can, for driver and broker share the machine. Printed: the confirmed rate, the
end-to-end rate (first send to last delivery), latencies of a sample, with `--every` the rate of each interval; `--json` prints one line
for programs. A run in which a message arrives twice or never fails, unless `--exact 0`. Bodies hold no NUL octet, so frames end at NUL.
Take a new `--dest` for every run.

    --queues 10000           send round robin to DEST.0 ... DEST.9999, consumers share them
    --stray 100              every 100th message goes to DEST.stray, which nobody consumes
    --rate 5000              messages a second, all producers together; 0: as fast as it goes
"""

from __future__ import annotations

import argparse
import json
import multiprocessing as mp
import random
import re
import socket
import sys
import time
from multiprocessing.sharedctypes import RawArray
from queue import Empty
from typing import Any

SAMPLE = 20_000
"""Latencies kept of each connection."""
STAMP_OCTETS = 26
"""`<microseconds, 16 digits> <number, 8 digits> ` opens every body."""
GOODBYE_SECONDS = 15
DECLARE_SECONDS = 0.4
"""One consumer after the other: RabbitMQ fails when two connections declare the same new quorum queue at once."""
_RECEIPT = re.compile(rb"RECEIPT\r?\n(?:[^\n]+\n)*?receipt-id:(\d+)")
_ACK = re.compile(rb"\nack:([^\r\n]+)")
_SUBSCRIPTION = re.compile(rb"\nsubscription:(\d+)")


class Reservoir:
    """A bounded, uniform sample of an unbounded stream (algorithm R)."""

    def __init__(self) -> None:
        self.values: list[float] = []
        self._seen = 0

    def add(self, value: float) -> None:
        self._seen += 1
        if len(self.values) < SAMPLE:
            self.values.append(value)
        elif (place := random.randrange(self._seen)) < SAMPLE:
            self.values[place] = value


def options(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.bench.load", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    texts = {"host": "127.0.0.1", "user": "guest", "password": "guest", "vhost": "/", "dest": "/queue/bench", "ack": "client", "header": ""}
    for name, text in texts.items():
        parser.add_argument(f"--{name}", default=text)
    for name, number in {
        "port": 61613, "n": 60_000, "size": 1024, "window": 100, "prefetch": 200, "ackevery": 20, "producers": 2, "consumers": 2,
        "persistent": 1, "receipt": 1, "durable": 0, "every": 0, "exact": 1, "queues": 0, "stray": 0, "rate": 0, "seconds": 0, "json": 0,
    }.items():  # fmt: skip
        parser.add_argument(f"--{name}", default=number, type=int)
    chosen = parser.parse_args(arguments)
    assert chosen.size >= STAMP_OCTETS, f"--size is at least {STAMP_OCTETS}"
    assert not (chosen.queues and chosen.durable), "--queues is for queues"
    chosen.header = "".join(line + "\n" for line in chosen.header.split("|") if line).encode()
    return chosen


# -- a connection -------------------------------------------------------------------------------------------------------------------
def connect(o: argparse.Namespace, client_id: str = "") -> socket.socket:
    connection = socket.create_connection((o.host, o.port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    extra = f"client-id:{client_id}\n" if client_id else ""
    connection.sendall(f"CONNECT\naccept-version:1.2\nhost:{o.vhost}\nlogin:{o.user}\npasscode:{o.password}\n{extra}\n\0".encode())
    answer = b""
    while b"\0" not in answer:
        octets = connection.recv(65536)
        if not octets:
            raise SystemExit("the broker closed the connection before CONNECTED")
        answer += octets
    if not answer.lstrip().startswith(b"CONNECTED"):
        raise SystemExit(answer.decode(errors="replace"))
    return connection


def disconnect(connection: socket.socket) -> None:
    """When the receipt comes the broker has read everything sent before (STOMP 1.2, DISCONNECT)."""
    connection.settimeout(GOODBYE_SECONDS)
    connection.sendall(b"DISCONNECT\nreceipt:goodbye\n\n\0")
    tail = b""
    while b"receipt-id:goodbye" not in tail:
        octets = connection.recv(65536)
        if not octets:
            raise SystemExit("the broker closed the connection without a receipt for DISCONNECT")
        tail = tail[-64:] + octets
    connection.close()


def refuse_error(octets: bytes) -> None:
    at = octets.find(b"ERROR\n")
    if at >= 0 and (at == 0 or octets[at - 1 : at] in (b"\0", b"\n")):
        raise SystemExit(octets[at : at + 2000].decode(errors="replace"))


# -- producers ----------------------------------------------------------------------------------------------------------------------
def heads(o: argparse.Namespace) -> list[bytes]:
    """The SEND frame's beginning for each destination, with the stray one last."""
    names = [f"{o.dest}.{number}" for number in range(o.queues)] or [o.dest]
    fixed = (b"persistent:true\n" if o.persistent else b"") + o.header + b"content-length:%d\n" % o.size
    return [b"SEND\ndestination:" + name.encode() + b"\n" + fixed for name in [*names, f"{o.dest}.stray"]]


def produce(o: argparse.Namespace, first: int, count: int, results: Any, start: Any, running: Any) -> None:
    connection = connect(o)
    *usual, stray = heads(o)
    padding = b"x" * (o.size - STAMP_OCTETS) + b"\0"
    pace = o.rate / max(1, o.producers)
    latency, sent_at = Reservoir(), {}
    sent = confirmed = 0
    tail = b""
    start.wait()
    began = time.perf_counter()
    # One loop without calls of our own: at 60,000 messages a second every microsecond here is 6% of a core taken from the broker.
    while confirmed < count:
        room = min(count - sent, o.window - (sent - confirmed))
        if pace:
            room = min(room, int((time.perf_counter() - began) * pace) + 1 - sent)
        if room > 0:
            if not running.value:
                count = sent + room
            frames = []
            micros, now = time.time_ns() // 1000, time.perf_counter_ns()
            for number in range(sent, sent + room):
                head = stray if o.stray and number % o.stray == o.stray - 1 else usual[(first + number) % len(usual)]
                receipt = b"receipt:%d\n\n" % number if o.receipt else b"\n"
                frames.append(b"%b%b%016d %08d %b" % (head, receipt, micros, first + number, padding))
                if o.receipt:
                    sent_at[number] = now
            sent += room
            connection.sendall(b"".join(frames))
        if not o.receipt:
            confirmed = sent
            if room <= 0:
                time.sleep(0.002)
            continue
        if sent == confirmed:
            time.sleep(0.002)
            continue
        octets = connection.recv(262144)
        if not octets:
            raise SystemExit("producer: the broker closed the connection")
        now = time.perf_counter_ns()
        whole, nul, tail = (tail + octets).rpartition(b"\0")
        if not nul:
            continue
        refuse_error(whole)
        for receipt in _RECEIPT.findall(whole):
            latency.add((now - sent_at.pop(int(receipt))) / 1e6)
            confirmed += 1
    ended = time.time()
    disconnect(connection)
    results.put({"role": "producer", "ended": ended, "latency": latency.values, "sent": count, "twice": 0})


# -- consumers ----------------------------------------------------------------------------------------------------------------------
def subscribe(o: argparse.Namespace, connection: socket.socket, k: int) -> None:
    fixed = f"ack:{o.ack}\nactivemq.prefetchSize:{o.prefetch}\nprefetch-count:{o.prefetch}\n"
    if o.durable:
        fixed += f"activemq.subscriptionName:bench{k}\ndurable-subscription-name:bench{k}\ndurable:true\nauto-delete:false\n"
    names = [f"{o.dest}.{number}" for number in range(k, o.queues, o.consumers)] or [o.dest]
    for number, name in enumerate(names, k if o.durable else 0):  # RabbitMQ names a durable subscription by its id
        connection.sendall(f"SUBSCRIBE\nid:{number}\ndestination:{name}\n{fixed}".encode() + o.header + b"\n\0")


def consume(o: argparse.Namespace, k: int, results: Any, start: Any, counts: Any, expected: Any, seen: Any) -> None:
    connection = connect(o, f"bench{k}" if o.durable else "")
    time.sleep(DECLARE_SECONDS * k)
    subscribe(o, connection, k)
    marks = memoryview(seen).cast("B")
    base = k * o.n if o.durable else 0
    individual, explicit, many = o.ack == "client-individual", o.ack != "auto", bool(o.queues)
    stamp, number_at, number_end = -o.size, 17 - o.size, 25 - o.size
    latency, twice, got, quiet, last = Reservoir(), 0, 0, 0, 0.0
    since: dict[bytes, int] = {}
    pending: dict[bytes, bytes] = {}
    tail = b""
    start.wait()
    connection.settimeout(0.5)
    while sum(counts) < expected.value and (o.exact or quiet < 10):
        try:
            octets = connection.recv(1 << 20)
        except TimeoutError:
            quiet += 1
            continue
        if not octets:
            raise SystemExit("consumer: the broker closed the connection")
        *frames, tail = (tail + octets).split(b"\0")
        quiet, acks, count, now, subscription = 0, [], 0, time.time_ns() // 1000, b"0"
        for frame in frames:
            if b"MESSAGE\n" not in frame[:12]:
                refuse_error(frame.lstrip())
                continue
            count += 1
            number = base + int(frame[number_at:number_end])
            twice += marks[number]
            marks[number] = 1
            if not (got + count) % 20:
                latency.add((now - int(frame[stamp : stamp + 16])) / 1e3)
            if not explicit:
                continue
            ack = _ACK.search(frame)[1]  # type: ignore[index]
            if individual:
                acks.append(b"ACK\nid:%b\n\n\0" % ack)
                continue
            if many:
                subscription = _SUBSCRIPTION.search(frame)[1]  # type: ignore[index]
            run = since.get(subscription, 0) + 1
            if run >= o.ackevery:
                acks.append(b"ACK\nid:%b\n\n\0" % ack)
                pending.pop(subscription, None)
                run = 0
            else:
                pending[subscription] = ack
            since[subscription] = run
        if acks:
            connection.sendall(b"".join(acks))
        if count:
            got, last = got + count, time.time()
            counts[k] = got
    connection.sendall(b"".join(b"ACK\nid:%b\n\n\0" % ack for ack in pending.values()))
    disconnect(connection)
    results.put({"role": "consumer", "ended": last, "latency": latency.values, "sent": 0, "twice": twice})


# -- the run ------------------------------------------------------------------------------------------------------------------------
def is_stray(o: argparse.Namespace, number: int) -> bool:
    return bool(o.stray) and number % o.stray == o.stray - 1


def run(o: argparse.Namespace) -> dict[str, Any]:
    """One run; its figures. Raises SystemExit if a process fails or, with --exact, a message arrives twice or never."""
    share = o.n // max(1, o.producers)
    total = share * max(1, o.producers)
    copies = o.consumers if o.durable else 1
    strays = max(1, o.producers) * (share // o.stray) if o.stray else 0
    results, start, running = mp.Queue(), mp.Event(), mp.Value("b", 1, lock=False)
    counts, seen = RawArray("q", max(1, o.consumers)), RawArray("b", max(1, total * copies))
    expected = mp.Value("q", (total - strays) * copies, lock=False)
    consumers = [mp.Process(target=consume, args=(o, k, results, start, counts, expected, seen)) for k in range(o.consumers)]
    producers = [mp.Process(target=produce, args=(o, k * share, share, results, start, running)) for k in range(o.producers)]
    for process in consumers + producers:
        process.start()
    time.sleep(2.0 + DECLARE_SECONDS * o.consumers + o.queues / 2000)  # everyone is logged in and subscribed before the clock starts
    began = time.time()
    start.set()
    rows, rates = _collect(o, results, consumers + producers, running, counts, expected, share, began)
    sent = sum(row["sent"] for row in rows) if o.producers else total
    sends_ended = max((row["ended"] for row in rows if row["role"] == "producer"), default=None)
    deliveries_ended = max((row["ended"] for row in rows if row["role"] == "consumer"), default=None)
    delivered, twice = sum(counts), sum(row["twice"] for row in rows)
    never = expected.value - sum(seen) if o.consumers else 0
    report = {
        "messages": sent, "delivered": delivered, "twice": twice, "never": never, "rates": rates,
        "sent_rate": sent / (sends_ended - began) if sends_ended else None,
        "delivered_rate": delivered / (deliveries_ended - began) if deliveries_ended else None,
        "confirm_ms": _quantiles(rows, "producer"), "end_to_end_ms": _quantiles(rows, "consumer"),
        "seconds": max(sends_ended or 0, deliveries_ended or 0) - began,
    }  # fmt: skip
    if o.exact and (twice or never):
        raise SystemExit(f"not exact: delivered twice {twice}, never {never} of {expected.value}")
    return report


def _collect(
    o: argparse.Namespace, results: Any, processes: list[Any], running: Any, counts: Any, expected: Any, share: int, began: float
) -> tuple[list[dict[str, Any]], list[float]]:
    """Wait for every process; with --seconds the producers are told to stop then, and what they sent is what must arrive."""
    rows: list[dict[str, Any]] = []
    rates: list[float] = []
    mark, before = began, 0
    while len(rows) < len(processes):
        try:
            row = results.get(timeout=0.2)
        except Empty:
            if any(process.exitcode for process in processes):
                for process in processes:
                    process.terminate()
                raise SystemExit("a process of the load failed") from None
        else:
            rows.append(row)
            if row["role"] == "producer" and row["sent"] < share:
                strays = sum(is_stray(o, number) for number in range(row["sent"], share)) if o.stray else 0
                expected.value -= (share - row["sent"] - strays) * (o.consumers if o.durable else 1)
        now = time.time()
        if o.seconds and now - began >= o.seconds:
            running.value = 0
        if o.every and now - mark >= o.every:
            rates.append((sum(counts) - before) / (now - mark))
            mark, before = now, sum(counts)
            if not o.json:
                print(f"{now - began:6.0f} s {rates[-1]:,.0f} deliveries/s", flush=True)
    return rows, rates


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
