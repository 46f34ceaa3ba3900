"""What the engine makes of messages of AMQP: their groups are known again from rows, selectors find fields and properties."""

from __future__ import annotations

from dataclasses import replace

import pytest

from broker_core.amqp.mapping import decode
from broker_core.amqp.performatives import MessageHeader, MessageProperties
from broker_core.engine.limits import Limits
from broker_core.engine.message import Message
from broker_core.engine.message_group import MessageGroup, recognize
from broker_core.engine.properties import Properties, takes
from broker_core.engine.selector import compile_selector
from broker_core.engine.shard import Shard
from broker_core.engine.subscription import Filter
from broker_core.engine.wishes import Wishes, wishes_of
from tests.amqp.messages import NOW, message, written

SHARD = Shard(Limits(), "here", decode)
PROPERTIES = MessageProperties("ID:mine", subject="order", correlation_id="c-1", creation_time=NOW - 5, group_id="g", group_sequence=0xFFFFFFFF)


def matches(selector: str, sent: Message) -> bool:
    return takes(Filter(compile_selector(selector)), Properties(SHARD, sent))


@pytest.mark.parametrize("properties", [PROPERTIES, MessageProperties("ID:mine"), None])
def test_rows_tell_their_groups(properties: MessageProperties | None) -> None:
    sent = message(written(properties=properties, count=1))
    expected = MessageGroup("g", closes=True) if properties is PROPERTIES else None
    assert sent.header.group == expected
    sent.header = replace(sent.header, group=None)
    recognize(SHARD, [sent])
    assert sent.header.group == expected


@pytest.mark.parametrize(
    "selector",
    [
        "JMSType = 'order'", "JMSCorrelationID = 'c-1'", f"JMSTimestamp = {NOW - 5}", "JMSMessageID = 'ID:mine'", "JMSXGroupID = 'g'", "JMSXGroupSeq = -1",
        "JMSPriority = 6", "JMSDeliveryMode = 'PERSISTENT'", "type = 'mine'", "count > 4 AND count < 6", "urgent = TRUE", "ratio = 0.5", "missing IS NULL",
    ],
)  # fmt: skip
def test_selectors_find_fields_and_properties(selector: str) -> None:
    sent = message(written(MessageHeader(True, 6), PROPERTIES, type="mine", count=5, urgent=True, ratio=0.5))
    assert matches(selector, sent)
    assert not matches(f"NOT ({selector})", sent)


def test_a_message_that_does_not_tell_when_it_was_sent_was_sent_when_it_came() -> None:
    assert matches(f"JMSTimestamp = {NOW}", message(written()))
    assert matches("JMSType IS NULL AND JMSCorrelationID IS NULL", message(written(type="x")))


def test_a_message_may_wish_what_becomes_of_it_when_it_dies() -> None:
    wishes = wishes_of(SHARD, message(written(JMS_SUN_PRESERVE_UNDELIVERED=True, JMS_SUN_TRUNCATE_MSG_BODY="true")).header)
    assert wishes == Wishes(preserve=True, truncate=True)


def test_what_the_broker_adds_is_seen_by_selectors() -> None:
    sent = message(written(PROPERTY="x"))
    sent.header.annotations = '{"original-destination":"queue/q"}'
    assert matches("original_destination = 'queue/q' AND PROPERTY = 'x'", sent)
