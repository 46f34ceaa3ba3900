"""What operators look for among messages."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from broker_core.engine.dead import FAILURES, ORIGIN, REASON
from broker_core.engine.message import Encoding, Header, Message, StoredBody
from broker_core.engine.message_filter import TEXT_CHARACTERS_MAX, InvalidFilter, MessageFilter, read_filter
from broker_core.engine.message_path import STEPS_MAX, InvalidPath, read_path
from broker_core.engine.properties import Properties

NOW = 1_000_000


class Broker:
    @staticmethod
    def decode(header: Header) -> dict[str, str]:
        return dict(line.split(":", 1) for line in header.octets.decode().split("\n") if line)

    @staticmethod
    def message_id(message: Message) -> str:
        return message.header.message_id or f"ID:test-{message.sequence}"


def message(
    headers: bytes = b"colour:red", body: bytes | StoredBody | None = b"", *, age: int = 0, failures: int = 0, flagged: bool = False, **added: Any
) -> Message:
    made = Message(Header(headers, annotations=json.dumps(added) if added else "", encoding=Encoding.STOMP), body, 100)
    made.sequence, made.position, made.destination, made.accepted_at = 7, 7, 1, NOW - age
    made.failures, made.redelivered = failures, flagged
    return made


def found(it: Message, content: Callable[[Message], bytes | None] | None = None, **arguments: Any) -> bool:
    wanted, property_of = read_filter(arguments), Properties(Broker(), it).__getitem__
    return wanted.matches(it, property_of, NOW) if content is None else wanted.matches(it, property_of, NOW, content)


def dead(reason: str = "EXPIRED", origin: str = "queue/orders", failures: int = 0, body: bytes = b"") -> Message:
    return message(body=body, **{REASON: reason, ORIGIN: origin, FAILURES: failures})


def why_not(**arguments: Any) -> tuple[str, str]:
    with pytest.raises(InvalidFilter) as refused:
        read_filter(arguments)
    assert str(refused.value) == f"{refused.value.field}: {refused.value.sentence}"
    return refused.value.field, refused.value.sentence


# -- what cannot be asked -----------------------------------------------------------------------------------------------------------
def test_a_misspelt_condition_is_refused_with_those_that_there_are() -> None:
    assert why_not(seletor="a = 1") == (
        "seletor",
        "there is no such condition; the conditions are accepted_from, accepted_to, age_max_ms, age_min_ms, attempts_max, attempts_min, group, json_path, "
        "json_value, message_id, origin, reason, selector, text",
    )


def test_a_selector_says_where_it_is_wrong() -> None:
    field, sentence = why_not(selector="colour = ")
    assert field == "selector"
    assert sentence.startswith("column 10: ")


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"text": "x" * (TEXT_CHARACTERS_MAX + 1)}, "text"),
        ({"text": 7}, "text"),
        ({"text": "\x00"}, "text"),
        ({"group": "\ud800"}, "group"),
        ({"age_min_ms": -1}, "age_min_ms"),
        ({"age_min_ms": True}, "age_min_ms"),
        ({"age_min_ms": 10, "age_max_ms": 9}, "age_min_ms"),
        ({"accepted_from": "2026-11-22T10:00:00Z"}, "accepted_from"),
        ({"accepted_to": -1}, "accepted_to"),
        ({"accepted_from": 5, "accepted_to": 5}, "accepted_from"),
        ({"attempts_max": 1.5}, "attempts_max"),
        ({"attempts_min": 4, "attempts_max": 3}, "attempts_min"),
        ({"reason": "BORED"}, "reason"),
        ({"origin": "orders"}, "origin"),
        ({"json_path": "a"}, "json_path"),
        ({"json_value": "a"}, "json_path"),
        ({"json_path": "a", "json_value": {}}, "json_value"),
        ({"json_path": "a", "json_value": "x" * 1025}, "json_value"),
        ({"json_path": "a..b", "json_value": 1}, "json_path"),
    ],
)
def test_what_is_out_of_bounds_is_refused_by_its_name(arguments: dict[str, Any], field: str) -> None:
    assert why_not(**arguments)[0] == field


@pytest.mark.parametrize("text", ["", "a[", "a..b", "a b", "a[0]b", "a[-1]", "a.b" * 100, ".".join(["a"] * (STEPS_MAX + 1))])
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(InvalidPath):
        read_path(text)


# -- what is found ------------------------------------------------------------------------------------------------------------------
def test_nothing_asked_finds_everything() -> None:
    assert read_filter({}).is_everything
    assert read_filter({"selector": " ", "text": "", "reason": ""}) == MessageFilter()
    assert found(message())


def test_a_selector_reads_headers_as_consumers_of_stomp_do() -> None:
    assert found(message(b"weight:12"), selector="weight > 9")
    assert not found(message(b"weight:12"), selector="weight > 12")
    assert found(dead(), selector="original_destination = 'queue/orders'")


def test_a_text_is_looked_for_in_headers_body_and_what_the_broker_added() -> None:
    assert found(message(b"colour:dark red"), text="dark red")
    assert found(message(b"colour:red"), text="colour:red")
    assert found(message(b"time:12\\c30"), text="12:30")
    assert found(message(body="größer".encode()), text="größer")
    assert found(dead(origin="queue/invoices"), text="queue/invoices")
    assert not found(message(b"colour:Red", b"red"), text="RED")


def test_a_large_body_is_not_looked_into_but_its_headers_are() -> None:
    assert not found(message(body=StoredBody(1, 1 << 20)), text="order")
    assert found(message(b"kind:order", StoredBody(1, 1 << 20)), text="order")
    assert not found(message(body=StoredBody(1, 1 << 20)), json_path="a", json_value=None)


@pytest.mark.parametrize(
    ("path", "value", "is_there"),
    [
        ("order.id", 7, True),
        ("$.order.id", 7.0, True),
        ("order.id", "7", False),
        ("order.id", True, False),
        ("order.one", True, True),
        ("order.one", 1, False),
        ("order.none", None, True),
        ("order.missing", None, False),
        ("items[1].sku", "b", True),
        ("items[2].sku", "b", False),
        ("items[*].sku", "b", True),
        ("items[*].sku", "c", False),
        ('["dotted.name"]', "x", True),
        ("order", 7, False),
        ("items.sku", "a", False),
    ],
)
def test_a_path_finds_what_stands_there(path: str, value: Any, is_there: bool) -> None:
    body = b'{"order": {"id": 7, "one": true, "none": null}, "items": [{"sku": "a"}, {"sku": "b"}], "dotted.name": "x"}'
    assert found(message(body=body), json_path=path, json_value=value) is is_there


@pytest.mark.parametrize("body", [b"", b"order.id", b'{"a": ', b"[" * 100_000, b'{"a": 1' + b"0" * 5000 + b"}", b"\xff\xfe{", b'"a"'])
def test_what_is_no_json_has_nothing_at_a_path(body: bytes) -> None:
    assert not found(message(body=body), json_path="a", json_value=1)


def test_a_body_of_another_kind_may_be_converted_first() -> None:
    assert found(message(body=b"\x00"), content=lambda _: b'{"a": 1}', json_path="a", json_value=1)
    assert not found(message(body=b'{"a": 1}'), content=lambda _: None, json_path="a", json_value=1)


def test_age_is_counted_from_where_it_is_now() -> None:
    assert found(message(age=1000), age_min_ms=1000, age_max_ms=1000)
    assert not found(message(age=999), age_min_ms=1000)
    assert not found(message(age=1001), age_max_ms=1000)


def test_an_instant_is_that_of_acceptance_whenever_one_looks() -> None:
    it = message(age=50)
    assert found(it, accepted_from=NOW - 50, accepted_to=NOW - 49)
    assert not found(it, accepted_from=NOW - 49)
    assert not found(it, accepted_to=NOW - 50)


def test_attempts_are_those_that_failed_or_one_if_it_may_have_left() -> None:
    assert found(message(failures=3), attempts_min=3, attempts_max=3)
    assert found(message(flagged=True), attempts_min=1)
    assert not found(message(), attempts_min=1)
    assert found(message(), attempts_max=0)


def test_a_dead_message_is_found_by_reason_origin_and_what_it_died_of() -> None:
    assert found(dead("UNDELIVERABLE", "queue/orders", 10), reason="UNDELIVERABLE", origin="queue/orders", attempts_min=10)
    assert not found(dead("EXPIRED"), reason="UNDELIVERABLE")
    assert not found(dead(origin="queue/orders"), origin="queue/invoices")
    assert not found(message(), reason="EXPIRED")
    assert not found(message(b"original-destination:queue/orders"), origin="queue/orders")


def test_a_message_is_found_by_its_identifier_or_its_group() -> None:
    assert found(message(), message_id="ID:test-7")
    assert not found(message(), message_id="ID:test-8")
    assert found(message(b"JMSXGroupID:a"), group="a")
    assert not found(message(b"JMSXGroupID:a"), group="b")
    assert not found(message(), group="a")


def test_all_that_is_asked_must_be_true() -> None:
    assert found(message(b"colour:red", b"order", age=5), selector="colour = 'red'", text="order", age_min_ms=5)
    assert not found(message(b"colour:red", b"order", age=4), selector="colour = 'red'", text="order", age_min_ms=5)
    assert not found(message(b"colour:blue", b"order", age=5), selector="colour = 'red'", text="order", age_min_ms=5)


# -- what it costs ------------------------------------------------------------------------------------------------------------------
def test_bodies_are_needed_only_where_they_are_looked_into() -> None:
    assert not read_filter({"selector": "a = 1", "origin": "queue/a", "age_min_ms": 1}).needs_body
    assert read_filter({"text": "a"}).needs_body
    assert read_filter({"json_path": "a", "json_value": 1}).needs_body


def test_effort_grows_with_what_is_looked_into() -> None:
    it = message(body=b"x")
    it.size = 1 << 18
    cheap, text, path = (read_filter(a).effort(it) for a in ({"reason": "EXPIRED"}, {"text": "a"}, {"json_path": "a", "json_value": 1}))
    assert cheap < 10 < text < path < 10_000
    it.body = StoredBody(1, 1 << 18)
    assert read_filter({"json_path": "a", "json_value": 1}).effort(it) < 10


@pytest.mark.parametrize(
    ("wanted", "of_sections"),
    [
        ({"selector": "colour = 'blue' AND JMSPriority > 3"}, True),
        ({"reason": "EXPIRED", "origin": "queue/orders"}, True),
        ({"selector": "JMSTimestamp > 5"}, False),
        ({"selector": "JMSMessageID = 'ID:1'"}, False),
        ({"selector": "colour = 'blue'", "age_min_ms": 5}, False),
        ({"accepted_to": 5}, False),
        ({"attempts_min": 1}, False),
        ({"message_id": "ID:1"}, False),
        ({"text": "blue"}, False),
    ],
)
def test_what_depends_on_sections_only_is_the_same_for_all_that_share_them(wanted: dict[str, object], of_sections: bool) -> None:
    assert read_filter(wanted).is_of_sections is of_sections
