"""surety.send: what it refuses, what it writes, and who may call it."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg import errors, sql
from psycopg.types.json import Jsonb

from broker_core.engine.dead import ADDED
from broker_core.engine.message import LEVEL_NAMES
from broker_core.stomp.escaping import read_canonical
from broker_core.stomp.mapping import BROKERS_OWN, DELAYS, OTHER_EXPIRATION, OTHER_SCHEDULES
from broker_core.stomp.sections import DUPLICATE_IDS

INVALID, TOO_MUCH = errors.InvalidParameterValue, errors.ProgramLimitExceeded
MIB = 1 << 20


@pytest.fixture
def session(dsn: str) -> Any:
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


def send(session: Any, *arguments: Any, **named: Any) -> str:
    marks = ["%s"] * len(arguments) + [f"{name} => %s" for name in named]
    return session.execute(f"SELECT surety.send({', '.join(marks)})".encode(), [*arguments, *named.values()]).fetchone()[0]


def inbox(session: Any, columns: str = "*") -> list[Any]:
    return session.execute(f"SELECT {columns} FROM surety.inbox ORDER BY entry".encode()).fetchall()


# -- what it refuses ----------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "address",
    [None, "", "/", "/queue", "/queue/", "/qeue/a", "/topic/a.*", "/topic/>", "/queue/ a", "/queue/a\n", "/queue/a\x7f", "/queue//a", "x" * 256, "ü" * 128],
)  # fmt: skip
def test_an_address_that_no_destination_can_have(session: Any, address: str | None) -> None:
    with pytest.raises(INVALID, match="is not valid"):
        send(session, address, "m")
    assert inbox(session) == []


@pytest.mark.parametrize("address", ["/queue/mq.sys.dmq", "mq.anything", "/topic/mq.sys.events"])
def test_destinations_of_the_broker(session: Any, address: str) -> None:
    with pytest.raises(INVALID, match="belongs to the broker"):
        send(session, address, "m")


@pytest.mark.parametrize(
    ("named", "sentence"),
    [
        ({"priority": 10}, "priority is 10"),
        ({"priority": -1}, "priority is -1"),
        ({"reliability": "certain"}, "reliability is 'certain'"),
        ({"time_to_live": "0 s"}, "time_to_live"),
        ({"time_to_live": "-1 s"}, "time_to_live"),
        ({"time_to_live": "infinity"}, "time_to_live"),
        ({"delay": "-1 ms"}, "delay"),
        ({"delay": "3651 days"}, "delay"),
        ({"duplicate_id": ""}, "duplicate_id"),
        ({"duplicate_id": "x" * 256}, "duplicate_id"),
        ({"group_id": ""}, "group_id"),
        ({"group_id": "x" * 256}, "group_id"),
        ({"group_sequence": 1}, "group_id is not"),
        ({"headers": Jsonb([1])}, "JSON array"),
        ({"headers": Jsonb({"": "a"})}, "has no name"),
        ({"headers": Jsonb({"a": None})}, "JSON null"),
        ({"headers": Jsonb({"a": {}})}, "JSON object"),
    ],
)
def test_arguments_that_mean_nothing(session: Any, named: dict[str, Any], sentence: str) -> None:
    with pytest.raises(INVALID, match=sentence):
        send(session, "/queue/a", "m", **named)
    assert inbox(session) == []


def test_headers_that_are_the_brokers_to_state_or_have_an_argument_of_their_own(session: Any) -> None:
    arguments = {"destination", "priority", "reliability", "persistent", "expires", "correlation-id", "reply-to", "type", "JMSXGroupID", "JMSXGroupSeq"}
    for name in sorted(BROKERS_OWN | ADDED | arguments | {*DUPLICATE_IDS, *DELAYS, *OTHER_SCHEDULES, OTHER_EXPIRATION}):
        with pytest.raises(INVALID, match=f"header '{name}' is the broker's"):
            send(session, "/queue/a", "m", Jsonb({"mine": 1, name: "x"}))


@pytest.mark.parametrize("headers", [{"a": "x" * 16_384}, {str(n): "x" * 10_000 for n in range(7)}, {str(n): 1 for n in range(240)}])
def test_headers_that_are_too_long(session: Any, headers: dict[str, Any]) -> None:
    with pytest.raises(TOO_MUCH, match="headers are too long"):
        send(session, "/queue/a", "m", Jsonb(headers))


def test_a_body_that_is_too_large(session: Any) -> None:
    with pytest.raises(TOO_MUCH, match="104857601 octets is larger"):
        session.execute("SELECT surety.send('/queue/a', convert_to(repeat('x', 104857601), 'UTF8'))")
    assert inbox(session) == []
    assert session.execute("SELECT count(*) FROM surety.body").fetchone() == (0,)


# -- what it writes -----------------------------------------------------------------------------------------------------------------------
def test_a_text_says_that_it_is_one_and_octets_do_not(session: Any) -> None:
    send(session, "/queue/a", "Grüße")
    send(session, "a", b"\0\1")
    send(session, "/queue/a", "{}", Jsonb({"content-type": "application/json"}))
    send(session, address="/queue/a")
    kinds = [(read_canonical(headers).get("content-type"), body) for headers, body in inbox(session, "headers, body")]
    plain = "text/plain;charset=utf-8"
    assert kinds == [(plain, "Grüße".encode()), (None, b"\0\1"), ("application/json", b"{}"), (None, b"")]
    assert {address for (address,) in inbox(session, "address")} == {"queue/a"}


def test_everything_that_can_be_said(session: Any) -> None:
    headers = {"a:b": "c\r\nd\\e:f", "n": 1.5, "yes": True}
    named = {"priority": 9, "reliability": "reliable", "time_to_live": "1 hour", "delay": "1.5 s", "correlation_id": "c", "reply_to": "/queue/r"}
    identifier = send(session, "/topic/a:b", "m", Jsonb(headers), **named, type="t", group_id="g", group_sequence=-1, duplicate_id="d")
    columns = "address, priority, reliability, delay, expiration - sent_at, duplicate_id, message_id, size - octet_length(headers), sent_by = session_user"
    assert inbox(session, columns) == [("topic/a:b", 9, 3, 1500, 3_600_000, "d", identifier, 1, True)]
    ((section, expires),) = inbox(session, "headers, expiration")
    assert read_canonical(section) == {
        "destination": "/topic/a:b", "persistent": "true", "reliability": "reliable", "priority": "9", "expires": str(expires), "correlation-id": "c",
        "reply-to": "/queue/r", "type": "t", "JMSXGroupID": "g", "JMSXGroupSeq": "-1", "duplicate-id": "d", "content-type": "text/plain;charset=utf-8",
        "a:b": "c\r\nd\\e:f", "n": "1.5", "yes": "true",
    }  # fmt: skip


@pytest.mark.parametrize("level", LEVEL_NAMES)
def test_the_level_is_said_as_a_client_would_say_it(session: Any, level: str) -> None:
    send(session, "/queue/a", "m", reliability=level)
    ((number, section),) = inbox(session, "reliability, headers")
    headers = read_canonical(section)
    assert LEVEL_NAMES[number] == level
    assert headers.get("persistent") == ("true" if number > 2 else None)
    assert headers.get("reliability", "assured" if "persistent" in headers else "express") == level


def test_null_is_as_good_as_nothing(session: Any) -> None:
    null = dict.fromkeys(("headers", "priority", "reliability", "time_to_live", "delay", "correlation_id", "reply_to", "type", "group_id", "duplicate_id"))
    send(session, "/queue/a", "m")
    send(session, "/queue/a", "m", **null)
    first, second = inbox(session, "priority, reliability, delay, expiration, duplicate_id, headers, body")
    assert first == second


def test_identifiers_are_unique_and_the_order_is_that_of_the_calls(session: Any) -> None:
    identifiers = [row[0] for row in session.execute("SELECT surety.send('/queue/a', i::text) FROM generate_series(1, 500) AS i")]
    assert len(set(identifiers)) == 500
    assert [(message_id, int(body)) for message_id, body in inbox(session, "message_id, body")] == [(i, n) for n, i in enumerate(identifiers, 1)]


def test_nothing_stays_of_a_transaction_that_is_rolled_back(session: Any) -> None:
    with session.transaction(force_rollback=True):
        send(session, "/queue/a", "m")
        send(session, "/queue/a", b"x" * MIB)
    with session.transaction():
        with session.transaction(force_rollback=True):
            send(session, "/queue/a", "a savepoint's")
        send(session, "/queue/a", "kept")
    assert inbox(session, "body") == [(b"kept",)]
    assert session.execute("SELECT (SELECT count(*) FROM surety.body), (SELECT count(*) FROM surety.body_reference)").fetchone() == (0, 0)


@pytest.mark.parametrize("size", [262_144, 262_145, MIB, MIB + 1, 3 * MIB - 1])
def test_a_large_body_goes_in_chunks(session: Any, size: int) -> None:
    octets = bytes(range(251)) * (size // 251 + 1)
    send(session, "/queue/a", octets[:size])
    ((body, stored),) = inbox(session, "body, stored_body")
    chunks = [row[0] for row in session.execute("SELECT octets FROM surety.body_chunk ORDER BY chunk")]
    assert (body is None, stored is not None, bool(chunks)) == ((size > 262_144,) * 3)
    assert (b"".join(chunks) if chunks else body) == octets[:size]
    assert all(len(chunk) == MIB for chunk in chunks[:-1])


# -- who may ------------------------------------------------------------------------------------------------------------------------------
@pytest.fixture
def stranger(session: Any, dsn: str) -> Any:
    """A role without any right, and its session."""
    name = sql.Identifier(f"stranger_{session.info.backend_pid}")
    session.execute(sql.SQL("CREATE ROLE {} LOGIN").format(name))
    with psycopg.connect(dsn, autocommit=True, user=name.as_string(session).strip('"')) as connection:
        yield connection
    session.execute(sql.SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(name))


def test_nobody_sends_who_was_not_allowed_to(session: Any, stranger: Any) -> None:
    role = sql.Identifier(stranger.info.user)
    with pytest.raises(errors.InsufficientPrivilege):
        send(stranger, "/queue/a", "m")
    session.execute(sql.SQL("GRANT USAGE ON SCHEMA surety TO {}").format(role))
    for body in ("m", b"m"):
        with pytest.raises(errors.InsufficientPrivilege):
            send(stranger, "/queue/a", body)
    assert inbox(session) == []


def test_who_may_execute_the_functions_sends_and_reaches_no_table(session: Any, stranger: Any) -> None:
    role = sql.Identifier(stranger.info.user)
    session.execute(sql.SQL("GRANT USAGE ON SCHEMA surety TO {0}; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA surety TO {0}").format(role))
    send(stranger, "/queue/a", "m")
    send(stranger, "/queue/a", b"x" * MIB)
    assert inbox(session, "sent_by") == [(stranger.info.user,)] * 2
    for statement in ("SELECT * FROM surety.inbox", "DELETE FROM surety.inbox", "INSERT INTO surety.body_reference VALUES (0, 0, 0)"):
        with pytest.raises(errors.InsufficientPrivilege):
            stranger.execute(statement.encode())


def test_a_callers_own_functions_and_tables_are_not_taken_for_the_systems(session: Any, stranger: Any) -> None:
    role = sql.Identifier(stranger.info.user)
    session.execute(sql.SQL("GRANT USAGE ON SCHEMA surety TO {0}; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA surety TO {0}").format(role))
    session.execute(sql.SQL("CREATE SCHEMA evil AUTHORIZATION {}").format(role))
    for function in ("octet_length(text) RETURNS int", "convert_to(text, name) RETURNS bytea", "strpos(text, text) RETURNS int"):
        stranger.execute(f"CREATE FUNCTION evil.{function} LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'called'; END $$".encode())
    stranger.execute("CREATE TEMPORARY TABLE inbox (entry int)")
    stranger.execute("SET search_path = evil, pg_temp, pg_catalog, surety")
    send(stranger, "/queue/a", "m")
    assert inbox(session, "body") == [(b"m",)]
