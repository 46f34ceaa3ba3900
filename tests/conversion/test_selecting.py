"""A selector says the same of a message whoever asks: how its strings are read depends on the protocol that it came by."""

from __future__ import annotations

import pytest

from broker_core.conversion import decode
from broker_core.engine.limits import Limits
from broker_core.engine.message import Encoding, Header, Message
from broker_core.engine.properties import Properties, takes
from broker_core.engine.selector import compile_selector
from broker_core.engine.shard import Shard
from broker_core.engine.subscription import Filter
from tests.amqp.messages import message, written

SHARD = Shard(Limits(), "here", decode)


def by_stomp(lines: bytes) -> Message:
    made = Message(Header(lines, encoding=Encoding.STOMP), b"", len(lines))
    made.sequence, made.accepted_at = 1, 0
    return made


def matches(selector: str, sent: Message) -> bool:
    return takes(Filter(compile_selector(selector)), Properties(SHARD, sent))


@pytest.mark.parametrize("lines", [b"n:7\nurgent:true\nratio:0.5", b"n:7\nurgent:true\nratio:0.5\nproperty-types:n=int,urgent=bool,ratio=float"])
@pytest.mark.parametrize("selector", ["n > 5", "n = 7", "n BETWEEN 7 AND 8", "urgent = TRUE", "urgent", "ratio < 1", "n + ratio = 7.5", "n = '7'"])
def test_headers_of_stomp_are_what_they_look_like(lines: bytes, selector: str) -> None:
    assert matches(selector, by_stomp(lines))


@pytest.mark.parametrize(
    ("selector", "value", "matched"),
    [("n > 5", 7, True), ("n > 5", "7", False), ("n = '7'", "7", True), ("n = '7'", 7, False), ("n", "true", False)],
)
def test_properties_of_amqp_are_what_their_sender_made_them(selector: str, value: object, matched: bool) -> None:
    assert matches(selector, message(written(n=value))) is matched
