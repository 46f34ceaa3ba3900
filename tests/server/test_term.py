"""One term of a node: operators' requests, the status, the drain, and ends in bad order. The lease, the database's operator tables and the
listening sockets are the edge of this world."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import psycopg
import pytest

from broker_core.config import BrokerConfig
from broker_core.engine.access import OPERATIONS
from broker_core.engine.effects import DestinationStatistics
from broker_core.server import clock, limits, supervisor
from broker_core.server.host import Host
from broker_core.server.listening import Node
from broker_core.store import CommitLost, SpaceExhausted
from broker_core.store.lease import Times
from broker_core.store.memory import MemoryDatabase
from broker_core.store.memory_tables import Fault

from console.launch.supervisor import NODE_UP

from .conftest import Run
from .rig import START, Broker, Client, Door, Lease, Store, turns


class HeldLease(Lease):
    epoch, clock_ms, acquired_monotonic = 1, START, 1.0

    def __init__(self) -> None:
        super().__init__()
        self.lost = asyncio.Event()
        self.successor = ""

    async def name_successor(self, node: str) -> None:
        self.successor = node


class Operators:
    def __init__(self) -> None:
        self.statuses: list[dict[str, Any]] = []
        self.about: dict[str, Any] = {}
        self.paused: set[str] = set()
        self.retired: list[str] = []
        self.listed: dict[int, str] = {}
        self.links: list[dict[str, Any]] = []
        self.rules = [(">", operation, True, "*", False) for operation in OPERATIONS]
        self.groups: dict[str, list[str]] = {}
        self.full = self.deaf = 0
        self.changes: asyncio.Queue[str] = asyncio.Queue()

    async def write_status(
        self, _node: str, _epoch: int, _role: str, _at: float, _listeners: dict[str, Any], metrics: dict[str, Any], about: dict[str, Any]
    ) -> None:
        if self.full:
            self.full -= 1
            raise SpaceExhausted("no room, by choice")
        self.statuses.append(metrics)
        self.about = about

    async def paused_listeners(self) -> set[str]:
        return set(self.paused)

    async def pause_listener(self, listener: str) -> None:
        self.paused.add(listener)

    async def resume_listener(self, listener: str) -> None:
        self.paused.discard(listener)

    async def stands_by(self, node: str) -> bool:
        return node == "other"

    async def write_statistics(self, rows: Sequence[DestinationStatistics]) -> None:
        self.listed |= {row.destination: row.address for row in rows}

    async def forget_ended(self, destinations: Sequence[int]) -> None:
        for destination in destinations:
            del self.listed[destination]

    async def forget_nodes(self) -> None:
        pass

    async def forget_destroyed(self) -> None:
        pass

    async def account_changes(self, on_request: Callable[[], None]) -> AsyncIterator[str | None]:
        yield None
        while True:
            if self.deaf:
                self.deaf -= 1
                raise psycopg.OperationalError("the connection is lost, by choice")
            yield await self.changes.get()

    async def access(self, _most: int) -> tuple[list[tuple[str, str, bool, str, bool]], dict[str, list[str]]]:
        return self.rules, self.groups

    async def foreign_links(self) -> list[dict[str, Any]]:
        return self.links

    async def data_folder(self) -> str:
        return ""

    async def retire(self, node: str) -> None:
        self.retired.append(node)


class Term(Broker):
    """The supervisor's term instead of the rig's own host and node."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, database: MemoryDatabase | None = None, **settings: Any) -> None:
        super().__init__(database, **settings)
        self.lease, self.operators, self.stop = HeldLease(), Operators(), asyncio.Event()
        self.trims: list[tuple[int, int]] = []
        accounts: Any = self.accounts

        async def listen(node: Node, *_protocols: Any) -> None:
            self.node = node

        async def trim(before: int, octets_max: int) -> int:
            self.trims.append((before, octets_max))
            return await Store.trim_ledger(self.store, before, octets_max)

        monkeypatch.setattr(Node, "listen", listen)
        monkeypatch.setattr(supervisor, "Accounts", lambda _source, _sessions: accounts)
        monkeypatch.setattr(Door, "close", lambda _door: None, raising=False)
        monkeypatch.setattr(self.store, "trim_ledger", trim)
        store: Any = self.store
        lease: Any = self.lease
        operators: Any = self.operators
        self.term = supervisor._Term(self.config, "test", lease, store, operators)

    async def start(self, _limits: Any = None) -> Term:
        ready = asyncio.Event()
        self.running = asyncio.create_task(self.term.serve(self.stop, ready.set))
        await ready.wait()
        await turns()
        self.host: Host = self.term._host
        return self


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


def test_an_operator_sees_a_connection_and_closes_it_with_a_reason(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        database = MemoryDatabase()
        term = await Term(monkeypatch, database).start()
        client = await term.client("q")

        async def asked(verb: str, **arguments: Any) -> dict[str, Any]:
            request = database.request(verb, "", arguments)
            await asyncio.sleep(3 * supervisor.CONTROL_SECONDS)
            answer = database.answer(request)
            assert answer is not None and answer[0], answer
            return answer[1]

        (seen,) = (await asked("connections"))["connections"]
        assert (seen["protocol"], seen["consumers"]) == ("stomp", 1)
        assert seen["address"] is not None
        client.send(b"m", "1", "other")
        await turns()
        (producer,) = (await asked("producers", destination="queue/other"))["producers"]
        assert (producer["connection"], producer["destination"], producer["held_up"]) == (seen["connection"], "queue/other", False)
        assert (await asked("connections"))["connections"][0]["producers"] == 1
        await asked("disconnect", connection=seen["connection"], reason="it hangs")
        await turns()
        assert client.commands()[-1] == "ERROR"
        assert (await asked("connections"))["connections"] == (await asked("producers"))["producers"] == []
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


def test_changes_of_accounts_are_heard_also_after_the_connection_was_lost(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        term = Term(monkeypatch)
        term.operators.deaf = 2
        await term.start()
        await asyncio.sleep(5 * supervisor.STATUS_SECONDS)
        assert term.accounts.reviews == [None, None, None], "whatever was missed is made up for"
        term.operators.changes.put_nowait("shop")
        await turns()
        assert term.accounts.reviews[3:] == ["shop"]
        await term.end()

    run(story())


def test_new_rules_of_access_hold_for_who_is_connected(run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        term = await Term(monkeypatch).start()
        client = await term.client("q")
        term.operators.groups = {"guest": ["staff"]}
        term.operators.rules += [("queue/q", "consume", False, "guest", False), ("nonsense", "produce", True, "x", False)]
        term.operators.changes.put_nowait("")
        await turns()
        assert [(command, headers["message"], body) for command, headers, body in client.take()] == [
            ("ERROR", "access denied", b"the account may not do this there: a rule of its operator refuses it, or none allows it: consume queue/q")
        ]
        assert term.accounts.reviews == [None], "no account has changed"
        assert "1 rules of access are left out" in caplog.text
        other = await term.client()
        other.send(b"m", "1", "q")
        await turns()
        assert other.receipts() == ["1"]
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
        await term.end()

    run(story())


def test_a_request_polled_again_and_again_is_applied_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        term = await Term(monkeypatch).start()
        client = await term.client()
        client.send(b"m", "1")
        await turns()
        submitted = 0
        submit = term.host.submit

        def counted(commands):
            nonlocal submitted
            submitted += len(commands)
            submit(commands)

        monkeypatch.setattr(term.host, "submit", counted)
        door = term.store.shut("commit")
        request = term.database.request("purge", "queue/q")
        await asyncio.sleep(20 * supervisor.CONTROL_SECONDS)
        assert submitted == 1
        assert term.database.answer(request) is None
        door.set()
        await asyncio.sleep(3 * supervisor.CONTROL_SECONDS)
        assert submitted == 1
        done, result = term.database.answer(request)
        assert done, result
        await term.end()

    run(story())


def test_the_ledger_is_trimmed_on_request_and_a_full_disk_does_not_stop_the_node(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        term = await Term(monkeypatch).start()
        term.faults["trim_ledger"] = [Fault.FULL]
        for expected in (1, 2):
            request = term.database.request("ledger")
            await asyncio.sleep(3 * supervisor.CONTROL_SECONDS)
            assert len(term.trims) == expected
            assert term.database.answer(request) is not None
        assert term.trims[0][1] == BrokerConfig().ledger_octets_max
        assert not term.running.done()
        await term.end()

    run(story())


def test_a_status_refused_for_space_is_written_when_there_is_some(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        term = await Term(monkeypatch).start()
        before = len(term.operators.statuses)
        term.operators.full = 5
        await asyncio.sleep(4 * supervisor.STATUS_SECONDS)
        assert len(term.operators.statuses) == before
        await asyncio.sleep(10 * supervisor.STATUS_SECONDS)
        assert not term.running.done()
        said = term.operators.statuses[before]
        assert said["space_low"]
        assert "no room" in said["space_reason"]
        assert not term.operators.statuses[-1]["space_low"]
        await term.end()

    run(story())


def test_the_cap_on_a_connections_unsettled_deliveries_is_looked_after_every_second(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        term = await Term(monkeypatch, connection_unsettled_max=3).start()
        consumer, producer = await term.client("a", "b"), await term.client()
        for number in range(3):
            producer.send(b"m", str(number), "a")
        await asyncio.sleep(2 * supervisor.STATUS_SECONDS)
        producer.send(b"m", "3", "b")
        await turns()
        assert len(consumer.take()) == 3
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


def test_temporary_destinations_are_listed_as_long_as_they_are_there(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        term = await Term(monkeypatch).start()
        client = await term.client()
        client.say("SUBSCRIBE", ("id", "0"), ("destination", "/temp-queue/replies"))
        await asyncio.sleep(3)
        assert "temp-queue/memory-1-1.replies" in term.operators.listed.values()
        assert term.operators.statuses[-1]["temporary_destinations"] == 1
        client.wire.lose()
        await asyncio.sleep(3)
        assert "temp-queue/memory-1-1.replies" not in term.operators.listed.values()
        assert term.operators.statuses[-1]["temporary_destinations"] == 0
        await term.end()

    run(story())


def test_a_link_that_cannot_be_is_left_alone_and_told_of_once(run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever writes the table by hand does not end the node."""

    async def story() -> None:
        term = Term(monkeypatch)
        term.operators.links = [{"name": "far", "attributes": {"port": 0, "host": "h"}, "passcode": "s3cret"}]
        await term.start()
        await asyncio.sleep(3 * supervisor.STATUS_SECONDS)
        assert term.operators.statuses[-1]["foreign"] == []
        await term.end()

    run(story())
    told = [record.getMessage() for record in caplog.records if "far" in record.getMessage()]
    assert told == ["The foreign link 'far' is left alone: port must be a port, 1 to 65535"]
    assert "s3cret" not in caplog.text
