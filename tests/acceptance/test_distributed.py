"""Distributed transactions by real processes: a branch that is prepared outlives the kill of the node, and of the client that prepared it (R13, checklist
items 64 and 66)."""

from __future__ import annotations

import json

import pytest

from broker_core import control
from tests.acceptance.reading import read_all
from tests.acceptance.test_command_line import typed
from tests.support.clients import Connection, ErrorReceived, reconnect
from tests.support.service import Service, await_true

UP_SECONDS_MAX = 60
LARGE = bytes(range(256)) * 2_000
LEVELS = ("express", "reliable-np", "reliable", "assured")


def prepare(connection: Connection, xid: str, taken: str, sent: str) -> None:
    """Of three messages the first is acknowledged in the branch; it sends one of every level, and a large one."""
    for number in range(3):
        connection.confirmed("SEND", {"destination": taken, "persistent": "true"}, b"%d" % number)
    connection.subscribe(taken, prefetch=1)
    first = connection.expect("MESSAGE")
    connection.command("BEGIN", {"xid": xid, "transaction": "work"})
    connection.command("ACK", {"id": first.headers["ack"], "transaction": "work"})
    for level in LEVELS:
        connection.command("SEND", {"destination": sent, "reliability": level, "transaction": "work"}, level.encode())
    connection.command("SEND", {"destination": sent, "persistent": "true", "transaction": "work"}, LARGE)
    connection.command("COMMIT", {"xid": xid, "phase": "prepare", "receipt": "prepared"})
    while (frame := connection.receive(15)) is not None and frame.command == "MESSAGE":
        pass
    assert frame is not None and frame.headers["receipt-id"] == "prepared"


def kill_node(service: Service) -> None:
    pid = service.kill("node")
    await_true(lambda: service.pid("node") not in (None, pid), UP_SECONDS_MAX, "no other node came")


def rows(service: Service, xid: str) -> list[tuple[str, int, int, int]]:
    with service.database() as session:
        return session.execute("SELECT account, state, sends, acknowledgements FROM surety.prepared WHERE xid = %s", (xid,)).fetchall()


def recovered(connection: Connection) -> list[str]:
    connection.command("SUBSCRIBE", {"id": "xa", "destination": "/temp-queue/xa", "ack": "auto"})
    connection.command("SEND", {"destination": "/queue/mq.sys.xa", "operation": "recover", "reply-to": "/temp-queue/xa"})
    lines = connection.expect("MESSAGE").body.decode().splitlines()
    connection.confirmed("UNSUBSCRIBE", {"id": "xa"})
    return lines


@pytest.mark.parametrize("phase", ["commit", "abort"])
def test_what_is_prepared_outlives_the_kill_of_its_node(mortal: Service, phase: str) -> None:
    xid, taken, sent = f"1.{phase.encode().hex()}.00", f"/queue/xa.{phase}.taken", f"/queue/xa.{phase}.sent"
    connection = Connection(mortal.stomp_port)
    prepare(connection, xid, taken, sent)
    kill_node(mortal)
    connection.close()
    assert rows(mortal, xid) == [("guest", 4, 5, 1)]
    with reconnect(mortal.stomp_port, UP_SECONDS_MAX) as manager:
        assert f"{xid} prepared" in recovered(manager)
        assert [frame.body for frame in read_all(manager, taken)] == [b"1", b"2"], "what it acknowledged is reserved"
        assert [frame.body for frame in read_all(manager, sent)] == []
        headers = {"xid": xid, "phase": "two"} if phase == "commit" else {"xid": xid}
        manager.confirmed(phase.upper(), headers)
    kill_node(mortal)
    with reconnect(mortal.stomp_port, UP_SECONDS_MAX) as reader:
        stored = [b"reliable", b"assured", LARGE] if phase == "commit" else []
        assert [frame.body for frame in read_all(reader, sent)] == stored, "the others are as volatile as they were sent"
        back = [(frame.body, frame.headers.get("redelivered")) for frame in read_all(reader, taken)]
        assert back[:1] == ([] if phase == "commit" else [(b"0", "true")])
        assert f"{xid} prepared" not in recovered(reader)
    assert rows(mortal, xid) == []


def test_a_decision_by_hand_that_was_not_answered_yet_outlives_the_kill_of_the_node(mortal: Service) -> None:
    """The request is committed and the node is killed at once: this one or the next answers it, and the branch is ended once."""
    xid, taken, sent = "1.6b696c6c.00", "/queue/xa.kill.taken", "/queue/xa.kill.sent"
    with Connection(mortal.stomp_port) as connection:
        prepare(connection, xid, taken, sent)
    with mortal.database() as session, session.cursor() as cursor:
        (branch,) = session.execute("SELECT branch FROM surety.prepared WHERE xid = %s", (xid,)).fetchone() or (0,)
        listed = json.loads(typed(mortal, "list", "txnitem", str(branch), "--json").stdout)["items"]
        assert sorted((each["sends"], "/" + each["address"]) for each in listed) == [(False, taken), *[(True, sent)] * 5]
        request = control.request(cursor, "commit", arguments={"branch": branch}, requested_by="olga", deadline_ms=control.DEADLINE_MS_MAX)
        session.commit()
        kill_node(mortal)
        await_true(lambda: control.answer(cursor, request) is not None, UP_SECONDS_MAX, "nobody answers")
        answer = control.answer(cursor, request)
        assert answer is not None and answer.done, answer
    assert rows(mortal, xid) == [("guest", 5, 5, 1)]
    kill_node(mortal)
    with reconnect(mortal.stomp_port, UP_SECONDS_MAX) as reader:
        assert [frame.body for frame in read_all(reader, sent)] == [b"reliable", b"assured", LARGE], "each once, and no volatile one after a kill"
        assert [frame.body for frame in read_all(reader, taken)] == [b"1", b"2"]
        assert f"{xid} heuristically-committed" in recovered(reader)
        reader.confirmed("SEND", {"destination": "/queue/mq.sys.xa", "operation": "forget", "xid": xid})


def test_an_administrator_ends_it_by_hand_and_the_manager_that_comes_back_is_told(service: Service) -> None:
    xid, taken, sent = "1.68616e64.00", "/queue/xa.hand.taken", "/queue/xa.hand.sent"
    with Connection(service.stomp_port) as connection:
        prepare(connection, xid, taken, sent)
    with service.database() as session, session.cursor() as cursor:
        (branch,) = session.execute("SELECT branch FROM surety.prepared WHERE xid = %s", (xid,)).fetchone() or (0,)
        request = control.request(cursor, "commit", arguments={"branch": branch}, requested_by="olga")
        session.commit()
        await_true(lambda: control.answer(cursor, request) is not None, UP_SECONDS_MAX, "nobody answers")
        answer = control.answer(cursor, request)
        assert answer is not None and answer.done, answer
    assert rows(service, xid) == [("guest", 5, 5, 1)]
    with Connection(service.stomp_port) as connection:
        bodies = sorted(frame.body for frame in read_all(connection, sent))
        assert bodies == sorted([*(level.encode() for level in LEVELS), LARGE])
        assert [frame.body for frame in read_all(connection, taken)] == [b"1", b"2"]
        assert f"{xid} heuristically-committed" in recovered(connection)
        with pytest.raises(ErrorReceived, match="XA_HEURCOM"):
            connection.confirmed("COMMIT", {"xid": xid, "phase": "two"})
    with Connection(service.stomp_port) as connection:
        connection.confirmed("SEND", {"destination": "/queue/mq.sys.xa", "operation": "forget", "xid": xid})
        assert rows(service, xid) == []
        with pytest.raises(ErrorReceived, match="XAER_NOTA"):
            connection.confirmed("COMMIT", {"xid": xid, "phase": "two"})
