"""How a term of a node begins and ends: its clock, its lease, the drain, and ends in bad order."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from broker_core.config import BrokerConfig
from broker_core.server import clock, limits, supervisor
from broker_core.server.listening import Node
from broker_core.store import CommitLost, SpaceExhausted
from broker_core.store.lease import Times
from broker_core.store.memory import MemoryDatabase
from broker_core.store.memory_tables import Fault

from console.launch.supervisor import NODE_UP

from .conftest import Run
from .rig import START, Client, turns
from .terms import HeldLease, Term


@pytest.mark.parametrize("checkpointed", [True, False])
def test_a_clock_that_was_far_ahead_for_one_term_does_not_stop_the_next(run: Run, monkeypatch: pytest.MonkeyPatch, checkpointed: bool) -> None:
    """A day ahead, then right again: time, timers, heart-beats and operators' requests go on in the second term, and no message is lost."""

    async def story() -> None:
        database, day = MemoryDatabase(), 86_400_000
        monkeypatch.setattr(HeldLease, "clock_ms", START + day)
        ahead = Term(monkeypatch, database)
        await ahead.start()
        producer = await ahead.client()
        if checkpointed:
            producer.send(b"m", "1")
            ahead.stop.set()
            await ahead.running
        else:
            await asyncio.sleep(10)
            producer.send(b"m", "1")
            await turns()
        assert producer.receipts() == ["1"]
        await ahead.end()

        monkeypatch.setattr(HeldLease, "clock_ms", START)
        monkeypatch.setattr(HeldLease, "acquired_monotonic", asyncio.get_running_loop().time())
        term = await Term(monkeypatch, database).start()
        began = term.term._node.clock.now()
        assert began <= START + clock.AHEAD_MS_MAX
        assert all(queue.idle_since <= began for queue in term.host._engine.shard.destinations.values())
        await asyncio.sleep(5)
        assert term.term._node.clock.now() >= START + 4000
        request = database.request("pause", "queue/q", {"direction": "PRODUCERS"}, deadline=START + 60_000)
        await asyncio.sleep(3 * supervisor.CONTROL_SECONDS)
        answer = database.answer(request)
        assert answer is not None and answer[0], answer
        consumer = await term.client("q")
        await turns()
        assert [body for _, _, body in consumer.take()] == [b"m"]
        await term.end()

    run(story())


def test_a_node_that_serves_says_what_its_supervisor_waits_for_and_one_that_cannot_listen_does_not(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        broken = Term(monkeypatch)
        with monkeypatch.context() as patched:

            async def listen(_node: Node, *_protocols: Any) -> None:
                raise OSError("the port is taken, by choice")

            patched.setattr(Node, "listen", listen)
            with pytest.raises(OSError, match="by choice"):
                await broken.term.serve(broken.stop, lambda: None)
        assert NODE_UP not in caplog.text
        term = await Term(monkeypatch).start()
        assert NODE_UP in caplog.text
        term.stop.set()
        await term.running
        await term.end()

    caplog.set_level(logging.INFO)
    run(story())


def test_a_lease_lost_ends_the_term(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        term = await Term(monkeypatch).start()
        client = await term.client()
        term.lease.lost.set()
        with pytest.raises(CommitLost):
            await term.running
        assert [h["message"] for _, h, _ in client.take()] == ["the broker is stepping down; connect again"]
        assert client.wire.gone
        await term.end()

    run(story())


def test_a_lease_lost_while_a_drain_waits_for_a_commit_ends_the_term(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        term = await Term(monkeypatch).start()
        client = await term.client()
        term.store.shut("commit")
        client.send(b"m", "1")
        await turns()
        term.stop.set()
        await turns()
        term.lease.fresh = False
        term.lease.lost.set()
        with pytest.raises(CommitLost):
            await asyncio.wait_for(term.running, 30)
        assert client.receipts() == []
        await term.end()

    run(story())


def test_a_commit_lost_at_the_drain_ends_the_term(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        term = await Term(monkeypatch).start()
        client = await term.client()
        door = term.store.shut("commit")
        term.faults["commit"] = [Fault.LOST]
        client.send(b"m", "1")
        await turns()
        term.stop.set()
        await turns()
        door.set()
        with pytest.raises(CommitLost):
            await asyncio.wait_for(term.running, 30)
        assert client.commands() == ["ERROR"]
        await term.end()

    run(story())


def test_a_drain_answers_what_was_taken_in_and_then_says_why_and_closes(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        term = await Term(monkeypatch).start()
        client, idle = await term.client(), await term.client()
        door = term.store.shut("commit")
        client.send(b"in flight", "1")
        await turns()
        client.send(b"open", "2")
        term.stop.set()
        await turns()
        assert client.wire.paused, "nothing more is read"
        late = Client(term, "127.0.0.1", reads=True)
        await turns()
        assert late.commands() == ["ERROR"]
        assert client.take() == []
        door.set()
        await term.running
        assert client.commands() == ["RECEIPT", "RECEIPT", "ERROR"]
        assert [h["message"] for _, h, _ in idle.take()] == ["the broker is shutting down; connect again later"]
        assert client.wire.gone
        assert idle.wire.gone
        assert [message.body for commit in term.store.commits for message in commit.messages] == [b"in flight", b"open"]
        assert term.operators.retired == ["test"]
        assert term.operators.audited == [("node start",), ("node stop",)]
        await term.end()

    run(story())


def test_a_term_that_met_a_full_disk_is_followed_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        stop, terms = asyncio.Event(), 0

        async def term(*_arguments: Any) -> None:
            nonlocal terms
            terms += 1
            if terms == 1:
                raise SpaceExhausted("no room to recover")
            stop.set()

        monkeypatch.setattr(supervisor, "_term", term)
        monkeypatch.setattr(supervisor, "RETRY_SECONDS", (0.001,))
        await supervisor.serve(BrokerConfig(), stop, lambda: None)
        assert terms == 2

    asyncio.run(story())


def test_a_lease_won_at_the_moment_at_which_standing_by_failed_is_not_forgotten(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forgotten it would be held, with a fresh heartbeat, by nobody who serves: this node would stand by behind itself for ever."""
    won = object()

    async def acquire(*_where: object, **_how: object) -> object:
        return won

    async def stand_by(*_where: object) -> None:
        raise CommitLost("the database does not answer")

    monkeypatch.setattr(supervisor.Lease, "acquire", acquire)
    monkeypatch.setattr(supervisor, "_stand_by", stand_by)

    async def story() -> None:
        operators: Any = None
        assert await supervisor._acquire(BrokerConfig(), "node", asyncio.Event(), operators) is won

    run(story())


def test_the_lease_is_kept_by_the_times_of_the_configuration(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []

    async def acquire(*_where: object, times: object = None) -> object:
        told.append(times)
        return None

    monkeypatch.setattr(supervisor.Lease, "acquire", acquire)

    async def story() -> None:
        config = BrokerConfig(lease_heartbeat_ms=200, outputs_stop_ms=900, lease_stale_ms=1500)
        operators: Any = None
        await supervisor._acquire(config, "node", asyncio.Event(), operators)
        assert told == [Times(heartbeat=0.2, silence=0.9, stale=1.5)]
        default = BrokerConfig()
        assert limits.times_of(default) == Times()

    run(story())
