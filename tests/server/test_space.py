"""No disk space (R21): producers wait, within bounds; consumers go on; what is confirmed is durable."""

from __future__ import annotations

import asyncio
import collections
import os
from types import SimpleNamespace

import pytest

from broker_core.server import held, host
from broker_core.server.space import HOLD_SECONDS, Space
from broker_core.store import SpaceExhausted
from broker_core.store.memory_tables import Fault

from .conftest import Run
from .rig import Broker, turns


def low(broker: Broker) -> None:
    broker.space._set("no room, by choice")


def enough(broker: Broker) -> None:
    broker.space._set("")


def test_a_commit_refused_for_space_is_retried_and_its_producer_waits(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start()
        client = await broker.client()
        broker.faults["commit"] = [Fault.FULL, Fault.FULL]
        client.send(b"m", "1")
        await turns()
        assert client.take() == []
        assert broker.space.low
        await asyncio.sleep(3 * host.SPACE_RETRY_SECONDS)
        assert client.receipts() == ["1"]
        assert not broker.running.done()
        await broker.end()

    run(story())


def test_below_the_minimum_nothing_is_confirmed_and_the_producer_is_not_read(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start()
        client = await broker.client()
        low(broker)
        client.send(b"m", "1")
        await asyncio.sleep(10)
        assert client.take() == []
        assert client.wire.paused
        enough(broker)
        await asyncio.sleep(2)
        assert client.receipts() == ["1"]
        assert not client.wire.paused
        await broker.end()

    run(story())


def test_consumers_connect_and_settle_below_the_minimum(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start()
        producer = await broker.client()
        for number in range(3):
            producer.send(b"m", str(number))
        await turns()
        low(broker)
        consumer = await broker.client("q")
        await turns()
        messages = [frame for frame in consumer.take() if frame[0] == "MESSAGE"]
        assert not consumer.wire.paused
        for number, message in enumerate(messages):
            consumer.ack(message, f"ack{number}")
            await turns()
            assert consumer.receipts() == [f"ack{number}"]
            assert not consumer.wire.paused
        assert len(messages) == 3
        await broker.end()

    run(story())


def test_disconnect_is_not_confirmed_before_the_sends_it_answers_for(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start()
        client = await broker.client()
        low(broker)
        client.send(b"m")
        client.say("DISCONNECT", ("receipt", "bye"))
        await asyncio.sleep(10)
        assert client.take() == []
        enough(broker)
        await asyncio.sleep(2)
        assert client.receipts() == ["bye"]
        assert [len(commit.messages) for commit in broker.store.commits[-1:]] == [1]
        await broker.end()

    run(story())


def test_a_send_that_comes_when_there_is_space_again_does_not_overtake_those_that_waited(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start()
        client = await broker.client("q")
        low(broker)
        client.send(b"first", "1")
        await turns()
        enough(broker)
        client.send(b"second", "2")
        await asyncio.sleep(2)
        frames = client.take()
        assert [body for command, _, body in frames if command == "MESSAGE"] == [b"first", b"second"]
        assert [h["receipt-id"] for command, h, _ in frames if command == "RECEIPT"] == ["1", "2"]
        await broker.end()

    run(story())


def test_a_subscriber_that_sends_too_much_gets_an_error_that_names_the_limit(run: Run) -> None:
    async def story() -> None:
        broker = await Broker(unconfirmed_octets_max=4096).start()
        client = await broker.client("q")
        low(broker)
        client.send(b"x" * 3000, "1")
        await turns()
        assert client.take() == []
        assert not client.wire.paused, "its ACKs are read on"
        client.send(b"x" * 3000, "2")
        await turns()
        (command, headers, _), = client.take()
        assert command == "ERROR"
        assert "no disk space" in headers["message"]
        assert "4096" in headers["message"]
        assert client.wire.gone
        await broker.end()

    run(story())


def test_sends_of_connections_that_are_gone_are_kept_within_a_bound(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held, "ORPHANS_OCTETS_MAX", 3 * (held.SEND_OCTETS + 1100))

    async def story() -> None:
        broker = await Broker().start()
        low(broker)
        for number in range(5):
            client = await broker.client()
            client.send(b"%d" % number * 1000)
            client.wire.lose()
            await turns()
        assert broker.host.gauges()["sends_waiting_for_space"] == 3
        enough(broker)
        await asyncio.sleep(2)
        consumer = await broker.client("q")
        assert [body[:1] for _, _, body in consumer.take()] == [b"0", b"1", b"2"]
        await broker.end()

    run(story())


def test_a_peer_that_waited_for_space_and_is_gone_is_forgotten(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start()
        client = await broker.client()
        low(broker)
        client.send(b"m", "1")
        await turns()
        assert broker.host._waiting
        client.wire.lose()
        await turns()
        assert not broker.host._waiting
        await broker.end()

    run(story())


def test_a_delayed_message_that_is_due_waits_for_space_and_keeps_nobody_busy(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start()
        client = await broker.client("q")
        client.say("SEND", ("destination", "/queue/q"), ("persistent", "true"), ("delay", "100"), body=b"later")
        await turns()
        low(broker)
        began = broker.engine.shard.read_number, len(broker.store.commits)
        await asyncio.sleep(60)
        assert client.take() == []
        assert (broker.engine.shard.read_number, len(broker.store.commits)) == began
        enough(broker)
        await asyncio.sleep(2 * host.SPACE_RETRY_SECONDS)
        assert [body for _, _, body in client.take()] == [b"later"]
        await broker.end()

    run(story())


def test_a_large_body_waits_for_space(run: Run) -> None:
    async def story() -> None:
        broker = await Broker(large_body_octets=2048, body_chunk_octets=65536).start()
        client = await broker.client()
        low(broker)
        client.send(b"L" * 5000, "1")
        await asyncio.sleep(10)
        assert not broker.database.tables.bodies
        assert client.wire.paused
        enough(broker)
        await asyncio.sleep(2)
        assert client.receipts() == ["1"]
        await broker.end()

    run(story())


def test_a_large_body_of_a_subscriber_is_refused_below_the_minimum(run: Run) -> None:
    async def story() -> None:
        broker = await Broker(large_body_octets=2048).start()
        client = await broker.client("q")
        low(broker)
        client.send(b"L" * 5000, "1")
        await turns()
        assert client.commands() == ["ERROR"]
        assert client.wire.gone
        await broker.end()

    run(story())


def test_a_checkpoint_and_statistics_wait_for_space_and_reports_go_on_soon_after(run: Run) -> None:
    async def story() -> None:
        broker = await Broker(report_seconds=1.0).start()
        client = await broker.client()
        broker.faults["checkpoint"] = [Fault.FULL] * 60
        client.send(b"m", "1")
        await asyncio.sleep(30)
        await asyncio.sleep(40)
        broker.space.look()
        client.send(b"m", "2")
        await asyncio.sleep(5)
        assert broker.faults["checkpoint"] == []
        assert broker.published[-1].statistics[-1].accepted == 2
        assert not broker.running.done()
        await broker.end()

    run(story())


def test_statistics_refused_for_space_are_written_later(run: Run) -> None:
    async def story() -> None:
        broker = Broker(report_seconds=1.0)
        refusals = 3
        publish = broker._publish

        async def full(effects):
            nonlocal refusals
            if refusals:
                refusals -= 1
                raise SpaceExhausted("no room, by choice")
            await publish(effects)

        broker._publish = full  # type: ignore[method-assign]
        await broker.start()
        await asyncio.sleep(10)
        assert broker.published
        assert not broker.running.done()
        await broker.end()

    run(story())


def test_after_a_refusal_publishing_waits_for_a_while_whatever_the_disk_says(run: Run) -> None:
    async def story() -> None:
        space = Space(None, 0)
        space.look()
        assert not space.low
        space.exhausted("53100")
        assert space.low
        assert "53100" in space.reason
        await asyncio.sleep(HOLD_SECONDS / 2)
        space.look()
        assert space.low
        space.exhausted("again")
        await asyncio.sleep(HOLD_SECONDS / 2 + 0.1)
        space.look()
        assert space.low, "each refusal begins the wait anew"
        await asyncio.sleep(HOLD_SECONDS)
        space.look()
        assert not space.low
        assert space.reason == ""

    run(story())


def test_free_space_below_the_minimum_is_low_and_its_reason_has_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    free = collections.deque([100, 300])
    monkeypatch.setattr(os, "statvfs", lambda _folder: SimpleNamespace(f_bavail=free.popleft() << 20, f_frsize=1))
    space = Space("/data", 256 << 20)
    space.look()
    assert space.low
    assert "100 MiB" in space.reason
    assert "256 MiB" in space.reason
    assert space.free_octets == 100 << 20
    space.look()
    assert not space.low


def test_a_folder_that_cannot_be_measured_is_unknown_and_not_full(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_folder: str) -> None:
        raise OSError("gone")

    monkeypatch.setattr(os, "statvfs", fails)
    space = Space("/data", 1)
    space.look()
    assert not space.low
    assert space.free_octets is None
