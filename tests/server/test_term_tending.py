"""What a term looks after while it serves: operators' requests, accounts and rules, the ledger, the status, what connections hold."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from broker_core.config import BrokerConfig
from broker_core.server import supervisor
from broker_core.store.memory import MemoryDatabase
from broker_core.store.memory_tables import Fault

from .conftest import Run
from .rig import turns
from .terms import Term


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
