"""What a SEND says, and whether the broker's word is waited for (checklist items 13 to 18, 87 to 90, 111 to 118)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from broker_core.client import (
    AcknowledgeMode,
    BytesMessage,
    DeliveryMode,
    IllegalStateException,
    InvalidDestinationException,
    JMSException,
    MapMessage,
    Message,
    MessageFormatException,
    Queue,
    Reliability,
    TemporaryQueue,
    TextMessage,
    Topic,
)
from broker_core.client.machine import Confirmation, ProducerMachine
from broker_core.client.machine.window import MESSAGES_MAX, OCTETS_MAX
from broker_core.client.settings import PROFILES, Profile
from tests.client.broker import INSTANT, Broker, Frame

NON_PERSISTENT, PERSISTENT = DeliveryMode.NON_PERSISTENT, DeliveryMode.PERSISTENT


def sent(broker: Broker, message: Message | None = None, producer: ProducerMachine | None = None, **options: object) -> Frame:
    """The frame that a message becomes."""
    producer = producer or broker.producer(broker.session())
    producer.send(message or TextMessage("hello"), INSTANT, **options)  # type: ignore[arg-type]
    (frame,) = broker.hears()
    return frame


def test_a_name_by_which_the_broker_knows_a_duplicate_is_a_property_like_others() -> None:
    message = TextMessage("x")
    message.properties["_AMQ_DUPL_ID"] = "basket-17"
    assert sent(Broker(), message).headers["_AMQ_DUPL_ID"] == "basket-17"


# -- waiting --------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("ack_on_produce", "mode", "waits"),
    [
        (None, PERSISTENT, True), (None, NON_PERSISTENT, False), (True, PERSISTENT, True), (True, NON_PERSISTENT, True),
        (False, PERSISTENT, False), (False, NON_PERSISTENT, False),
    ],
)  # fmt: skip
def test_persistent_sends_wait_for_the_broker_unless_the_factory_says_otherwise(ack_on_produce: bool | None, mode: DeliveryMode, waits: bool) -> None:
    broker = Broker(ack_on_produce=ack_on_produce)
    confirmation = broker.producer(broker.session()).send(TextMessage("x"), INSTANT, delivery_mode=mode)
    (frame,) = broker.hears()
    assert (confirmation is not None) is waits is (frame.receipt is not None)
    if confirmation is not None:
        assert not confirmation.is_settled
        broker.confirms(frame)
        assert confirmation.is_settled and confirmation.error is None


def test_a_send_in_a_transaction_waits_for_nothing_as_its_commit_does() -> None:
    broker = Broker()
    session = broker.session(AcknowledgeMode.SESSION_TRANSACTED)
    producer = broker.producer(session)
    assert producer.send(TextMessage("x"), INSTANT) is None
    assert broker.heard() == ["BEGIN 1t1", "SEND /queue/a in 1t1"]


def test_a_completion_listener_is_told_instead_of_waiting_whatever_the_mode() -> None:
    told: list[tuple[Message, JMSException | None]] = []
    broker = Broker(ack_on_produce=False)
    session = broker.session()
    message = TextMessage("x")
    assert broker.producer(session).send(message, INSTANT, delivery_mode=NON_PERSISTENT, completion=lambda *what: told.append(what)) is None
    assert session.completing == 1
    broker.confirms()
    completions = broker.client.take_completions()
    tell(completions)
    assert told == [(message, None)]
    assert session.completing == 1  # until the listeners have returned
    broker.client.completed(completions)
    assert session.completing == 0


def tell(completions: list[Confirmation]) -> None:
    for each in completions:
        assert each.completion is not None and each.message is not None
        each.completion(each.message, each.error)


def test_listeners_are_told_in_the_order_of_the_answers_and_of_the_loss_of_the_connection() -> None:
    told: list[tuple[str, str]] = []
    broker = Broker()
    producer = broker.producer(broker.session())
    for text in ("a", "b", "c"):
        producer.send(TextMessage(text), INSTANT, completion=lambda message, error: told.append((message.body, error.error_code if error else "")))
    first, second, _ = broker.hears()
    broker.confirms(second, first)
    broker.loses_the_connection()
    tell(broker.client.take_completions())
    assert told == [("b", ""), ("a", ""), ("c", "CONNECTION_LOST")]


def test_a_send_whose_answer_never_comes_is_in_doubt() -> None:
    broker = Broker()
    confirmation = broker.producer(broker.session()).send(TextMessage("x"), INSTANT)
    broker.loses_the_connection()
    assert confirmation is not None
    with pytest.raises(JMSException, match="may or may not have been stored") as lost:
        confirmation.check()
    assert lost.value.error_code == "CONNECTION_LOST"


def test_no_more_is_under_way_than_the_broker_reads_ahead() -> None:
    broker = Broker()
    producer = broker.producer(broker.session())
    for _ in range(MESSAGES_MAX):
        assert not broker.client.window.is_full
        producer.send(TextMessage("x"), INSTANT, completion=lambda *_: None)
    assert broker.client.window.is_full
    frames = broker.hears()
    broker.confirms(frames[0])
    assert not broker.client.window.is_full
    broker.confirms(*frames[1:])
    producer.send(BytesMessage(b"x" * OCTETS_MAX), INSTANT)
    assert broker.client.window.is_full
    broker.confirms()
    assert (broker.client.window.messages, broker.client.window.octets) == (0, 0)


# -- headers --------------------------------------------------------------------------------------------------------------------------
def test_a_message_says_what_it_is_in_headers_that_anybody_can_read() -> None:
    message = TextMessage("grüß dich")
    message.jms_correlation_id, message.jms_type, message.jms_reply_to = "c:1", "greeting", Topic("answers")
    message.properties.update({"count": 3, "ok": True, "ratio": 0.5, "name": "a:b"})
    frame = sent(Broker(), message)
    assert frame.body.decode() == "grüß dich"
    assert {name: value for name, value in frame.headers.items() if name != "receipt"} == {
        "destination": "/queue/a", "persistent": "true", "content-type": "text/plain;charset=utf-8", "correlation-id": "c:1",
        "type": "greeting", "reply-to": "/topic/answers", "count": "3", "ok": "true", "ratio": "0.5", "name": "a:b",
        "property-types": "count=int,ok=bool,ratio=float",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("message", "content_type", "body"),
    [
        (TextMessage(""), "text/plain;charset=utf-8", b""), (BytesMessage(b"\0\xff"), "application/octet-stream", b"\0\xff"),
        (MapMessage({"a": [1, None]}), "application/json", b'{"a":[1,null]}'), (Message(), None, b""),
    ],
)  # fmt: skip
def test_each_kind_of_message_has_its_content_type(message: Message, content_type: str | None, body: bytes) -> None:
    frame = sent(Broker(), message)
    assert (frame.headers.get("content-type"), frame.body) == (content_type, body)


def test_the_application_can_name_another_content_type() -> None:
    message = TextMessage("<p>")
    message.content_type = "text/html"
    assert sent(Broker(), message).headers["content-type"] == "text/html"


def test_priority_time_to_live_and_delay_are_the_producers_or_the_sends() -> None:
    broker = Broker()
    producer = broker.producer(broker.session())
    plain = sent(broker, producer=producer).headers
    assert not plain.keys() & {"priority", "expires", "delay"}
    producer.set_priority(7)
    producer.set_time_to_live(1.5)
    producer.set_delivery_delay(0.25)
    message = TextMessage("x")
    headers = sent(broker, message, producer).headers
    assert (headers["priority"], headers["expires"], headers["delay"]) == ("7", str(INSTANT + 1500), "250")
    assert (message.jms_priority, message.jms_expiration, message.jms_delivery_time) == (7, INSTANT + 1500, INSTANT + 250)
    headers = sent(broker, producer=producer, priority=4, time_to_live=0, delivery_mode=NON_PERSISTENT).headers
    assert not headers.keys() & {"priority", "expires", "persistent"}


def test_what_an_application_writes_into_the_fields_of_the_provider_has_no_effect() -> None:
    message = TextMessage("x")
    message.jms_delivery_mode, message.jms_priority, message.jms_expiration = NON_PERSISTENT, 9, 5
    headers = sent(Broker(), message).headers
    assert headers["persistent"] == "true" and not headers.keys() & {"priority", "expires"}
    assert (message.jms_delivery_mode, message.jms_priority, message.jms_expiration) == (PERSISTENT, 4, 0)
    assert (message.jms_destination, message.jms_timestamp) == (Queue("a"), INSTANT)


def test_the_factory_overrides_mode_priority_and_expiration() -> None:
    broker = Broker(override_delivery_mode=NON_PERSISTENT, override_priority=2, override_expiration=10.0)
    headers = sent(broker, priority=9, time_to_live=1).headers
    assert "persistent" not in headers
    assert (headers["priority"], headers["expires"]) == ("2", str(INSTANT + 10_000))


def test_overrides_spare_temporary_destinations_unless_told() -> None:
    for spared in (True, False):
        broker = Broker(override_priority=2, override_headers_to_temporary_destinations=not spared)
        headers = sent(broker, producer=ProducerMachine(broker.session(), TemporaryQueue("t"))).headers
        assert headers.get("priority") == (None if spared else "2")


def test_delivery_modes_stand_for_the_levels_that_the_factory_maps_them_to() -> None:
    assert "reliability" not in sent(Broker()).headers
    broker = Broker(**PROFILES[Profile.WEBSPHERE])
    assert sent(broker).headers["reliability"] == "reliable"
    assert sent(broker, delivery_mode=NON_PERSISTENT).headers["reliability"] == "express"
    assert sent(Broker(nonpersistent_reliability=Reliability.BEST_EFFORT), delivery_mode=NON_PERSISTENT).headers["reliability"] == "best-effort"
    assert sent(Broker(persistent_reliability=Reliability.AS_DESTINATION)).headers["reliability"] == "as-destination"


def test_the_factory_can_have_messages_say_who_sent_them() -> None:
    broker = Broker(set_jmsx_user_id=True, set_jmsx_app_id=True, set_jmsx_producer_txid=True, app_id="shop")
    headers = sent(broker).headers
    assert (headers["JMSXUserID"], headers["JMSXAppID"]) == ("guest", "shop") and "JMSXProducerTXID" not in headers
    session = broker.session(AcknowledgeMode.SESSION_TRANSACTED)
    broker.producer(session).send(TextMessage("x"), INSTANT)
    begin, send = broker.hears()
    assert send.headers["JMSXProducerTXID"] == begin.headers["transaction"] == send.headers["transaction"]


# -- mistakes -------------------------------------------------------------------------------------------------------------------------
def test_a_producer_without_a_destination_names_one_in_each_send() -> None:
    broker = Broker()
    anonymous = ProducerMachine(broker.session(), None)
    assert sent(broker, producer=anonymous, destination=Topic("t")).headers["destination"] == "/topic/t"
    with pytest.raises(InvalidDestinationException, match="name one in send"):
        anonymous.send(TextMessage("x"), INSTANT)
    with pytest.raises(IllegalStateException, match="create one without a destination"):
        broker.producer(broker.session()).send(TextMessage("x"), INSTANT, Queue("another"))
    with pytest.raises(InvalidDestinationException, match="a pattern"):
        anonymous.send(TextMessage("x"), INSTANT, Topic("prices.*"))
    with pytest.raises(InvalidDestinationException, match="use Queue"):
        anonymous.send(TextMessage("x"), INSTANT, "a")  # type: ignore[arg-type]
    assert broker.hears() == []


@pytest.mark.parametrize("priority", [-1, 10, 4.5, "4"])
def test_a_priority_is_a_number_from_0_to_9(priority: int) -> None:
    broker = Broker()
    producer = broker.producer(broker.session())
    with pytest.raises(JMSException, match="from 0 to 9"):
        producer.set_priority(priority)
    with pytest.raises(JMSException, match="from 0 to 9"):
        producer.send(TextMessage("x"), INSTANT, priority=priority)
    assert broker.hears() == []


@pytest.mark.parametrize("seconds", [-1, float("inf"), float("nan"), "5", 315_360_001])
def test_a_time_to_live_is_a_number_of_seconds(seconds: float) -> None:
    broker = Broker()
    producer = broker.producer(broker.session())
    with pytest.raises(JMSException, match="number of seconds"):
        producer.send(TextMessage("x"), INSTANT, time_to_live=seconds)
    with pytest.raises(JMSException, match="number of seconds"):
        producer.set_delivery_delay(seconds)
    assert broker.hears() == []


@pytest.mark.parametrize(
    "wrong",
    [
        lambda message: setattr(message, "text", "\ud800"), lambda message: setattr(message, "jms_type", "\ud800"),
        lambda message: message.properties.update({f"p{n}": "x" for n in range(300)}), lambda message: message.properties.update({"p": "x" * 20_000}),
        lambda message: message.properties.update({f"p{n}": "x" * 16_000 for n in range(5)}),
    ],
)  # fmt: skip
def test_a_message_that_the_broker_would_end_the_connection_for_is_refused_before_anything_is_written(wrong: Callable[[Message], None]) -> None:
    broker = Broker()
    session = broker.session(AcknowledgeMode.SESSION_TRANSACTED)
    message = TextMessage("x")

    def send() -> None:
        wrong(message)
        broker.producer(session).send(message, INSTANT)

    with pytest.raises(MessageFormatException):
        send()
    assert broker.hears() == []
    assert session.commit() is None
