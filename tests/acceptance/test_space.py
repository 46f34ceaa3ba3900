"""A full disk and a freed one: producers wait, health says why, consumers go on, nothing is lost."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.reading import read_all
from tests.support.clients import Connection, ConnectionLost, encode, reconnect
from tests.support.service import Service, await_true

pytestmark = pytest.mark.alone

MIB = 1 << 20
DISK_OCTETS = 2_048 * MIB
LOW_OCTETS = 100 * MIB
"""Below the minimum of 256 MiB, yet enough for everything but publishing."""
NOTICE_SECONDS_MAX = 15
"""The node looks about once a second, the console reads what it tells."""
REFUSED_SECONDS = 3
BEFORE, DURING = 200, 50
BODY = b"b" * 20_000


@pytest.fixture(scope="module")
def disk() -> Iterator[Path]:
    """A file system of its own, small enough to fill. Mounting needs root. Not in pytest's folder, which each run of pytest closes to other accounts, and
    PostgreSQL's is one."""
    folder = Path(tempfile.mkdtemp(prefix="surety-disk-"))
    folder.chmod(0o755)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_OCTETS},mode=755", "surety-acceptance", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
        folder.rmdir()


@pytest.fixture(scope="module")
def home(disk: Path) -> Iterator[Service]:
    with Service(home=disk / "home") as service:
        yield service


class Ballast:
    """Takes up the disk's free space but for what is asked."""

    def __init__(self, disk: Path) -> None:
        self.file = disk / "ballast"

    def leave(self, octets: int) -> None:
        free = os.statvfs(self.file.parent)
        wanted = free.f_bavail * free.f_frsize - octets
        with self.file.open("ab") as file:
            os.posix_fallocate(file.fileno(), file.tell(), wanted)

    def leave_nothing(self) -> None:
        with contextlib.suppress(OSError), self.file.open("ab") as file:
            while True:
                file.write(b"\0" * MIB)
                file.flush()

    def remove(self) -> None:
        self.file.unlink(missing_ok=True)


@pytest.fixture
def ballast(disk: Path) -> Iterator[Ballast]:
    taking = Ballast(disk)
    yield taking
    taking.remove()


def send(connection: Connection, first: int, count: int, queue: str) -> None:
    for number in range(first, first + count):
        connection.send(queue, b"%08d" % number + BODY, {"receipt": str(number)})


def numbers_of(bodies: list[bytes]) -> list[int]:
    assert all(body[8:] == BODY for body in bodies)
    return [int(body[:8]) for body in bodies]


def says_why(service: Service) -> bool:
    status, text = service.get("/health/ready")
    return status == 503 and "space" in text


def test_below_the_minimum_producers_wait_and_consumers_go_on(home: Service, ballast: Ballast) -> None:
    service, queue = home, "/queue/low"
    with Connection(service.stomp_port) as producer, Connection(service.stomp_port) as consumer:
        send(producer, 0, BEFORE, queue)
        assert len([producer.expect("RECEIPT") for _ in range(BEFORE)]) == BEFORE
        ballast.leave(LOW_OCTETS)
        await_true(lambda: says_why(service), NOTICE_SECONDS_MAX, "health does not say that space is short")
        send(producer, BEFORE, DURING, queue)
        assert producer.receive(REFUSED_SECONDS) is None, "nothing is confirmed while space is short"
        hasty = Connection(service.stomp_port)
        send_and_leave = [encode("SEND", {"destination": "/queue/hasty", "persistent": "true"}, b"x"), encode("DISCONNECT", {"receipt": "left"})]
        hasty.raw(b"".join(send_and_leave))
        assert hasty.receive(1) is None, "DISCONNECT is not confirmed before what was sent"
        consumer.subscribe(queue)
        taken = []
        for _ in range(BEFORE):
            message = consumer.expect("MESSAGE")
            consumer.confirmed("ACK", {"id": message.headers["ack"]})
            taken.append(message.body)
        assert numbers_of(taken) == list(range(BEFORE)), "settlements go on"
        ballast.remove()
        assert hasty.expect("RECEIPT", 30).headers["receipt-id"] == "left"
        hasty.close()
        assert [producer.expect("RECEIPT", 30).headers["receipt-id"] for _ in range(DURING)] == [str(BEFORE + n) for n in range(DURING)]
        rest = [consumer.expect("MESSAGE").body for _ in range(DURING)]
        assert numbers_of(rest) == list(range(BEFORE, BEFORE + DURING))
        service.await_ready(NOTICE_SECONDS_MAX)


def test_a_disk_without_a_free_octet_loses_nothing(home: Service, ballast: Ballast) -> None:
    """PostgreSQL itself stops when it cannot write its log; what was confirmed is there once it has room again."""
    service, queue, confirmed = home, "/queue/full", set()
    producer = Connection(service.stomp_port)
    with contextlib.suppress(ConnectionLost):
        for first in range(0, 200_000, 50):
            if first == 500:
                ballast.leave_nothing()
            send(producer, first, 50, queue)
            for _ in range(50):
                frame = producer.receive(REFUSED_SECONDS)
                if frame is None:
                    raise ConnectionLost("nothing more is confirmed")
                confirmed.add(int(frame.headers["receipt-id"]))
    producer.close()
    assert len(confirmed) >= 500
    await_true(lambda: not service.is_ready(), NOTICE_SECONDS_MAX, "health says ready on a full disk")
    ballast.remove()
    service.await_ready()
    with reconnect(service.stomp_port) as consumer:  # and traffic goes on
        found = numbers_of([frame.body for frame in read_all(consumer, queue)])
        assert len(found) == len(set(found)), "none twice"
        assert confirmed <= set(found), f"lost: {sorted(confirmed - set(found))[:10]}"
