"""Hostile input over real sockets: the node lives, its memory stays bounded, and a healthy connection notices nothing."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

import pytest

from tests.acceptance.bad_input import PAUSE, BadInput
from tests.acceptance.healthy import HealthyTraffic
from tests.support.clients import Connection, ConnectionLost, open_socket
from tests.support.service import Service

SEED = 7
SCRIPTS = 450
SCRIPTS_SLOW = 9_000
PAUSE_SECONDS = 0.05
MIB = 1 << 20
GROWTH_OCTETS_MAX = 200 * MIB
"""What the node may grow by: bodies in memory 128 MiB, outstanding on one link 16, the open batch and the one being written, as read and as packed, 16;
and a quarter of it for the allocator's slack."""
STRANGERS = 200
ENDLESS_OCTETS = 64 * MIB


def inject(port: int, pieces: list[bytes], *, login: bool, client_id: str = "") -> None:
    """Write the pieces; what the node answers is read and thrown away; it may close at any time."""
    try:
        with contextlib.ExitStack() as stack:
            if login:
                connection = stack.enter_context(Connection(port, headers={"client-id": client_id} if client_id else {}))
                for piece in pieces:
                    if piece == PAUSE:
                        time.sleep(PAUSE_SECONDS)
                    connection.raw(piece)
                with contextlib.suppress(AssertionError, UnicodeDecodeError, KeyError):
                    connection.receive(0.02)
            else:
                stranger = stack.enter_context(open_socket(port))
                for piece in pieces:
                    stranger.sendall(piece)
                stranger.settimeout(0.02)
                stranger.recv(65536)
    except (ConnectionLost, OSError):
        return  # the node hung up: its right


def still_the_same_node(service: Service, pid: int, resident: int) -> None:
    assert service.pid("node") == pid, f"the node died\n{service.evidence()}"
    grown = service.resident_octets("node", peak=True) - resident
    assert grown < GROWTH_OCTETS_MAX, f"the node grew by {grown / MIB:.0f} MiB"


def fuzz(service: Service, seed: int, scripts: int) -> None:
    pid, resident = service.await_pid("node"), service.resident_octets("node")
    with HealthyTraffic(service.stomp_port, f"/queue/healthy.{seed}") as healthy:
        for number, (kind, pieces) in enumerate(BadInput(seed, f"/queue/fuzz.{seed}").scripts(scripts)):
            inject(service.stomp_port, pieces, login=number % 4 != 3, client_id=f"fuzz {number}" if number % 4 == 1 else "")
            assert healthy.failure is None, f"script {number} ({kind}) of seed {seed}: {healthy.failure!r}\n{service.evidence()}"
            assert service.pid("node") == pid, f"script {number} ({kind}) of seed {seed} ended the node\n{service.evidence()}"
        healthy.unharmed()
    still_the_same_node(service, pid, resident)


def test_bad_input_harms_neither_the_node_nor_its_other_connections(fuzzed: Service) -> None:
    fuzz(fuzzed, SEED, SCRIPTS)


@pytest.mark.slow
def test_much_bad_input_harms_neither_the_node_nor_its_other_connections(fuzzed: Service) -> None:
    fuzz(fuzzed, SEED + 1, SCRIPTS_SLOW)


def test_strangers_that_say_little_or_nothing_are_shown_the_door(fuzzed: Service) -> None:
    """Slowloris: half connect and stay silent, half send a CONNECT one octet at a time, too slowly to log in in time."""
    with HealthyTraffic(fuzzed.stomp_port, "/queue/healthy.slow") as healthy, contextlib.ExitStack() as stack:
        strangers = [stack.enter_context(open_socket(fuzzed.stomp_port)) for _ in range(STRANGERS)]
        for octet in b"CONNECT\nac":
            for stranger in strangers[::2]:
                with contextlib.suppress(OSError):
                    stranger.send(bytes([octet]))
            time.sleep(0.3)
        time.sleep(2)
        assert sum(not is_closed(stranger) for stranger in strangers) == 0
        healthy.unharmed()


def is_closed(stranger: socket.socket) -> bool:
    stranger.settimeout(0.5)
    try:
        while stranger.recv(4096):
            pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


def test_a_never_ending_header_is_cut_off(fuzzed: Service) -> None:
    pid, resident = fuzzed.await_pid("node"), fuzzed.resident_octets("node")
    with Connection(fuzzed.stomp_port) as connection:
        connection.raw(b"SEND\ndestination:/queue/x\nendless:")
        with contextlib.suppress(ConnectionLost):  # the node hung up meanwhile: its right
            for _ in range(ENDLESS_OCTETS // MIB):
                connection.raw(b"e" * MIB)
        connection.expect_closed()
    still_the_same_node(fuzzed, pid, resident)


def test_a_consumer_that_never_reads_costs_bounded_memory(fuzzed: Service) -> None:
    """Its socket fills; the node stops delivering to it and serves the others."""
    pid, resident = fuzzed.await_pid("node"), fuzzed.resident_octets("node")
    with HealthyTraffic(fuzzed.stomp_port, "/queue/healthy.deaf") as healthy, Connection(fuzzed.stomp_port) as deaf:
        deaf.subscribe("/queue/deaf", ack="auto", prefetch=1_000_000)
        with Connection(fuzzed.stomp_port) as producer:
            for _ in range(3_000):
                producer.send("/queue/deaf", b"d" * 100_000)
            producer.confirmed("SEND", {"destination": "/queue/deaf", "persistent": "true"}, b"last", timeout=120)
        healthy.unharmed()
    still_the_same_node(fuzzed, pid, resident)


def test_many_connections_at_once_misbehave(fuzzed: Service) -> None:
    pid, resident = fuzzed.await_pid("node"), fuzzed.resident_octets("node")
    with HealthyTraffic(fuzzed.stomp_port, "/queue/healthy.many") as healthy:
        workers = [threading.Thread(target=misbehave, args=(fuzzed.stomp_port, seed)) for seed in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        healthy.unharmed()
    still_the_same_node(fuzzed, pid, resident)


def misbehave(port: int, seed: int) -> None:
    for _, pieces in BadInput(100 + seed, f"/queue/fuzz.{seed}").scripts(45):
        inject(port, pieces, login=True)
