"""Acknowledgement modes as they are seen on the wire, and what the broker makes of them: the client runtime speaks with the real node.

The frames alone, with a broker by hand: tests/client/test_client_acknowledging.py."""

from __future__ import annotations

import pytest

from broker_core.client import AcknowledgeMode, IllegalStateException, Queue, Topic
from broker_core.client.settings import PROFILES, Profile
from tests.client.broker import Broker as BrokerByHand
from tests.semantics.application import AUTO, CLIENT, DUPS_OK, INDIVIDUAL, NO_ACKNOWLEDGE, TRANSACTED, Application, Q, T, depth, node
from tests.server.conftest import Run

PREFETCH = 20
ACTIVEMQ = PROFILES[Profile.ACTIVEMQ] | {"consumer_flow_limit": PREFETCH}
BODIES = [str(number) for number in range(2 * PREFETCH)]
EACH, HALF, MOST, NEVER = list(range(1, 41)), [10, 20, 30, 40], [13, 26, 39], list[int]()
"""After how many messages something is acknowledged: each; 50% of 20; 65% of 20."""
TABLE = [
    (AUTO, Q, False, EACH), (AUTO, T, False, EACH), (AUTO, Q, True, MOST), (AUTO, T, True, MOST),
    (DUPS_OK, Q, False, EACH), (DUPS_OK, T, False, HALF), (DUPS_OK, Q, True, MOST), (DUPS_OK, T, True, HALF),
]  # fmt: skip
MODES = [(mode, destination, optimized) for mode in (CLIENT, INDIVIDUAL) for destination in (Q, T) for optimized in (False, True)]


def test_modes_have_the_numbers_of_jms_and_of_the_providers_that_extend_it() -> None:
    assert (AUTO, CLIENT, DUPS_OK, TRANSACTED, INDIVIDUAL, NO_ACKNOWLEDGE) == (1, 2, 3, 0, 4, 32768)


# -- the table ------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("mode", "destination", "optimized", "when"), TABLE)
def test_of_each_cell_the_broker_has_every_acknowledgement_when_the_table_says(
    run: Run, mode: AcknowledgeMode, destination: Queue | Topic, optimized: bool, when: list[int]
) -> None:
    async def story() -> None:
        broker = await node()
        application = await Application.connected(broker, optimize_acknowledge=optimized, **ACTIVEMQ)
        consumer = await application.consumer(application.session(mode), destination)
        await application.send(*BODIES, destination=destination)
        application.wire.clear()
        said, left = [], []
        for number in range(1, len(BODIES) + 1):
            assert (await application.receive(consumer))[0].body == BODIES[number - 1]
            if application.said("ACK"):
                said.append(number)
                left.append(depth(broker, destination))
        assert said == when
        assert left == [len(BODIES) - number for number in when]  # cumulative: whatever came before is acknowledged with it
        await broker.end()

    run(story())


@pytest.mark.parametrize(("mode", "destination", "optimized"), MODES)
def test_where_the_application_acknowledges_nothing_leaves_before_it_does(
    run: Run, mode: AcknowledgeMode, destination: Queue | Topic, optimized: bool
) -> None:
    async def story() -> None:
        broker = await node()
        application = await Application.connected(broker, optimize_acknowledge=optimized, **ACTIVEMQ)
        session = application.session(mode)
        consumer = await application.consumer(session, destination)
        await application.send(*BODIES[:PREFETCH], destination=destination)
        application.wire.clear()
        messages = [(await application.receive(consumer))[0] for _ in range(PREFETCH)]
        await application.passes(60)
        assert application.said("ACK") == [] and depth(broker, destination) == PREFETCH
        session.acknowledge(messages[4].delivery)
        await application.turn()
        acks = application.said("ACK")
        assert len(acks) == 1 and depth(broker, destination) == (0 if mode is CLIENT else PREFETCH - 1)
        assert acks[0].startswith(f"ACK 1.{PREFETCH if mode is CLIENT else 5}")
        await broker.end()

    run(story())


@pytest.mark.parametrize(("mode", "destination", "optimized", "when"), TABLE)
def test_of_each_cell_the_time_is_300_ms_or_7_s(mode: AcknowledgeMode, destination: Queue | Topic, optimized: bool, when: list[int]) -> None:
    broker = BrokerByHand(optimize_acknowledge=optimized, **ACTIVEMQ)
    broker.consume(broker.consumer(broker.session(mode), destination), when[0] - 1 or 1)
    at_once = broker.heard()
    broker.passes(299)
    assert broker.heard() == []
    broker.passes(1)
    in_time = broker.heard()
    broker.passes(6_699)
    assert broker.heard() == []
    broker.passes(1)
    assert (bool(at_once), bool(in_time), bool(broker.heard())) == (when == EACH, when == MOST, when not in (EACH, MOST))


# -- what each mode costs and promises --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("mode", "acknowledgements", "answers"),
    [(AUTO, 100, 100), (CLIENT, 10, 10), (DUPS_OK, 10, 0), (NO_ACKNOWLEDGE, 0, 0), (TRANSACTED, 10, 10)],
)
def test_modes_differ_in_how_many_frames_a_hundred_messages_take(run: Run, mode: AcknowledgeMode, acknowledgements: int, answers: int) -> None:
    async def story() -> None:
        broker = await node()
        application = await Application.connected(broker)
        session = application.session(mode)
        consumer = await application.consumer(session)
        await application.send(*[str(number) for number in range(100)])
        application.wire.clear()
        for number in range(1, 101):
            message, _ = await application.receive(consumer)
            if number % 10 == 0 and mode in (CLIENT, TRANSACTED):
                session.commit() if mode is TRANSACTED else session.acknowledge(message.delivery)
                await application.turn()
        await application.passes(1)
        assert sum(line.startswith("> ACK") for line in application.wire) == acknowledgements
        assert sum(line.startswith("< RECEIPT") for line in application.wire) == answers
        assert depth(broker) == 0
        await broker.end()

    run(story())


@pytest.mark.parametrize("mode", [AUTO, CLIENT, INDIVIDUAL])
def test_the_session_waits_until_the_store_has_its_acknowledgement(run: Run, mode: AcknowledgeMode) -> None:
    async def story() -> None:
        broker = await node()
        application = await Application.connected(broker)
        session = application.session(mode)
        consumer = await application.consumer(session)
        await application.send("m")
        door = broker.store.shut("commit")
        message, confirmation = await application.receive(consumer)
        if mode is not AUTO:
            assert confirmation is None
            confirmation = session.acknowledge(message.delivery)
        await application.turn()
        assert application.said()[-1].startswith("ACK 1.1?") and confirmation is not None and not confirmation.is_settled
        door.set()
        await application.turn()
        assert confirmation.is_settled and confirmation.error is None
        await broker.end()

    run(story())


@pytest.mark.parametrize(("consumed", "again"), [(1, 1), (9, 9), (10, 0), (19, 9), (20, 0)])
def test_of_dups_ok_what_was_not_told_comes_twice_and_that_is_nine_messages_at_most(run: Run, consumed: int, again: int) -> None:
    async def story() -> None:
        broker = await node()
        application = await Application.connected(broker)
        consumer = await application.consumer(application.session(DUPS_OK))
        await application.send(*BODIES[:consumed])
        assert await application.consume(consumer, consumed) == BODIES[:consumed]
        await application.dies()
        other = await Application.connected(broker)
        found = other.waiting(await other.consumer(other.session(AUTO)))
        assert found == [f"{body} again" for body in BODIES[consumed - again : consumed]]
        await broker.end()

    run(story())


def test_of_no_acknowledge_the_broker_acknowledges_what_it_has_sent_before_anybody_has_looked_at_it(run: Run) -> None:
    async def story() -> None:
        broker = await node()
        application = await Application.connected(broker)
        session = application.session(NO_ACKNOWLEDGE)
        consumer = await application.consumer(session)
        await application.send("a", "b")
        await application.passes(1)
        assert application.said("ACK") == [] and depth(broker) == 0
        message, _ = await application.receive(consumer)
        assert session.acknowledge(message.delivery) is None
        with pytest.raises(IllegalStateException):
            session.recover()
        await application.dies()
        other = await Application.connected(broker)
        assert other.waiting(await other.consumer(other.session(AUTO))) == []
        await broker.end()

    run(story())


@pytest.mark.parametrize(("mode", "comes_again"), [(AUTO, True), (DUPS_OK, True), (NO_ACKNOWLEDGE, False)])
def test_what_a_listener_fails_with_is_dispatched_again_unless_it_was_acknowledged_as_it_began(run: Run, mode: AcknowledgeMode, comes_again: bool) -> None:
    async def story() -> None:
        broker = await node()
        application = await Application.connected(broker)
        session = application.session(mode)
        consumer = await application.consumer(session)
        await application.send("m")
        await application.passes(1)
        assert consumer.next_for_listener(application.now, 0) is not None
        assert depth(broker) == comes_again
        session.handled("LookupError", application.now)
        await application.turn()
        assert application.waiting(consumer) == ["m again"] * comes_again
        await broker.end()

    run(story())


def test_who_finds_a_message_dead_reads_what_its_listener_failed_with_the_last_time(run: Run) -> None:
    async def story() -> None:
        broker = await node()
        application = await Application.connected(broker)
        session = application.session(AUTO)
        consumer = await application.consumer(session)
        await application.send("m")
        for failures in range(11):  # redelivery_max is 10
            await application.passes(1)
            message = consumer.next_for_listener(application.now, 0)
            assert message is not None and message.properties["JMSXDeliveryCount"] == failures + 1
            session.handled(f"LookupError: no colour {failures}", application.now)
            await application.turn()
        dead, _ = await application.receive(await application.consumer(application.session(AUTO), Queue("mq.sys.dmq")))
        comment = "delivery failed 11 times; redelivery maximum 10; LookupError: no colour 10"
        assert dead.properties["JMS_SUN_DMQ_UNDELIVERED_COMMENT"] == comment
        await broker.end()

    run(story())


def test_a_message_whose_listener_has_not_returned_is_not_acknowledged(run: Run) -> None:
    async def story() -> None:
        broker = await node()
        application = await Application.connected(broker)
        session = application.session(AUTO)
        consumer = await application.consumer(session)
        await application.send("a")
        assert consumer.next_for_listener(application.now, 0) is not None
        await application.turn()
        assert depth(broker) == 1
        session.handled(None, application.now)
        await application.turn()
        assert depth(broker) == 0
        await broker.end()

    run(story())


def test_client_mode_acknowledges_what_all_consumers_of_the_session_have_had_and_nothing_of_another_session(run: Run) -> None:
    async def story() -> None:
        broker = await node()
        application = await Application.connected(broker)
        session, other = application.session(CLIENT), application.session(CLIENT)
        first, second = await application.consumer(session), await application.consumer(session, Queue("second"))
        third = await application.consumer(other, Queue("third"))
        for destination in (Q, Queue("second"), Queue("third")):
            await application.send("a", "b", destination=destination)
        message, _ = await application.receive(second)
        await application.consume(first, 2)
        await application.consume(third, 1)
        session.acknowledge(message.delivery)
        await application.turn()
        assert [depth(broker, destination) for destination in (Q, Queue("second"), Queue("third"))] == [0, 1, 2]
        await broker.end()

    run(story())


# -- profiles ---------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("profile", "destination", "when"),
    [
        ("sun", Q, [10, 20, 30, 40]), ("sun", T, [10, 20, 30, 40]), ("websphere", Q, [10, 20, 30, 40]), ("activemq", Q, EACH),
        ("activemq", T, [20, 40]),
    ],
)  # fmt: skip
def test_when_dups_ok_acknowledges_is_the_factorys_policy_and_ten_messages_if_it_says_nothing(
    profile: str, destination: Queue | Topic, when: list[int]
) -> None:
    broker = BrokerByHand(**PROFILES[Profile(profile)], consumer_flow_limit=40)
    consumer = broker.consumer(broker.session(DUPS_OK), destination)
    said = []
    for number in range(1, 41):
        broker.consume(consumer)
        if broker.heard():
            said.append(number)
    assert said == when
