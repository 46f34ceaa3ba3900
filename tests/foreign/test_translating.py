"""What is said at one broker, said at another."""

from __future__ import annotations

import pytest

from broker_core.engine.message import LEVEL_NAMES
from broker_core.foreign.definition import ACTIVEMQ, RABBITMQ, SURETY
from broker_core.foreign.translating import is_persistent, sending

NOW = 1_000_000
PLAIN = {"subscription": "0", "message-id": "ID:a-1", "ack": "1.1", "destination": "/queue/a", "timestamp": "999", "content-length": "3"}


def said(headers: dict[str, str], source: str = SURETY, target: str = SURETY) -> dict[str, str]:
    found = sending(PLAIN | headers, "/queue/there", NOW, source=source, target=target)
    assert len(dict(found)) == len(found), "a header is said twice"
    return dict(found)


@pytest.mark.parametrize("level", LEVEL_NAMES)
def test_the_level_that_the_broker_gave_counts_before_what_the_sender_said(level: str) -> None:
    for persistent in ("true", "false"):
        assert is_persistent({"reliability": level, "persistent": persistent}) == (level in ("reliable", "assured"))


@pytest.mark.parametrize(("value", "persistent"), [("true", True), ("TRUE", True), ("false", False), ("", False), ("yes", False)])
def test_without_a_level_the_mode_counts(value: str, persistent: bool) -> None:
    assert ("persistent" in said({"persistent": value})) == persistent
    assert is_persistent({}) is False
    assert is_persistent({"reliability": "as-destination", "persistent": "true"})


def test_levels_are_not_handed_on() -> None:
    assert "reliability" not in said({"reliability": "assured"})


def test_what_the_application_says_is_handed_on() -> None:
    application = {
        "correlation-id": "c", "type": "t", "content-type": "text/plain", "colour": "a:b\n\\", "JMSXGroupID": "g", "JMSXGroupSeq": "-1", "reply-to": "/topic/r",
        "priority": "9", "duplicate-id": "d",
    }  # fmt: skip
    found = said(application)
    assert application.items() <= found.items()
    assert {name: value for name, value in found.items() if name not in application} == {
        "destination": "/queue/there", "foreign-message-id": "ID:a-1", "foreign-timestamp": "999",
    }  # fmt: skip


def test_a_duplicate_is_known_by_the_messages_own_name_else_by_its_identifier() -> None:
    assert said({})["_AMQ_DUPL_ID"] == "ID:a-1"
    assert "_AMQ_DUPL_ID" not in said({"duplicate-id": "d"})
    assert said({"_AMQ_DUPL_ID": "d"})["_AMQ_DUPL_ID"] == "d"
    assert "_AMQ_DUPL_ID" not in said({"message-id": "i" * 256})
    assert "_AMQ_DUPL_ID" not in said({"message-id": "T_0@@session@@7"}, source=RABBITMQ)
    assert said({"amqp-message-id": "lasting"}, source=RABBITMQ)["_AMQ_DUPL_ID"] == "lasting"


def test_the_first_of_several_brokers_is_the_origin() -> None:
    found = said({"foreign-message-id": "ID:first-1", "foreign-timestamp": "1"})
    assert (found["foreign-message-id"], found["foreign-timestamp"]) == ("ID:first-1", "1")


def test_a_redelivery_is_told() -> None:
    assert said({"redelivered": "true"})["foreign-redelivered"] == "true"
    assert "foreign-redelivered" not in said({"redelivered": "false"})


@pytest.mark.parametrize("address", ["/temp-queue/x", "/reply-queue/amq.gen", "/remote-temp-queue/ID:x", "queue"])
def test_who_waits_at_one_connection_is_told_as_a_property(address: str) -> None:
    found = said({"reply-to": address})
    assert "reply-to" not in found and found["foreign-reply-to"] == address


def test_expiry_is_an_instant_and_for_rabbitmq_also_how_long() -> None:
    assert said({"expires": "1000500"}, target=ACTIVEMQ)["expires"] == "1000500"
    assert "expiration" not in said({"expires": "1000500"}, target=ACTIVEMQ)
    found = said({"expires": "1000500"}, target=RABBITMQ)
    assert (found["expires"], found["expiration"]) == ("1000500", "500")
    assert said({"expires": "5"}, target=RABBITMQ)["expiration"] == "0"
    assert said({"expiration": "500"}, source=RABBITMQ)["expires"] == "1000500"
    assert "expires" not in said({"expires": "0"}) | said({"expires": "soon"}) | said({"expiration": "x"}, source=RABBITMQ)


@pytest.mark.parametrize(
    "headers",
    [
        {"priority": "high"}, {"JMSXGroupSeq": "first"}, {"JMSXGroupID": "g" * 256}, {"duplicate-id": ""}, {"duplicate-id": "d" * 256},
        {"AMQ_SCHEDULED_CRON": "* *"}, {"delay": "7"}, {"x-delay": "7"}, {"expiration": "7"}, {"transaction": "t"}, {"receipt": "r"},
        {"JMS_SUN_DMQ_UNDELIVERED_REASON": "EXPIRED"},
    ],
)  # fmt: skip
def test_what_the_other_broker_would_refuse_or_misread_is_left_out(headers: dict) -> None:
    assert headers.keys().isdisjoint(said(headers))


def test_priorities_beyond_jms_are_its_highest() -> None:
    assert said({"priority": "255"})["priority"] == "9"
