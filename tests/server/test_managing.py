"""What operators do to the node itself: quiesce, drain, hand over, and its listeners."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from broker_core.server import supervisor
from broker_core.server.amqp_peer import AmqpPeer
from broker_core.server.stomp_peer import StompPeer

from .conftest import Run
from .rig import Broker, Client, turns
from .terms import Term
from .test_listening import free_port


async def asked(term: Term, verb: str, epoch: int = 1, **arguments: Any) -> dict[str, Any]:
    """What the node answers, which is done."""
    done, result = await answered(term, verb, epoch, **arguments)
    assert done, result
    return result


async def answered(term: Term, verb: str, epoch: int = 1, **arguments: Any) -> tuple[bool, dict[str, Any]]:
    request = term.database.request(verb, "", {"epoch": epoch, **arguments})
    await asyncio.sleep(3 * supervisor.CONTROL_SECONDS)
    answer = term.database.answer(request)
    assert answer is not None
    return answer


def refused(client: Client) -> str:
    (command, headers, _body) = client.take()[-1]
    assert command == "ERROR"
    return headers["message"]


def test_a_quiesced_node_refuses_who_comes_and_serves_who_is_there(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        term = await Term(monkeypatch).start()
        client = await term.client("q")
        assert (await asked(term, "quiesce"))["state"] == "quiesced"
        late = Client(term, "127.0.0.1", reads=True)
        await turns()
        assert "quiesced" in refused(late)
        client.send(b"m", "1", "q")
        await turns()
        assert sorted(client.commands()) == ["MESSAGE", "RECEIPT"]
        await asyncio.sleep(supervisor.STATUS_SECONDS)
        assert term.operators.about["state"] == "quiesced"
        assert (await asked(term, "unquiesce"))["state"] == "serving"
        await term.client("q")
        await term.end()

    run(story())


def test_segments_are_compacted_for_an_operator_who_is_told_how_far_that_is(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        term = await Term(monkeypatch, segment_rows_max=4).start()
        client = await term.client()
        for number in range(20):
            client.send(b"m" * 100, str(number), "q")
            await turns()
        client.say("SUBSCRIBE", ("id", "0"), ("destination", "/queue/q"), ("ack", "client-individual"))
        await turns()
        for command, headers, _ in client.take():
            if command == "MESSAGE" and int(headers["message-id"].rpartition("-")[2]) % 4 == 1:
                client.say("ACK", ("id", headers["ack"]))
        await turns()
        request = term.database.request("compact", "", {"percent": 80})
        await asyncio.sleep(20 * supervisor.STATUS_SECONDS)
        answer = term.database.answer(request)
        assert answer is not None
        assert answer[0]
        told = term.operators.about["compaction"]
        assert told | {"request": request, "percent": 80, "segments": answer[1]["segments"], "left": 0, "gone": 0} == told
        assert told["compacted"] == told["segments"] > 0
        assert told["ended"] > told["since"]
        assert told["rows"] == 3 * told["compacted"]
        assert told["octets_before"] > told["octets_after"] > 0
        await term.end()

    run(story())


def test_a_drain_waits_for_who_holds_something_and_gives_out_nothing_more(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        term = await Term(monkeypatch).start()
        idle, producer, consumer = await term.client(), await term.client(), await term.client()
        consumer.say("SUBSCRIBE", ("id", "0"), ("destination", "/queue/q"), ("ack", "client-individual"))
        producer.send(b"held", "1", "q")
        await turns()
        (_, message, _) = consumer.take()[0]
        assert (await asked(term, "drain", seconds=600))["drain"]["connections"] == 3
        assert "drained" in refused(idle)
        assert "drained" in refused(producer)
        assert not consumer.wire.gone
        await asyncio.sleep(supervisor.STATUS_SECONDS)
        assert term.operators.about["drain"] | {"connections": 1, "unsettled": 1, "ended": None} == term.operators.about["drain"]
        assert term.operators.about["state"] == "draining"
        consumer.say("SEND", ("destination", "/queue/q"), body=b"not for now")
        await turns()
        assert consumer.take() == []
        consumer.say("ACK", ("id", message["ack"]), ("receipt", "2"))
        await asyncio.sleep(3)
        assert [(command, headers.get("receipt-id")) for command, headers, _ in consumer.take()] == [("RECEIPT", "2"), ("ERROR", None)]
        assert (term.operators.about["state"], term.operators.about["drain"]["cut_off"]) == ("drained", 0)
        await asked(term, "unquiesce")
        again = await term.client("q")
        await turns()
        assert [body for _, _, body in again.take()] == [b"not for now"]
        await term.end()

    run(story())


def test_whoever_is_left_at_the_end_of_a_drain_is_cut_off_and_what_he_held_comes_back(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        term = await Term(monkeypatch).start()
        holder, worker = await term.client(), await term.client()
        holder.say("SUBSCRIBE", ("id", "0"), ("destination", "/queue/q"), ("ack", "client"))
        worker.say("BEGIN", ("transaction", "t"))
        holder.say("SEND", ("destination", "/queue/q"), body=b"m")
        await turns()
        await asked(term, "drain", seconds=5)
        assert not holder.wire.gone
        assert not worker.wire.gone
        await asyncio.sleep(8)
        assert holder.wire.gone
        assert worker.wire.gone
        assert (term.operators.about["state"], term.operators.about["drain"]["cut_off"]) == ("drained", 2)
        await asked(term, "unquiesce")
        again = await term.client("q")
        await turns()
        assert [body for _, _, body in again.take()] == [b"m"]
        await term.end()

    run(story())


def test_who_is_being_drained_is_served_again_when_the_operator_changes_his_mind(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        term = await Term(monkeypatch).start()
        consumer = await term.client()
        consumer.say("SUBSCRIBE", ("id", "0"), ("destination", "/queue/q"), ("ack", "client"))
        for body in (b"1", b"2"):
            consumer.say("SEND", ("destination", "/queue/q"), body=body)
            await turns()
            if body == b"1":
                await asked(term, "drain", seconds=600)
        assert [body for _, _, body in consumer.take()] == [b"1"]
        await asked(term, "unquiesce")
        await turns()
        assert [body for _, _, body in consumer.take()] == [b"2"]
        await term.end()

    run(story())


def test_a_node_hands_over_to_one_that_stands_by_when_all_is_answered(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        term = await Term(monkeypatch).start()
        client = await term.client()
        done, why = await answered(term, "take_over", node="nobody")
        assert not done
        assert "nobody does not stand by" in why["detail"]
        client.send(b"m", "1")
        assert (await asked(term, "take_over", node="other"))["node"] == "test"
        await term.running
        assert [(command, headers.get("receipt-id") or headers["message"]) for command, headers, _ in client.take()] == [
            ("RECEIPT", "1"),
            ("ERROR", "another node takes over; connect again"),
        ]
        assert term.lease.successor == "other"
        assert not term.stop.is_set(), "it stands by from now on"
        await term.end()

    run(story())


def test_what_was_asked_of_one_term_is_not_done_to_the_next(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        term = await Term(monkeypatch).start()
        for verb, arguments in (("quiesce", {}), ("drain", {"seconds": 1}), ("take_over", {"node": "other"})):
            done, why = await answered(term, verb, epoch=2, **arguments)
            assert not done
            assert why["refusal"] == "ANOTHER_TERM"
        assert term.term._managing.state == "serving"
        await term.end()

    run(story())


def test_a_listener_that_is_paused_takes_nobody_until_it_is_resumed() -> None:
    """On a real loop."""

    async def story() -> None:
        port = free_port()
        broker = await Broker(stomp_port=port, amqp_port=free_port()).start()
        await broker.node.listen(StompPeer, AmqpPeer, {"stomp", "unheard of"})
        assert broker.node.listeners["stomp"] == {"up": False, "paused": True, "host": "127.0.0.1", "port": port}
        with pytest.raises(OSError, match="Connect call failed"):
            await asyncio.open_connection("127.0.0.1", port)
        await broker.node.resume_listener("stomp")
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        broker.node.pause_listener("stomp")
        writer.write(b"CONNECT\naccept-version:1.2\nhost:/\nlogin:guest\n\n\0")
        assert (await reader.readuntil(b"\0")).startswith(b"CONNECTED"), "who has come stays"
        with pytest.raises(OSError, match="Connect call failed"):
            await asyncio.open_connection("127.0.0.1", port)
        writer.close()
        await broker.node.close("the end")
        await broker.end()

    asyncio.run(story())


def test_an_operator_pauses_listeners_and_they_stay_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        term = await Term(monkeypatch).start()
        done, why = await answered(term, "pause_listener", listener="telnet")
        assert not done
        assert why["refusal"] == "NO_SUCH_LISTENER"
        node = term.term._node

        async def opened() -> Any:
            raise OSError("the port is taken, by choice")

        node._openers["amqp"], node._ports["amqp"] = opened, 1
        assert (await asked(term, "pause_listener", listener="amqp"))["listeners"]["amqp"]["paused"]
        assert term.operators.paused == {"amqp"}
        done, why = await answered(term, "resume_listener", listener="amqp")
        assert not done
        assert "by choice" in why["detail"]
        assert term.operators.paused == {"amqp"}, "it stays paused"
        await term.end()

    run(story())
