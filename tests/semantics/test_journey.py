"""A message's way from its producer's runtime to its consumer's, and who waits for whom: on the frames, with the commits of the store in hand."""

from __future__ import annotations

import pytest

from broker_core.client import DeliveryMode, JMSException
from broker_core.store.memory_tables import Fault
from tests.semantics.application import AUTO, TRANSACTED, Application, Q, T, depth, node
from tests.server.conftest import Run
from tests.server.rig import Broker, turns

NON_PERSISTENT = DeliveryMode.NON_PERSISTENT


def stored(broker: Broker) -> int:
    """Messages in the data store that a node which starts now would deliver."""
    tables = broker.database.tables
    settled = {(lane, position) for commit in broker.store.commits for _, lane, first, last, _ in commit.settled for position in range(first, last + 1)}
    return sum((row.header.lane, row.position) not in settled for row in tables.rows())


def test_a_persistent_message_takes_its_ten_steps_in_their_order(run: Run) -> None:
    async def story() -> None:
        broker, wire = await node(), list[str]()
        producer, consumer = [await Application.connected(broker, wire) for _ in range(2)]
        receiver = await consumer.consumer(consumer.session(AUTO))
        wire.clear()

        door = broker.store.shut("commit")
        (sent,) = await producer.send("m")
        assert wire == ["> SEND /queue/q?"]  # 1
        assert depth(broker) == 1 and not sent.is_settled  # 2: it is in its destination, and its producer waits
        door.set()
        await producer.turn()
        assert stored(broker) == 1  # 3
        assert sent.is_settled and wire[1:] == ["< RECEIPT of SEND /queue/q"]  # 4: behind 2 and 3
        (commit,) = [commit for commit in broker.store.commits if commit.messages]
        assert [link for *_, link in commit.offered] == list(broker.engine.shard.links)  # 5: whom it goes to is written with it
        await consumer.turn()
        assert wire[2:] == ["< MESSAGE m"]  # 6

        door.clear()
        message, received = await consumer.receive(receiver)
        assert message.body == "m"  # 7
        assert wire[3:] == ["> ACK 1.1?"]  # 8
        assert received is not None and not received.is_settled and stored(broker) == 1
        door.set()
        await consumer.turn()
        assert depth(broker) == 0 and stored(broker) == 0  # 9
        assert received.is_settled and wire[4:] == ["< RECEIPT of ACK 1.1"]  # 10
        await broker.end()

        later = await node(broker)
        again = await Application.connected(later)
        assert again.waiting(await again.consumer(again.session())) == []  # it cannot be delivered again
        await later.end()

    run(story())


def test_only_send_and_message_carry_a_payload_and_all_else_is_between_broker_and_runtime(run: Run) -> None:
    async def story() -> None:
        broker = await node()
        application = await Application.connected(broker)
        consumer = await application.consumer(application.session(AUTO))
        await application.send("m")
        await application.receive(consumer)
        consumer.session.close_consumer(consumer)
        await application.turn()
        kinds = [line.split()[1] for line in application.wire]
        assert kinds == ["SUBSCRIBE", "RECEIPT", "SEND", "RECEIPT", "MESSAGE", "ACK", "RECEIPT", "UNSUBSCRIBE", "RECEIPT"]
        assert {kind for kind, octets in application.payloads if octets} == {"SEND", "MESSAGE"}
        await broker.end()

    run(story())


@pytest.mark.parametrize(("settings", "mode", "waits"), [({}, None, True), ({}, NON_PERSISTENT, False), ({"ack_on_produce": True}, NON_PERSISTENT, True)])
def test_the_brokers_word_is_asked_for_and_comes_when_the_message_is_where_it_belongs(
    run: Run, settings: dict[str, bool], mode: DeliveryMode | None, waits: bool
) -> None:
    async def story() -> None:
        broker = await node()
        application = await Application.connected(broker, **settings)
        confirmations = await application.send("m", delivery_mode=mode)
        assert [each.is_settled for each in confirmations] == [True] * waits
        assert application.wire == (["> SEND /queue/q?", "< RECEIPT of SEND /queue/q"] if waits else ["> SEND /queue/q"])
        assert depth(broker) == 1
        await broker.end()

    run(story())


@pytest.mark.parametrize("asked", [True, False])
def test_a_producer_that_does_not_wait_never_learns_that_its_message_is_lost(run: Run, asked: bool) -> None:
    async def story() -> None:
        broker = await node()
        application = await Application.connected(broker, ack_on_produce=None if asked else False)
        broker.faults["commit"] = [Fault.LOST]
        confirmations = await application.send("m")
        await application.dies()
        assert len(confirmations) == asked
        for each in confirmations:
            with pytest.raises(JMSException, match="may or may not have been stored"):
                each.check()
        await broker.end()
        later = await node(broker)
        assert depth(later) == 0
        await later.end()

    run(story())


@pytest.mark.parametrize(("mode", "left"), [(None, ["m again"]), (NON_PERSISTENT, [])])
def test_a_broker_that_starts_again_has_what_is_persistent_and_nothing_else(run: Run, mode: DeliveryMode | None, left: list[str]) -> None:
    async def story() -> None:
        broker = await node()
        application = await Application.connected(broker)
        consumer = await application.consumer(application.session(AUTO))
        await application.send("m", delivery_mode=mode)
        assert application.waiting(consumer) == ["m"]
        await broker.end()
        later = await node(broker)
        application = await Application.connected(later)
        assert application.waiting(await application.consumer(application.session(AUTO))) == left
        await later.end()

    run(story())


def test_a_durable_subscriber_gets_it_from_the_store_and_for_a_volatile_one_alone_nothing_is_stored(run: Run) -> None:
    async def story() -> None:
        broker = await node()
        publisher, subscriber = await Application.connected(broker), await Application.connected(broker, client_id="c")
        plain = await subscriber.consumer(subscriber.session(AUTO), T)
        door = broker.store.shut("commit")
        door.set()
        before = len(broker.store.commits)
        await publisher.send("to whom it may concern", destination=T)
        await subscriber.turn()
        assert subscriber.waiting(plain) == ["to whom it may concern"]
        assert not any(commit.messages for commit in broker.store.commits[before:])
        durable = await subscriber.consumer(subscriber.session(AUTO), T, name="d", durable=True)
        door.clear()
        (sent,) = await publisher.send("kept", destination=T)
        await subscriber.turn()
        assert subscriber.waiting(durable) == [] and not sent.is_settled
        door.set()
        await publisher.turn()
        await subscriber.turn()
        assert subscriber.waiting(durable) == ["kept"] and sent.is_settled
        assert any(commit.messages for commit in broker.store.commits)
        await broker.end()

    run(story())


def test_a_commit_is_one_acknowledgement_of_everything_in_it(run: Run) -> None:
    async def story() -> None:
        broker = await node()
        application = await Application.connected(broker)
        session = application.session(TRANSACTED)
        consumer = await application.consumer(session)
        await application.send(*"abc")
        application.wire.clear()
        assert await application.consume(consumer, 3) == ["a", "b", "c"]
        assert application.wire == [] and depth(broker) == 3
        confirmation = session.commit()
        await application.turn()
        assert confirmation is not None and confirmation.is_settled
        assert [line for line in application.wire if line.startswith("<")] == ["< RECEIPT of COMMIT 1t1"]
        assert depth(broker) == 0
        await broker.end()

    run(story())


def test_nobody_is_told_anything_of_a_commit_that_was_lost(run: Run) -> None:
    async def story() -> None:
        broker = await node()
        application = await Application.connected(broker)
        consumer = await application.consumer(application.session(AUTO))
        application.wire.clear()
        broker.faults["commit"] = [Fault.LOST]
        (sent,) = await application.send("m", destination=Q)
        await turns()
        assert not sent.is_settled and application.waiting(consumer) == []
        assert application.wire == ["> SEND /queue/q?"]
        await broker.end()

    run(story())
