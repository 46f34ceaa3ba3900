"""Operations on many messages at a running service whose node is killed meanwhile: none lost, none doubled."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from broker_core import control
from tests.acceptance.reading import read_all
from tests.support.clients import Connection, reconnect
from tests.support.service import Service, await_true

DEAD = "queue/mq.sys.dmq"
UP_SECONDS_MAX = 60
END_SECONDS_MAX = 180


def ask(service: Service, verb: str, address: str, arguments: dict[str, object]) -> int:
    with service.database() as session, session.cursor() as cursor:
        return control.request(cursor, verb, address, arguments, requested_by="test")


def progress(service: Service, number: int) -> tuple[str, int] | None:
    with service.database() as session:
        return session.execute("SELECT state, done FROM surety.operation WHERE operation = %s", (number,)).fetchone()  # type: ignore[return-value]


def await_end(service: Service, number: int) -> int:
    """How many it dealt with."""
    await_true(lambda: (progress(service, number) or ("", 0))[0] not in ("", "waiting", "running"), END_SECONDS_MAX, f"operation {number} did not end")
    found = progress(service, number)
    assert found is not None and found[0] == "done", found
    return found[1]


def fill(service: Service, queue: str, count: int) -> None:
    """With bodies of their numbers; every thousandth has a large one."""
    with Connection(service.stomp_port) as connection:
        for number in range(count):
            body = b"%d" % number if number % 1000 else (b"%d " % number).ljust(300_000, b".")
            last = {"receipt": "last"} if number == count - 1 else {}
            connection.command("SEND", {"destination": f"/{queue}", "persistent": "true", "part": "even" if number % 2 == 0 else "odd", **last}, body)
        connection.expect("RECEIPT", UP_SECONDS_MAX)


def numbers(bodies: list[bytes]) -> Counter[int]:
    return Counter(int(body.split()[0]) for body in bodies)


def drain(service: Service, queue: str) -> Counter[int]:
    with reconnect(service.stomp_port, UP_SECONDS_MAX) as connection:
        return numbers([frame.body for frame in read_all(connection, f"/{queue}")])


@pytest.mark.slow
def test_a_node_that_is_killed_again_and_again_loses_and_doubles_nothing_of_an_operation(mortal: Service) -> None:
    count, queue = 20_000, f"queue/operated.{time.time_ns()}"
    fill(mortal, queue, count)
    assert await_end(mortal, ask(mortal, "operate", queue, {"verb": "expire"})) == count
    number = ask(mortal, "operate", DEAD, {"verb": "retry", "filter": {"selector": "part = 'even'", "origin": queue}})
    killed = []
    for part in (0.1, 0.4, 0.7):
        await_true(lambda part=part: (progress(mortal, number) or ("", 0))[1] >= part * count / 2, END_SECONDS_MAX, "it did not go on")
        pid = mortal.kill("node")
        killed.append(progress(mortal, number))
        await_true(lambda pid=pid: mortal.pid("node") not in (None, pid), UP_SECONDS_MAX, "no other node came")
    assert await_end(mortal, number) == count / 2
    assert any(row is not None and row[0] == "running" for row in killed), killed
    assert drain(mortal, queue) == Counter(range(0, count, 2))
    left = ask(mortal, "operate", DEAD, {"verb": "retry", "filter": {"origin": queue}})
    assert await_end(mortal, left) == count / 2
    assert drain(mortal, queue) == Counter(range(1, count, 2))


def test_messages_move_and_are_where_they_should_be(service: Service) -> None:
    here, there = (f"queue/operated.{name}.{time.time_ns()}" for name in ("here", "there"))
    fill(service, here, 1_500)
    with Connection(service.stomp_port) as connection:
        connection.confirmed("SEND", {"destination": f"/{there}", "persistent": "true"}, b"-1")
    counted = ask(service, "operate", here, {"verb": "move", "destination": there, "filter": {"text": "even"}, "dry_run": True})
    assert await_end(service, counted) == 750
    moved = ask(service, "operate", here, {"verb": "move", "destination": there, "filter": {"selector": "part = 'even'"}, "limit": 700})
    assert await_end(service, moved) == 700
    assert drain(service, there) == Counter([-1, *range(0, 1_400, 2)])
    assert drain(service, here) == Counter([*range(1, 1_500, 2), *range(1_400, 1_500, 2)])
