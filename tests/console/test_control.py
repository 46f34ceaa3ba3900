"""The administrator's door: what it refuses, what it files."""

import json

import psycopg
import pytest

from broker_core import control
from tests.console.engine_node import EngineNode


@pytest.fixture
def cursor(database):
    with psycopg.connect(database) as connection:
        yield connection.cursor()


@pytest.mark.parametrize(
    ("verb", "address", "arguments", "says"),
    [
        ("explode", "queue/a", {}, "not a verb"),
        ("pause", "", {"direction": "ALL"}, "name is not valid"),
        ("pause", "queue/", {"direction": "ALL"}, "name is not valid"),
        ("pause", "queue/a*b", {"direction": "ALL"}, "name is not valid"),
        ("pause", "queue/a\ud800", {"direction": "ALL"}, "name is not valid"),
        ("pause", "queue/" + "x" * 256, {"direction": "ALL"}, "name is not valid"),
        ("pause", "queue/a", {}, "direction"),
        ("create_alias", "queue/a", {}, "name the target"),
        ("create_alias", "queue/a", {"target": "a"}, "target must be the address"),
        ("update_alias", "queue/a", {}, "names what is to change"),
        ("delete_alias", "queue/a", {"target": "queue/b"}, "takes no arguments"),
        ("pause", "queue/a", {"direction": "SIDEWAYS"}, "PRODUCERS"),
        ("pause", "queue/mq.sys.dmq", {"direction": "ALL"}, "reserved"),
        ("create", "queue/mq.mine", {}, "reserved"),
        ("create", "queue/a", {"colour": "red"}, "not a setting"),
        ("create", "queue/a", {"redelivery_max": 10**9}, "between"),
        ("create", "queue/a", {"use_dead": 1}, "true or false"),
        ("create", "queue/a", {"duplicate_window_ms": 604_800_001}, "between 0 and 604800000"),
        ("update", "queue/a", {"duplicate_window_ms": True}, "must be a number"),
        ("create", "queue/a", {"limit_behavior": "DROP"}, "REJECT_NEWEST"),
        ("create", "queue/a", {"max_messages": 0}, "at least 1"),
        ("update", "queue/a", {}, "at least one setting"),
        ("purge", "queue/a", {}, "depth you saw"),
        ("purge", "queue/a", {"depth": -1}, "depth you saw"),
        ("purge", "queue/a", {"depth": True}, "depth you saw"),
        ("purge", "queue/a", {"depth": "all"}, "depth you saw"),
        ("destroy", "queue/mq.sys.dmq", {"depth": 1}, "reserved"),
        ("commit", "", {}, "name the branch"),
        ("rollback", "", {"branch": 0}, "name the branch"),
        ("forget", "", {"branch": True}, "name the branch"),
        ("commit", "queue/a", {"branch": 1}, "whole broker"),
        ("set_policy", "queue/a*", {"max_messages": 1}, "whole levels"),
        ("set_policy", "temp-queue/a", {"max_messages": 1}, "queue/PATTERN"),
        ("set_policy", "queue/a.*", {}, "at least one setting"),
        ("drop_policy", "queue/a.*", {"max_messages": 1}, "takes no arguments"),
        ("expire", "queue/a", {}, "whole broker"),
        ("retain", "", {"days": 1.5}, "whole number"),
    ],
)
def test_a_request_that_can_never_be_applied_is_refused_with_a_sentence(verb, address, arguments, says, cursor):
    with pytest.raises(control.InvalidRequest, match=says):
        control.request(cursor, verb, address, arguments, requested_by="olga")
    assert control.pending(cursor, verb) == []


@pytest.mark.parametrize(("who", "deadline_ms"), [("", 1), ("x" * 256, 1), ("olga\x00", 1), ("olga", 0), ("olga", 3_600_001)])
def test_an_asker_and_a_deadline_are_needed(who, deadline_ms, cursor):
    with pytest.raises(control.InvalidRequest):
        control.request(cursor, "expire", requested_by=who, deadline_ms=deadline_ms)


def test_a_request_carries_who_what_and_a_deadline_by_the_databases_clock(cursor):
    number = control.request(cursor, "purge", "queue/Größe", {"depth": 12}, requested_by="olga", deadline_ms=5_000)
    row = cursor.execute(
        """SELECT shard, verb, address, arguments, requested_by, deadline - (extract(epoch FROM clock_timestamp()) * 1000)::int8
             FROM surety.control_request WHERE request = %s""",
        [number],
    ).fetchone()
    assert row[:5] == (0, "purge", "queue/Größe", {"depth": 12}, "olga")
    assert 0 < row[5] <= 5_000


def test_a_request_is_pending_until_it_is_answered_or_too_late(cursor):
    first = control.request(cursor, "reap", requested_by="scheduler")
    second = control.request(cursor, "reap", requested_by="scheduler")
    late = control.request(cursor, "reap", requested_by="scheduler")
    cursor.execute("UPDATE surety.control_request SET answered_at = now(), done = true, result = '{\"reaped\": 2}' WHERE request = %s", [first])
    cursor.execute("UPDATE surety.control_request SET deadline = 1 WHERE request = %s", [late])
    assert control.pending(cursor, "reap") == [second]
    assert control.pending(cursor, "expire") == []
    assert control.answer(cursor, first) == control.Answer(True, {"reaped": 2})
    assert control.answer(cursor, second) is None


def test_the_answer_to_a_request_that_was_never_filed_is_an_error(cursor):
    with pytest.raises(control.InvalidRequest, match="no request"):
        control.answer(cursor, 99)


def test_the_node_hears_of_a_request_when_its_transaction_commits(database):
    with psycopg.connect(database, autocommit=True) as node, psycopg.connect(database) as asker:
        node.execute(f"LISTEN {control.CHANNEL}")
        number = control.request(asker.cursor(), "expire", requested_by="olga")
        assert [*node.notifies(timeout=0)] == []
        asker.commit()
        assert [notification.payload for notification in node.notifies(timeout=5, stop_after=1)] == [str(number)]


def test_the_engine_understands_every_operators_verb(database):
    asked = [
        ("create", "queue/a", {"redelivery_max": 3}), ("update", "queue/a", {"use_dead": False}), ("pause", "queue/a", {"direction": "ALL"}),
        ("resume", "queue/a", {"direction": "PRODUCERS"}), ("purge", "queue/a", {"depth": 0}), ("destroy", "queue/a", {"depth": 0}),
        ("expire", "", {}), ("reap", "", {}),
        ("create_alias", "queue/b", {"target": "queue/a"}), ("update_alias", "queue/b", {"maximum_reliability": "express"}), ("delete_alias", "queue/b", {}),
    ]  # fmt: skip
    with psycopg.connect(database) as connection:
        numbers = [control.request(connection.cursor(), verb, address, with_, requested_by="olga") for verb, address, with_ in asked]
    with EngineNode(database), psycopg.connect(database, autocommit=True) as connection:
        connection.execute("NOTIFY surety_control")
        results = [_awaited(connection, number) for number in numbers]
    assert [answer.done for answer in results] == [True] * len(asked), json.dumps([answer.result for answer in results])


def _awaited(connection, number):
    while True:
        found = control.answer(connection.cursor(), number)
        if found:
            return found
        connection.execute("NOTIFY surety_control")
