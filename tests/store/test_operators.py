"""What the node tells operators and asks of them."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import psycopg
import pytest

from broker_core.engine.effects import DestinationStatistics
from broker_core.store import CommitLost, SpaceExhausted
from broker_core.store.operators import OperatorTables

FULL = """
CREATE FUNCTION surety.no_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = 'disk_full'; END $$;
CREATE TRIGGER no_room BEFORE INSERT OR UPDATE OR DELETE ON surety.node_status EXECUTE FUNCTION surety.no_room();
"""


def tell(dsn: str, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(statement.encode(), values or None)
        return cursor.fetchall() if cursor.description else []


def sessions(dsn: str) -> int:
    (count,), = tell(dsn, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
    return count


def cut(dsn: str) -> None:
    """End every session of the database, and wait until they are gone."""
    tell(dsn, "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")


async def write(operators: OperatorTables) -> None:
    await operators.write_status("node", 1, "active", 0.0, {}, {}, {})


def test_a_database_that_is_gone_is_a_lost_commit() -> None:
    with pytest.raises(CommitLost):
        asyncio.run(write(OperatorTables("postgresql://surety@/surety?host=/nonexistent")))


def test_a_full_disk_is_no_lost_commit(dsn: str) -> None:
    async def story() -> None:
        operators = OperatorTables(dsn)
        await write(operators)
        tell(dsn, FULL)
        with pytest.raises(SpaceExhausted):
            await write(operators)
        with pytest.raises(SpaceExhausted):
            await operators.retire("node")
        tell(dsn, "DROP TRIGGER no_room ON surety.node_status")
        await write(operators)
        await operators.close()

    asyncio.run(story())


def test_a_lost_connection_is_replaced_by_one_and_not_by_one_for_each_who_noticed(dsn: str) -> None:
    async def story() -> None:
        operators = OperatorTables(dsn)
        await asyncio.gather(*(operators.account("guest") for _ in range(5)))
        assert sessions(dsn) == 1
        cut(dsn)
        await asyncio.gather(write(operators), *(operators.account("guest") for _ in range(4)))
        assert sessions(dsn) == 1
        await operators.close()

    asyncio.run(story())


def test_an_account_that_does_not_exist_or_cannot_is_none(dsn: str) -> None:
    async def story() -> None:
        operators = OperatorTables(dsn)
        assert await operators.account("nobody'; --") is None
        assert await operators.account("a\0b") is None
        await operators.close()

    asyncio.run(story())


def test_administered_objects_are_told_by_name(dsn: str) -> None:
    async def story() -> None:
        operators = OperatorTables(dsn)
        tell(dsn, """INSERT INTO surety.administered (name, kind, attributes) VALUES ('the "shop"', 'factory', '{"override_priority": 7}')""")
        assert await operators.administered("nobody'; --") is None
        assert await operators.administered("a\0b") is None
        found = {"name": 'the "shop"', "kind": "factory", "attributes": {"override_priority": 7}, "read_only": False}
        assert await operators.administered('the "shop"') == found
        await operators.close()

    asyncio.run(story())


def test_links_are_told_with_their_passcodes_in_order_of_names(dsn: str) -> None:
    async def work() -> None:
        operators = OperatorTables(dsn)
        tell(dsn, """INSERT INTO surety.foreign_link (name, attributes, passcode) VALUES ('b', '{"host": "x"}', 's'), ('a', '{}', DEFAULT)""")
        assert await operators.foreign_links() == [
            {"name": "a", "attributes": {}, "passcode": ""}, {"name": "b", "attributes": {"host": "x"}, "passcode": "s"},
        ]  # fmt: skip
        await operators.close()

    asyncio.run(work())


def test_a_node_that_retires_is_listed_no_longer(dsn: str) -> None:
    async def story() -> None:
        operators = OperatorTables(dsn)
        await write(operators)
        await write(operators)
        assert tell(dsn, "SELECT node, role FROM surety.node_status") == [("node", "active")]
        await operators.retire("node")
        assert tell(dsn, "SELECT node FROM surety.node_status") == []
        await operators.close()

    asyncio.run(story())


def test_changes_of_accounts_are_told_and_a_lost_connection_is_an_error(dsn: str) -> None:
    async def story() -> None:
        async with aclosing(OperatorTables(dsn).account_changes()) as changes:
            assert await anext(changes) is None, "from here on nothing is missed"
            tell(dsn, "BEGIN; NOTIFY surety_account, 'shop'; NOTIFY surety_account, 'bank''s'; COMMIT")
            assert [await anext(changes), await anext(changes)] == ["shop", "bank's"]
            cut(dsn)
            with pytest.raises(psycopg.OperationalError):
                await asyncio.wait_for(anext(changes), 20)

    asyncio.run(story())


def test_a_request_of_an_operator_is_heard(dsn: str) -> None:
    async def story() -> None:
        heard = asyncio.Event()
        async with aclosing(OperatorTables(dsn).account_changes(heard.set)) as changes:
            await anext(changes)
            tell(dsn, "BEGIN; NOTIFY surety_control, '7'; NOTIFY surety_account, 'shop'; COMMIT")
            assert await anext(changes) == "shop"
            assert heard.is_set()

    asyncio.run(story())


def test_whoever_stops_listening_leaves_no_connection(dsn: str) -> None:
    async def story() -> None:
        changes = OperatorTables(dsn).account_changes()
        await anext(changes)
        waiting = asyncio.ensure_future(anext(changes))
        await asyncio.sleep(0.1)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await changes.aclose()

    asyncio.run(story())
    while sessions(dsn):  # the server takes a moment to notice
        tell(dsn, "SELECT pg_sleep(0.01)")


def statistics(number: int) -> DestinationStatistics:
    return DestinationStatistics(number, f"queue/{number}", 0, True, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, None)


def listed(dsn: str) -> list[int]:
    return [number for (number,) in tell(dsn, "SELECT destination FROM surety.destination_statistics ORDER BY destination")]


def test_temporary_destinations_are_forgotten_when_they_end_and_those_of_earlier_terms_at_the_start_of_the_next(dsn: str) -> None:
    async def story() -> None:
        operators = OperatorTables(dsn)
        columns = "shard, destination, address, created_at, automatic, state, settings"
        tell(dsn, f"INSERT INTO surety.destination ({columns}) VALUES (0, 1, 'queue/1', 0, true, 0, '{{}}')")
        await operators.write_statistics([statistics(number) for number in (-3, -2, -1, 1)])
        await operators.forget_ended([-3])
        assert listed(dsn) == [-2, -1, 1]
        tell(dsn, "UPDATE surety.lease SET acquired_at = clock_timestamp()")
        await operators.write_statistics([statistics(-1)])
        await operators.forget_destroyed()
        assert listed(dsn) == [-1, 1]
        await operators.close()

    asyncio.run(story())


def test_what_clients_are_refused_and_the_life_of_a_node_are_in_the_audit(dsn: str) -> None:
    async def story() -> None:
        operators = OperatorTables(dsn)
        await operators.note_node("host:1", "node start", 7)
        await operators.note_refused_tries([("a stranger", "10.0.0.1", "client login", 'a"b\\c', "wrong"), ("clients", "", "client access", "", "3 more")])
        await operators.close()

    asyncio.run(story())
    assert tell(dsn, "SELECT who, origin, what, address, result FROM surety.audit ORDER BY entry DESC LIMIT 3") == [
        ("clients", "", "client access", "", {"refused": "3 more"}),
        ("a stranger", "10.0.0.1", "client login", 'a"b\\c', {"refused": "wrong"}),
        ("node", "", "node start", "host:1", {"epoch": 7}),
    ]
