"""The two rules, as the host keeps them: write before you speak; a commit not known to have succeeded ends the term."""

from __future__ import annotations

import asyncio

import pytest

from broker_core.store import CommitLost
from broker_core.store.memory_tables import Fault

from .conftest import Run
from .rig import Broker, turns


def test_a_lost_commit_ends_the_run_and_nothing_of_it_or_of_the_open_batch_leaves(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start()
        client = await broker.client()
        door = broker.store.shut("commit")
        broker.faults["commit"] = [Fault.KEPT]
        client.send(b"in flight", "1")
        await turns()
        client.send(b"open", "2")
        await turns()
        door.set()
        with pytest.raises(CommitLost):
            await broker.running
        assert client.take() == []
        await broker.end()

    run(story())


def test_a_receipt_waits_for_its_commit(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start()
        client = await broker.client()
        door = broker.store.shut("commit")
        client.send(b"m", "1")
        await turns()
        assert client.take() == []
        door.set()
        await turns()
        assert client.receipts() == ["1"]
        await broker.end()

    run(story())


def test_what_is_applied_while_a_commit_is_in_flight_lands_in_the_next_one(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start()
        client = await broker.client()
        door = broker.store.shut("commit")
        client.send(b"a", "1")
        await turns()
        for number in (2, 3, 4):
            client.send(b"b", str(number))
        await turns()
        door.set()
        await turns()
        assert [len(commit.messages) for commit in broker.store.commits[-2:]] == [1, 3]
        assert client.receipts() == ["1", "2", "3", "4"]
        await broker.end()

    run(story())


def test_outputs_of_one_commit_leave_while_the_next_is_on_its_way_and_not_before_it_was_sent(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start()
        client = await broker.client()
        commit, send = broker.store.shut("commit"), broker.store.shut("send")
        send.set()
        client.send(b"a", "1")
        await turns()
        client.send(b"b", "2")
        send.clear()
        commit.set()
        await turns()
        commit.clear()
        assert client.receipts() == []
        send.set()
        await turns()
        assert client.receipts() == ["1"]
        commit.set()
        await turns()
        assert client.receipts() == ["2"]
        await broker.end()

    run(story())


def test_each_peer_hears_its_outputs_in_order(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start()
        one, two = await broker.client("q"), await broker.client()
        door = broker.store.shut("commit")
        for number in range(10):
            two.send(b"%d" % number, str(number))
            one.send(b"own", f"own{number}", "other")
            await turns(2)
        door.set()
        await turns()
        assert two.receipts() == [str(number) for number in range(10)]
        frames = one.take()
        assert [body for command, _, body in frames if command == "MESSAGE"] == [b"%d" % number for number in range(10)]
        assert [h["receipt-id"] for command, h, _ in frames if command == "RECEIPT"] == [f"own{number}" for number in range(10)]
        await broker.end()

    run(story())


def test_nothing_leaves_while_the_lease_is_not_proved(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start()
        client = await broker.client()
        door = broker.store.shut("commit")
        client.send(b"m", "1")
        await turns()
        broker.lease.fresh = False
        door.set()
        await asyncio.sleep(5)
        assert client.take() == []
        broker.lease.fresh = True
        await asyncio.sleep(1)
        assert client.receipts() == ["1"]
        await broker.end()

    run(story())


def test_a_commit_that_takes_long_to_send_holds_back_outputs_when_the_proof_grows_stale_meanwhile(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start()
        client = await broker.client()
        commit, send = broker.store.shut("commit"), broker.store.shut("send")
        send.set()
        client.send(b"a", "1")
        await turns()
        client.send(b"b", "2")
        send.clear()
        commit.set()
        await turns()
        broker.lease.fresh = False
        send.set()
        await turns()
        assert client.take() == []
        broker.lease.fresh = True
        await asyncio.sleep(1)
        assert client.receipts() == ["1", "2"]
        await broker.end()

    run(story())


def test_a_broken_engine_ends_the_run_although_only_a_connection_called_it(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start()
        client = await broker.client()
        broker.engine.shard.destinations = None  # type: ignore[assignment]
        with pytest.raises(AttributeError):
            client.send(b"m", "1")
        with pytest.raises(AttributeError):
            await broker.running
        assert client.take() == []
        assert broker.store.commits[-1].messages == []
        await broker.end()

    run(story())


def test_whoever_waits_for_a_flush_hears_that_the_commit_was_lost(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start()
        client = await broker.client()
        door = broker.store.shut("commit")
        broker.faults["commit"] = [Fault.LOST]
        client.send(b"m", "1")
        await turns()
        flushed = asyncio.create_task(broker.host.flushed())
        await turns()
        door.set()
        with pytest.raises(CommitLost):
            await asyncio.wait_for(flushed, 10)
        with pytest.raises(CommitLost):
            await broker.running
        await broker.end()

    run(story())


def test_whoever_no_longer_waits_for_a_flush_does_no_harm(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start()
        client = await broker.client()
        door = broker.store.shut("commit")
        client.send(b"m", "1")
        flushed = asyncio.create_task(broker.host.flushed())
        await turns()
        flushed.cancel()
        await asyncio.gather(flushed, return_exceptions=True)
        door.set()
        await turns()
        assert client.receipts() == ["1"]
        assert not broker.running.done()
        await broker.end()

    run(story())


def test_flushed_returns_when_what_was_submitted_is_durable_and_told(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start()
        client = await broker.client()
        client.send(b"m", "1")
        await broker.host.flushed()
        assert client.receipts() == ["1"]
        await broker.end()

    run(story())


def test_stop_commits_what_is_open_and_ends_the_run(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start()
        client = await broker.client()
        client.send(b"m", "1")
        broker.host.stop()
        await broker.running
        assert client.receipts() == ["1"]
        assert broker.database.tables.number == broker.store.commits[-1].number, "the last checkpoint"
        await broker.end()

    run(story())


def test_there_is_one_report_at_a_time_and_a_slow_one_does_not_keep_the_loop_busy(run: Run) -> None:
    async def story() -> None:
        broker = await Broker(report_seconds=1.0).start()
        flushes, flush = 0, type(broker.engine).flush

        class Counting(type(broker.engine)):  # type: ignore[misc]
            __slots__ = ()

            def flush(self, now, **how):
                nonlocal flushes
                flushes += 1
                return flush(self, now, **how)

        broker.host._engine = Counting(broker.engine.shard)
        client = await broker.client()
        broker.publish_door.clear()
        client.send(b"m", "1")
        await asyncio.sleep(2)
        flushes, before = 0, len(broker.published)
        client.send(b"m", "2")
        await asyncio.sleep(30)
        assert len(broker.published) == before
        assert flushes < 20
        broker.publish_door.set()
        await asyncio.sleep(400)
        assert len(broker.published) > before, "then reports go on"
        await broker.end()

    run(story())


def test_a_delayed_message_comes_when_it_is_due_though_nothing_else_happens(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start()
        client = await broker.client("q")
        client.say("SEND", ("destination", "/queue/q"), ("persistent", "true"), ("delay", "90000"), ("receipt", "1"), body=b"later")
        await turns()
        assert client.receipts() == ["1"]
        await asyncio.sleep(89.9)
        assert client.take() == []
        await asyncio.sleep(0.2)
        assert [(command, body) for command, _, body in client.take()] == [("MESSAGE", b"later")]
        await broker.end()

    run(story())


def test_a_peer_that_is_gone_before_the_release_hears_nothing_and_disturbs_nobody(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start()
        gone, other = await broker.client(), await broker.client()
        door = broker.store.shut("commit")
        gone.send(b"a", "1")
        other.send(b"b", "1")
        await turns()
        gone.wire.lose()
        await turns()
        door.set()
        await turns()
        assert gone.take() == []
        assert other.receipts() == ["1"]
        await broker.end()

    run(story())
