"""Which acknowledgements leave, when, and which of them are waited for: the decision table of checklist item 147 and its numbers, on the frames."""

from __future__ import annotations

import pytest

from broker_core.client import AcknowledgeMode, Batch, DupsOkPolicy, IllegalStateException, PrefetchPolicy, Queue, Topic
from broker_core.client.settings import PROFILES, Profile
from tests.client.broker import Broker

AUTO, CLIENT, DUPS_OK, INDIVIDUAL, NO_ACKNOWLEDGE, TRANSACTED = (
    AcknowledgeMode.AUTO, AcknowledgeMode.CLIENT, AcknowledgeMode.DUPS_OK, AcknowledgeMode.INDIVIDUAL, AcknowledgeMode.NO_ACKNOWLEDGE,
    AcknowledgeMode.SESSION_TRANSACTED,
)  # fmt: skip
QUEUE, TOPIC = Queue("a"), Topic("a")
ACTIVEMQ = PROFILES[Profile.ACTIVEMQ] | {"consumer_flow_limit": 100}
"""With a prefetch of 100, so that percents are messages."""


def acks_by_message(broker: Broker, mode: AcknowledgeMode, destination: Queue | Topic, count: int) -> list[tuple[int, list[str]]]:
    """(how many were consumed, what was acknowledged then), for every message after which something was."""
    consumer = broker.consumer(broker.session(mode), destination)
    said = []
    for number in range(1, count + 1):
        broker.consume(consumer)
        if heard := broker.heard():
            said.append((number, heard))
    return said


def each(count: int, asked: str) -> list[tuple[int, list[str]]]:
    return [(number, [f"ACK 2.{number}{asked}"]) for number in range(1, count + 1)]


# -- the table ------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("mode", "destination", "optimized", "said"),
    [
        (AUTO, QUEUE, False, each(130, "?")),
        (AUTO, TOPIC, False, each(130, "?")),
        (AUTO, QUEUE, True, [(65, ["ACK 2.65"]), (130, ["ACK 2.130"])]),
        (AUTO, TOPIC, True, [(65, ["ACK 2.65"]), (130, ["ACK 2.130"])]),
        (DUPS_OK, QUEUE, False, each(130, "")),
        (DUPS_OK, TOPIC, False, [(50, ["ACK 2.50"]), (100, ["ACK 2.100"])]),
        (DUPS_OK, QUEUE, True, [(65, ["ACK 2.65"]), (130, ["ACK 2.130"])]),
        (DUPS_OK, TOPIC, True, [(50, ["ACK 2.50"]), (100, ["ACK 2.100"])]),
    ],
)
def test_the_decision_table(mode: AcknowledgeMode, destination: Queue | Topic, optimized: bool, said: list[tuple[int, list[str]]]) -> None:
    broker = Broker(**ACTIVEMQ, optimize_acknowledge=optimized)
    assert acks_by_message(broker, mode, destination, 130) == said


TENS = [(number, [f"ACK 2.{number}"]) for number in range(10, 131, 10)]
HALVES = [(50, ["BEGIN 1t1", "ACK 2.50 in 1t1"]), (100, ["ACK 2.100 in 1t1"])]


@pytest.mark.parametrize("profile", ["sun", "websphere"])
@pytest.mark.parametrize(
    ("mode", "destination", "optimized", "said"),
    [
        (AUTO, QUEUE, False, each(130, "?")), (AUTO, TOPIC, False, each(130, "?")),
        (AUTO, QUEUE, True, [(65, ["ACK 2.65"]), (130, ["ACK 2.130"])]), (AUTO, TOPIC, True, [(65, ["ACK 2.65"]), (130, ["ACK 2.130"])]),
        (DUPS_OK, QUEUE, False, TENS), (DUPS_OK, TOPIC, False, TENS),
        (DUPS_OK, QUEUE, True, [(65, ["ACK 2.65"]), (130, ["ACK 2.130"])]), (DUPS_OK, TOPIC, True, TENS),
        *((NO_ACKNOWLEDGE, destination, optimized, []) for destination in (QUEUE, TOPIC) for optimized in (False, True)),
        *((TRANSACTED, destination, optimized, HALVES) for destination in (QUEUE, TOPIC) for optimized in (False, True)),
    ],
)  # fmt: skip
def test_the_decision_table_of_the_other_profiles(
    profile: str, mode: AcknowledgeMode, destination: Queue | Topic, optimized: bool, said: list[tuple[int, list[str]]]
) -> None:
    broker = Broker(**(PROFILES[Profile(profile)] | {"consumer_flow_limit": 100}), optimize_acknowledge=optimized)
    assert acks_by_message(broker, mode, destination, 130) == said


@pytest.mark.parametrize("optimized", [False, True])
@pytest.mark.parametrize("destination", [QUEUE, TOPIC])
def test_client_mode_says_one_cumulative_acknowledgement_when_asked_whatever_else_is_set(destination: Queue | Topic, optimized: bool) -> None:
    broker = Broker(**ACTIVEMQ, optimize_acknowledge=optimized)
    session = broker.session(CLIENT)
    messages = broker.consume(broker.consumer(session, destination), 90)
    broker.passes(60_000)
    assert broker.heard() == []
    session.acknowledge(messages[3].delivery)
    assert broker.heard() == ["ACK 2.90?"]


@pytest.mark.parametrize("optimized", [False, True])
@pytest.mark.parametrize("destination", [QUEUE, TOPIC])
def test_individual_mode_acknowledges_that_message_and_no_other(destination: Queue | Topic, optimized: bool) -> None:
    broker = Broker(**ACTIVEMQ, optimize_acknowledge=optimized)
    session = broker.session(INDIVIDUAL)
    messages = broker.consume(broker.consumer(session, destination), 90)
    broker.passes(60_000)
    assert broker.heard() == []
    session.acknowledge(messages[3].delivery)
    assert broker.heard() == ["ACK 2.4?"]
    session.acknowledge(messages[1].delivery)
    assert broker.heard() == ["ACK 2.2?"]


@pytest.mark.parametrize(
    ("mode", "optimized", "wire"),
    [
        (AUTO, False, "client-individual"), (AUTO, True, "client"), (DUPS_OK, False, "client"), (CLIENT, False, "client"),
        (INDIVIDUAL, False, "client-individual"), (NO_ACKNOWLEDGE, False, "auto"), (TRANSACTED, False, "client"),
    ],
)  # fmt: skip
def test_the_broker_is_told_how_it_will_be_acknowledged(mode: AcknowledgeMode, optimized: bool, wire: str) -> None:
    broker = Broker(optimize_acknowledge=optimized)
    broker.consumer(broker.session(mode))
    assert broker.subscribed.headers["ack"] == wire
    assert broker.subscribed.headers.get("prefetch-count") == (None if wire == "auto" else "1000")


# -- the numbers ----------------------------------------------------------------------------------------------------------------------
def test_dups_ok_acknowledges_after_ten_messages_and_asks_for_no_answer() -> None:
    assert acks_by_message(Broker(), DUPS_OK, QUEUE, 25) == [(10, ["ACK 2.10"]), (20, ["ACK 2.20"])]
    assert acks_by_message(Broker(), DUPS_OK, TOPIC, 25) == [(10, ["ACK 2.10"]), (20, ["ACK 2.20"])]


def test_dups_ok_counts_the_messages_of_all_consumers_of_the_session() -> None:
    broker = Broker()
    session = broker.session(DUPS_OK)
    first, second = broker.consumer(session, "a"), broker.consumer(session, "b")
    broker.consume(first, 6)
    broker.consume(second, 3)
    assert broker.heard() == []
    broker.consume(second)
    assert broker.heard() == ["ACK 2.6", "ACK 3.4"]


def test_dups_ok_acknowledges_seven_seconds_after_the_first_message_that_is_not() -> None:
    broker = Broker()
    consumer = broker.consumer(broker.session(DUPS_OK))
    broker.consume(consumer)
    broker.passes(4_000)
    broker.consume(consumer)
    broker.passes(2_999)
    assert broker.heard() == []
    broker.passes(1)
    assert broker.heard() == ["ACK 2.2"]
    broker.passes(60_000)
    assert broker.heard() == []


def test_the_seven_seconds_begin_anew_after_ten_messages() -> None:
    broker = Broker()
    consumer = broker.consumer(broker.session(DUPS_OK))
    broker.consume(consumer, 9)
    broker.passes(6_999)
    broker.consume(consumer, 2)
    assert broker.heard() == ["ACK 2.10"]
    broker.passes(6_999)
    assert broker.heard() == []
    broker.passes(1)
    assert broker.heard() == ["ACK 2.11"]


def test_optimized_acknowledgements_leave_after_300_ms_if_65_percent_take_longer() -> None:
    broker = Broker(optimize_acknowledge=True)
    consumer = broker.consumer(broker.session(AUTO))
    broker.consume(consumer, 649)
    broker.passes(299)
    assert broker.heard() == []
    broker.passes(1)
    assert broker.heard() == ["ACK 2.649"]
    broker.consume(consumer, 649)
    assert broker.heard() == []
    broker.consume(consumer)
    assert broker.heard() == ["ACK 2.1299"]


@pytest.mark.parametrize(("prefetch", "messages"), [(1, 1), (2, 2), (3, 2), (10, 7), (100, 65), (1000, 650)])
def test_65_percent_are_reached_and_not_rounded_down(prefetch: int, messages: int) -> None:
    broker = Broker(optimize_acknowledge=True, consumer_flow_limit=prefetch)
    assert acks_by_message(broker, AUTO, QUEUE, messages) == [(messages, [f"ACK 2.{messages}"])]


def test_fifty_percent_on_a_topic_are_counted_for_each_consumer() -> None:
    broker = Broker(**ACTIVEMQ)
    session = broker.session(DUPS_OK)
    first, second = broker.consumer(session, Topic("a")), broker.consumer(session, Topic("b"))
    broker.consume(first, 49)
    broker.consume(second, 49)
    assert broker.heard() == []
    broker.consume(second)
    assert broker.heard() == ["ACK 3.50"]


def test_a_batch_without_a_timeout_of_its_own_does_not_wait_for_ever_as_the_broker_may_deliver_less_by_now() -> None:
    broker = Broker(**ACTIVEMQ)
    broker.consume(broker.consumer(broker.session(DUPS_OK), Topic("a")), 5)
    broker.passes(6_999)
    assert broker.heard() == []
    broker.passes(1)
    assert broker.heard() == ["ACK 2.5"]


def test_a_transaction_does_not_begin_because_time_passes() -> None:
    broker = Broker(**ACTIVEMQ)
    session = broker.session(TRANSACTED)
    broker.consume(broker.consumer(session), 5)
    broker.passes(600_000)
    assert broker.heard() == []


def test_of_two_batches_with_different_timeouts_the_one_that_is_due_first_says_when() -> None:
    broker = Broker(**ACTIVEMQ, optimize_acknowledge=True)
    session = broker.session(DUPS_OK)
    slow, quick = broker.consumer(session, TOPIC), broker.consumer(session, QUEUE)
    broker.consume(slow)
    broker.passes(1_000)
    broker.consume(quick)
    broker.passes(299)
    assert broker.heard() == []
    broker.passes(1)
    assert broker.heard() == ["ACK 2.1", "ACK 3.1"]


def test_a_batch_that_the_prefetch_cannot_hold_is_as_large_as_the_prefetch() -> None:
    assert acks_by_message(Broker(consumer_flow_limit=4), DUPS_OK, QUEUE, 8) == [(4, ["ACK 2.4"]), (8, ["ACK 2.8"])]


def test_large_messages_are_acknowledged_before_they_fill_what_may_be_outstanding() -> None:
    broker = Broker(optimize_acknowledge=True, optimize_acknowledge_timeout=0.0)
    consumer = broker.consumer(broker.session(AUTO))
    for _ in range(4):
        broker.delivers(consumer, body=b"x" * (2 << 20))
        broker.receive(consumer)
    assert broker.heard() == ["ACK 2.4"]


def test_the_policy_of_dups_ok_is_the_factorys() -> None:
    policy = DupsOkPolicy(on_queues=Batch(messages=3), on_topics=Batch(percent=20.0, timeout=1.0))
    assert acks_by_message(Broker(dups_ok_policy=policy), DUPS_OK, QUEUE, 7) == [(3, ["ACK 2.3"]), (6, ["ACK 2.6"])]
    broker = Broker(dups_ok_policy=policy, prefetch_policy=PrefetchPolicy(topic=10))
    assert acks_by_message(broker, DUPS_OK, TOPIC, 5) == [(2, ["ACK 2.2"]), (4, ["ACK 2.4"])]
    broker.passes(1_000)
    assert broker.heard() == ["ACK 2.5"]


def test_a_receive_that_waited_in_vain_acknowledges_what_was_consumed() -> None:
    broker = Broker()
    consumer = broker.consumer(broker.session(DUPS_OK))
    broker.consume(consumer, 3)
    assert consumer.receive(broker.now, 0) is None
    consumer.ran_dry()
    assert broker.heard() == ["ACK 2.3"]


# -- waiting --------------------------------------------------------------------------------------------------------------------------
def test_auto_waits_for_the_brokers_word_at_each_message() -> None:
    broker = Broker()
    consumer = broker.consumer(broker.session(AUTO))
    broker.delivers(consumer, 2)
    _, confirmation = broker.receive(consumer)
    assert confirmation is not None and not confirmation.is_settled
    (ack,) = broker.hears()
    broker.confirms(ack)
    assert confirmation.is_settled and confirmation.error is None


@pytest.mark.parametrize("mode", [CLIENT, INDIVIDUAL])
def test_what_the_application_acknowledges_is_waited_for(mode: AcknowledgeMode) -> None:
    broker = Broker()
    session = broker.session(mode)
    broker.delivers(broker.consumer(session), 1)
    message, waited = broker.receive(session.consumers[0])
    assert waited is None
    confirmation = session.acknowledge(message.delivery)
    assert confirmation is not None and not confirmation.is_settled
    broker.confirms()
    assert confirmation.is_settled


@pytest.mark.parametrize(("mode", "settings"), [(DUPS_OK, {}), (NO_ACKNOWLEDGE, {}), (AUTO, {"optimize_acknowledge": True}), (TRANSACTED, {})])
def test_nothing_is_waited_for_where_acknowledging_is_lazy(mode: AcknowledgeMode, settings: dict[str, bool]) -> None:
    broker = Broker(consumer_flow_limit=10, **settings)
    consumer = broker.consumer(broker.session(mode))
    broker.delivers(consumer, 30)
    assert {broker.receive(consumer)[1] for _ in range(30)} == {None}
    assert not any(text.endswith("?") for text in broker.heard())


def test_the_factory_can_have_acknowledging_waited_for_never_or_always() -> None:
    never = Broker(ack_on_acknowledge=False)
    assert acks_by_message(never, AUTO, QUEUE, 2) == [(1, ["ACK 2.1"]), (2, ["ACK 2.2"])]
    always = Broker(ack_on_acknowledge=True, consumer_flow_limit=2)
    assert acks_by_message(always, DUPS_OK, QUEUE, 2) == [(2, ["ACK 2.2?"])]


def test_no_acknowledge_says_nothing_at_all() -> None:
    broker = Broker()
    session = broker.session(NO_ACKNOWLEDGE)
    messages = broker.consume(broker.consumer(session), 30)
    assert session.acknowledge(messages[0].delivery) is None
    broker.passes(60_000)
    assert broker.heard() == []


# -- CLIENT ---------------------------------------------------------------------------------------------------------------------------
def test_acknowledge_covers_what_all_consumers_of_the_session_consumed_in_whatever_order() -> None:
    broker = Broker()
    session = broker.session(CLIENT)
    first, second = broker.consumer(session, "a"), broker.consumer(session, "b")
    broker.consume(second, 2)
    earlier = broker.consume(first, 3)[0]
    broker.consume(second, 1)
    session.acknowledge(earlier.delivery)
    assert broker.heard() == ["ACK 3.3", "ACK 2.3?"]
    assert session.acknowledge(earlier.delivery) is None  # there is nothing left


def test_what_was_delivered_and_not_received_is_not_acknowledged() -> None:
    broker = Broker()
    session = broker.session(CLIENT)
    consumer = broker.consumer(session)
    broker.delivers(consumer, 5)
    message, _ = broker.receive(consumer)
    session.acknowledge(message.delivery)
    assert broker.heard() == ["ACK 2.1?"]


def test_up_through_this_message_leaves_what_came_after() -> None:
    broker = Broker()
    session = broker.session(CLIENT)
    first, second = broker.consumer(session, "a"), broker.consumer(session, "b")
    broker.consume(first, 2)
    middle = broker.consume(second, 1)[0]
    last = broker.consume(first, 2)[1]
    session.acknowledge_up_through(middle.delivery)
    assert broker.heard() == ["ACK 2.2", "ACK 3.1?"]
    session.acknowledge(last.delivery)
    assert broker.heard() == ["ACK 2.4?"]


def test_this_message_only_is_said_to_be_so() -> None:
    broker = Broker()
    session = broker.session(CLIENT)
    messages = broker.consume(broker.consumer(session), 3)
    session.acknowledge_this(messages[1].delivery)
    (ack,) = broker.hears()
    assert (ack.headers["id"], ack.headers["ack"]) == ("2.2", "client-individual") and ack.receipt is not None
    session.acknowledge(messages[0].delivery)
    assert broker.heard() == ["ACK 2.3?"]


@pytest.mark.parametrize("mode", [AUTO, DUPS_OK, NO_ACKNOWLEDGE, TRANSACTED])
def test_a_session_that_acknowledges_by_itself_ignores_acknowledge_and_refuses_the_finer_ones(mode: AcknowledgeMode) -> None:
    broker = Broker()
    session = broker.session(mode)
    message = broker.consume(broker.consumer(session))[0]
    broker.hears()
    assert session.acknowledge(message.delivery) is None
    with pytest.raises(IllegalStateException, match=r"AcknowledgeMode.CLIENT or INDIVIDUAL"):
        session.acknowledge_this(message.delivery)
    with pytest.raises(IllegalStateException, match=r"AcknowledgeMode\.CLIENT"):
        session.acknowledge_up_through(message.delivery)
    assert broker.heard() == []


def test_individual_acknowledges_this_message_and_nothing_up_to_it() -> None:
    broker = Broker()
    session = broker.session(INDIVIDUAL)
    message = broker.consume(broker.consumer(session), 2)[1]
    session.acknowledge_this(message.delivery)
    assert broker.heard() == ["ACK 2.2?"]
    with pytest.raises(IllegalStateException):
        session.acknowledge_up_through(message.delivery)
