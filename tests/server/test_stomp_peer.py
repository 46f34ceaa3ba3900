"""A STOMP client's socket: what it may cost the node, and what it gets."""

from __future__ import annotations

import asyncio

import pytest

from broker_core.engine.message import VOLATILE
from broker_core.server import flow, open_batch, socket_peer
from broker_core.store import CommitLost

from .conftest import Run
from .rig import Broker, Client, turns


def test_a_stranger_who_does_not_log_in_is_closed(run: Run) -> None:
    async def story() -> None:
        broker = await Broker(login_seconds=10).start()
        silent, slow = broker.connect(), broker.connect()
        for _ in range(9):
            slow.octets(b"C")
            await asyncio.sleep(1)
        assert not silent.wire.gone
        await asyncio.sleep(2)
        for stranger in (silent, slow):
            assert stranger.commands() == ["ERROR"]
            assert stranger.wire.gone
        assert broker.metrics.connections == 0
        await broker.end()

    run(story())


def test_a_refused_login_is_told_counted_and_closed(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start()
        broker.accounts.refused = {"mallory"}
        client = broker.connect()
        client.say("CONNECT", ("accept-version", "1.2"), ("host", "/"), ("login", "mallory"))
        client.send(b"m", "1")
        await turns()
        assert client.commands() == ["ERROR"]
        assert client.wire.gone
        assert broker.metrics.refused_logins == 1
        assert [row.address for row in broker.node.refused_logins.take(asyncio.get_running_loop().time())] == ["mallory"]
        assert broker.engine.shard.destinations.keys() == {"queue/mq.sys.dmq"}
        await broker.end()

    run(story())


def test_nothing_is_read_while_a_login_is_checked_and_what_came_with_it_follows(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start()
        broker.accounts.open.clear()
        client = broker.connect()
        client.say("CONNECT", ("accept-version", "1.2"), ("host", "/"), ("login", "guest"))
        client.send(b"m", "1")
        await turns()
        assert client.wire.paused
        assert client.take() == []
        broker.accounts.open.set()
        await turns()
        assert client.commands() == ["CONNECTED", "RECEIPT"]
        assert not client.wire.paused
        await broker.end()

    run(story())


def test_a_connection_lost_during_its_login_leaves_nothing_behind(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start()
        broker.accounts.open.clear()
        client = broker.connect()
        client.say("CONNECT", ("accept-version", "1.2"), ("host", "/"), ("login", "guest"))
        await turns()
        client.wire.lose()
        await turns()
        broker.accounts.open.set()
        await turns()
        assert not broker.engine.shard.peers
        assert broker.metrics.connections == 0
        await broker.end()

    run(story())


def test_when_accounts_cannot_be_read_the_node_steps_down(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start()
        broker.accounts.error = CommitLost("the database does not answer")
        client = broker.connect()
        client.say("CONNECT", ("accept-version", "1.2"), ("host", "/"), ("login", "guest"))
        with pytest.raises(CommitLost):
            await broker.running
        await broker.end()

    run(story())


def test_one_connection_too_many_is_told_so_and_closed(run: Run) -> None:
    async def story() -> None:
        broker = await Broker(connections_max=2).start()
        first, _second, third = await broker.client(), await broker.client(), broker.connect()
        await turns()
        (command, headers, _), = third.take()
        assert command == "ERROR"
        assert "2 connections" in headers["message"]
        assert third.wire.gone
        first.wire.lose()
        await turns()
        await broker.client()
        await broker.end()

    run(story())


def test_a_peer_that_does_not_read_its_error_is_cut_off(run: Run) -> None:
    async def story() -> None:
        broker = await Broker(connections_max=1).start()
        await broker.client()
        refused = broker.connect(reads=False)
        await asyncio.sleep(socket_peer.CLOSE_SECONDS - 1)
        assert not refused.wire.gone
        await asyncio.sleep(2)
        assert "abort" in refused.wire.calls
        assert broker.metrics.connections == 1
        await broker.end()

    run(story())


def test_a_producer_that_reads_no_receipts_is_not_read_either(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow, "UNREAD_OCTETS_MAX", 2000)

    async def story() -> None:
        broker = await Broker(send_buffer_octets_max=65_536).start()
        client = await broker.client()
        client.wire.reads, client.wire.high = False, 1000
        for number in range(200):
            if client.wire.paused:
                break
            client.send(b"m", f"r{number}")
            await turns(10)
        assert client.wire.paused
        assert len(client.wire.waiting) < 5000
        client.wire.read_all()
        await turns()
        assert not client.wire.paused
        assert client.receipts() == [f"r{n}" for n in range(number)]
        await broker.end()

    run(story())


def test_a_full_send_buffer_stops_deliveries_until_it_is_read(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start()
        consumer, producer = await broker.client("q"), await broker.client()
        consumer.wire.reads, consumer.wire.high = False, 1000
        for number in range(40):
            producer.send(b"x" * 100, str(number))
            await turns()
        assert len(producer.receipts()) == 40, "the producer does not wait for the consumer"
        assert len(consumer.wire.waiting) < 1500
        assert not consumer.wire.paused, "its ACKs are read on"
        consumer.wire.read_all()
        await turns()
        assert len(consumer.take()) == 40
        await broker.end()

    run(story())


def test_a_large_batch_pauses_its_senders_until_it_is_flushed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_batch, "SENDS_MAX", 3)

    async def story() -> None:
        broker = await Broker().start()
        busy, idle = await broker.client(), await broker.client()
        door = broker.store.shut("commit")
        idle.send(b"m", "0")
        await turns()
        for number in range(4):
            busy.send(b"m", str(number))
        assert busy.wire.paused
        assert not idle.wire.paused
        door.set()
        await turns()
        assert not busy.wire.paused
        assert busy.receipts() == ["0", "1", "2", "3"]
        await broker.end()

    run(story())


def test_a_silent_client_is_closed_and_a_living_one_hears_heart_beats(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start()
        client = broker.connect()
        client.say("CONNECT", ("accept-version", "1.2"), ("host", "/"), ("login", "guest"), ("heart-beat", "1000,1000"))
        await turns()
        before = len(client.wire.heard)
        for _ in range(10):
            await asyncio.sleep(0.9)
            client.octets(b"\n")
        assert 8 <= client.wire.heard[before:].count(b"\n") <= 14
        assert not client.wire.gone
        await asyncio.sleep(5)
        assert client.wire.gone
        assert not broker.engine.shard.peers
        await broker.end()

    run(story())


def test_a_lost_connection_closes_its_links_and_its_messages_go_to_another(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start()
        first, producer = await broker.client("q"), await broker.client()
        producer.send(b"m", "1")
        await turns()
        assert [frame[2] for frame in first.take()] == [b"m"]
        first.wire.lose(ConnectionResetError())
        await turns()
        second = await broker.client("q")
        (_, headers, body), = second.take()
        assert body == b"m"
        assert headers["redelivered"] == "true"
        await broker.end()

    run(story())


def test_what_a_connection_sent_wrongly_closes_it_and_nothing_else(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start()
        bad, good = await broker.client(), await broker.client()
        bad.octets(b"\xff\xfe NONSENSE\n\n\0")
        await turns()
        assert bad.commands() == ["ERROR"]
        assert bad.wire.gone
        good.send(b"m", "1")
        await turns()
        assert good.receipts() == ["1"]
        await broker.end()

    run(story())


def test_a_stored_body_leaves_memory_once_framed_and_a_volatile_one_stays(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start()
        consumer, producer = await broker.client("q"), await broker.client()
        producer.send(b"stored", "1", reliability="assured")
        producer.send(b"volatile", "2", reliability="express")
        await turns()
        assert [frame[2] for frame in consumer.take()] == [b"stored", b"volatile"]
        (link,) = broker.engine.shard.links.values()
        assert {message.header.lane < VOLATILE: message.body for message in link.unsettled.values()} == {True: None, False: b"volatile"}
        await broker.end()

    run(story())


def test_presettled_deliveries_are_settled_only_after_they_left(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start()
        consumer, producer = await broker.client(), await broker.client()
        consumer.say("SUBSCRIBE", ("id", "1"), ("destination", "/queue/q"), ("ack", "auto"))
        await turns()
        door = broker.store.shut("commit")
        producer.send(b"m", "1")
        await turns()
        assert consumer.take() == []
        door.set()
        await asyncio.sleep(1)
        assert [frame[2] for frame in consumer.take()] == [b"m"]
        sent = next(n for n, commit in enumerate(broker.store.commits) if commit.messages)
        assert not broker.store.commits[sent].settled
        assert sum(len(commit.settled) for commit in broker.store.commits[sent + 1 :]) == 1
        await broker.end()

    run(story())


def test_nothing_is_written_to_a_socket_that_failed_and_is_not_yet_known_to_be_lost(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start()
        client, other = await broker.client(), await broker.client()
        door = broker.store.shut("commit")
        client.send(b"m", "1")
        other.send(b"m", "1")
        await turns()
        client.wire.gone = client.wire._closing = True
        door.set()
        await turns()
        assert other.receipts() == ["1"]
        assert not broker.running.done()
        client.peer.connection_lost(OSError("broken"))
        await broker.end()

    run(story())


def test_a_peer_shut_twice_is_closed_once(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start()
        client = await broker.client()
        client.peer.shut("one")
        client.peer.shut("two")
        client.peer.sever()
        await turns()
        client.peer.sever()
        (command, headers, _), = client.take()
        assert (command, headers["message"]) == ("ERROR", "one")
        assert broker.metrics.connections == 0
        await broker.end()

    run(story())


def test_closing_the_node_tells_its_peers_and_cuts_those_off_that_do_not_read(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start()
        reads, deaf = await broker.client(), await broker.client()
        deaf.wire.reads = False
        await broker.node.close("the broker is shutting down")
        await turns()
        assert [headers["message"] for _, headers, _ in reads.take()] == ["the broker is shutting down"]
        assert "abort" not in reads.wire.calls
        assert deaf.wire.gone
        assert broker.metrics.connections == 0
        late = broker.connect()
        assert late.commands() == ["ERROR"]
        await broker.end()

    run(story())


def test_a_connection_with_too_much_unsettled_on_all_its_links_gets_no_more_until_a_quarter_is_settled(run: Run) -> None:
    async def story() -> None:
        broker = await Broker(connection_unsettled_max=40).start()
        queues = ("a", "b", "c", "d")
        greedy, other, producer = await broker.client(*queues), await broker.client("a"), await broker.client()
        other.say("UNSUBSCRIBE", ("id", "a"))
        for number in range(40):
            producer.send(b"m", str(number), queues[number % 4])
        await turns(200)
        held = greedy.take()
        assert len(held) == 40
        broker.node.bound_unsettled()
        for queue in queues:
            producer.send(b"more", queue, queue)
        await turns(200)
        assert greedy.take() == []
        for frame in held[:9]:
            greedy.ack(frame)
        await turns()
        broker.node.bound_unsettled()
        await turns()
        assert greedy.take() == [], "it does not go to and fro with each message"
        greedy.ack(held[9])
        await turns()
        broker.node.bound_unsettled()
        await turns(200)
        assert [body for _, _, body in greedy.take()] == [b"more"] * 4
        await broker.end()

    run(story())


def test_the_heart_beat_of_the_configuration_is_offered_and_holds(run: Run) -> None:
    async def story() -> None:
        broker = await Broker(heartbeat_ms=4000).start()
        client = broker.connect()
        client.say("CONNECT", ("accept-version", "1.2"), ("host", "/"), ("login", "guest"), ("heart-beat", "1000,1000"))
        await turns()
        ((_, headers, _),) = client.take()
        assert headers["heart-beat"] == "4000,4000"
        await asyncio.sleep(7)
        assert not client.wire.gone
        await asyncio.sleep(2)
        assert client.wire.gone
        await broker.end()

    run(story())


# -- request and reply ------------------------------------------------------------------------------------------------------------------
def ask(client: Client, number: int) -> None:
    client.say("SEND", ("destination", "/queue/work"), ("reply-to", "/temp-queue/replies"), ("correlation-id", str(number)), ("receipt", str(number)))


def test_replies_go_to_the_connection_that_asked_and_a_second_term_knows_none_of_them(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start()
        first, second, responder = await broker.client(), await broker.client(), await broker.client("work")
        for number, client in enumerate((first, second, first)):
            client.say("SUBSCRIBE", ("id", f"r{number}"), ("destination", "/temp-queue/replies"), ("ack", "auto"))
            ask(client, number)
            await turns()
            (request,) = responder.take()
            responder.say("SEND", ("destination", request[1]["reply-to"]), ("correlation-id", request[1]["correlation-id"]), body=b"done")
            await turns()
            replies = [headers["correlation-id"] for command, headers, _ in client.take() if command == "MESSAGE"]
            assert replies == [str(number)]
        assert [headers for command, headers, _ in first.take() + second.take() if command == "MESSAGE"] == []
        address = request[1]["reply-to"]
        await broker.end()

        again = await Broker(broker.database).start()
        again.node.epoch = 2
        responder = await again.client()
        for _ in range(3):
            await again.client()
        responder.say("SEND", ("destination", address), ("receipt", "gone"), body=b"done")
        await turns()
        assert responder.receipts() == ["gone"]
        assert again.host.gauges()["sends_to_ended_temporary_destinations_total"] == 1
        await again.end()

    run(story())


def test_a_large_reply_to_a_requester_that_has_gone_leaves_nothing_in_the_store(run: Run) -> None:
    async def story() -> None:
        broker = await Broker(large_body_octets=1024, body_chunk_octets=65_536).start()
        requester, responder = await broker.client(), await broker.client("work")
        ask(requester, 1)
        await turns()
        ((_, request, _),) = responder.take()
        requester.wire.lose()
        await turns()
        responder.say("SEND", ("destination", request["reply-to"]), ("receipt", "1"), ("content-length", "5000"), body=b"x" * 5000)
        await turns()
        assert responder.receipts() == ["1"]
        assert broker.database.tables.bodies == {}
        await broker.end()

    run(story())
