"""Sections that repeat: producers send the same one again and again, and what is met before is read faster, never otherwise."""

from __future__ import annotations

import pytest

from broker_core.stomp.frames import Parser
from broker_core.stomp.limits import Limits
from broker_core.stomp.sections import CLIENT_COMMANDS
from tests.stomp.conversation import SMALL, Cut, Frame, client_parser, parse, refusal


def test_repeated_sections_are_read_once_and_shared() -> None:
    prepared = []
    parser = Parser(Limits(), CLIENT_COMMANDS, lambda headers, lines: prepared.append(lines) or len(prepared))
    parser.version = "1.2"
    octets = b"".join(
        b"SEND\ndestination:%b\nreceipt:%d\ncontent-length:%d\n\n%b\0" % (destination, number, number, b"x" * number)
        for number in range(50)
        for destination in (b"a", b"b")
    )
    events = list(parser.events(octets))
    assert [receipt for _, receipt, _ in events] == [b"%d" % number for number in range(50) for _ in "ab"]
    assert [section.prepared for section, _, _ in events] == [1, 2] * 50
    assert prepared == [b"destination:a", b"destination:b"]
    assert all(len(body) == int(receipt) for _, receipt, body in events)


def test_a_section_that_only_begins_like_the_last_one_is_not_taken_for_it(cut: Cut) -> None:
    octets = (
        b"SEND\ndestination:a\nreceipt:1\n\nx\0"
        b"SEND\ndestination:a\nreceipt:2\nfoo:bar\n\ny\0"
        b"SEND\ndestination:a\nreceipt:3\n\nz\0"
        b"SEND\ndestination:a\n\n0\0"
        b"SEND\ndestination:ab\n\n1\0"
        b"SEND\ndestination:a\nreceipt:\\c\n\n2\0"
        b"SEND\ndestination:a\nreceipt:4\r\n\r\n3\0"
    )
    assert parse(client_parser(), octets, cut) == [
        Frame("SEND", {"destination": "a", "receipt": "1"}, b"x"),
        Frame("SEND", {"destination": "a", "receipt": "2", "foo": "bar"}, b"y"),
        Frame("SEND", {"destination": "a", "receipt": "3"}, b"z"),
        Frame("SEND", {"destination": "a"}, b"0"),
        Frame("SEND", {"destination": "ab"}, b"1"),
        Frame("SEND", {"destination": "a", "receipt": "\\c"}, b"2"),
        Frame("SEND", {"destination": "a", "receipt": "4"}, b"3"),
    ]


LENGTH_AND_RECEIPT = [
    b"SEND\ndestination:a\ncontent-length:%d\nreceipt:%b\n\n",
    b"SEND\nreceipt:%b\ncontent-length:%d\ndestination:a\n\n",
    b"SEND\ncontent-length:%d\ndestination:a\nreceipt:%b\nx:y\n\n",
    b"SEND\nreceipt:%b\ndestination:a\ncontent-length:%d\n\n",
]


@pytest.mark.parametrize("section", LENGTH_AND_RECEIPT)
def test_sections_that_differ_in_receipt_and_length_only_are_one(section: bytes, cut: Cut) -> None:
    parser = Parser(Limits(), CLIENT_COMMANDS, lambda headers, lines: lines)
    parser.version = "1.2"
    receipts = [b"1", b"2", b"333", b"a-b", b"\\c", b"4"]
    values = [(size, receipt) if section.find(b"%d") < section.find(b"%b") else (receipt, size) for size, receipt in enumerate(receipts)]
    octets = b"".join(section % pair + b"\0" * size + b"\0" for size, pair in enumerate(values))
    events = [event for chunk in cut(octets) for event in parser.events(chunk)]
    assert [(receipt, body) for _, receipt, body in events] == [(receipt, b"\0" * size) for size, receipt in enumerate(receipts)]
    assert len({id(known) for known, _, _ in events}) == 1


@pytest.mark.parametrize(
    ("second", "sentence"),
    [
        (b"SEND\ncontent-length:1001\nreceipt:2\n\n", "the body of 1001 octets is larger than the 1000 allowed"),
        (b"SEND\ncontent-length:1x\nreceipt:2\n\n", "header content-length is not a number of octets"),
        (b"SEND\ncontent-length:\nreceipt:2\n\n", "header content-length is not a number of octets"),
        (b"SEND\ncontent-length:1\nreceipt:\xff\n\n", "the headers of SEND are not valid UTF-8"),
        (b"SEND\ncontent-length:2\nreceipt:2\n\nabc\0", "the body of SEND does not end with NUL after its content-length of 2"),
        (b"SEND\ncontent-length:1\nreceipt\n\n", "header line 1 of SEND has no colon"),
    ],
)
def test_a_mistake_is_found_in_a_section_like_the_one_before_too(second: bytes, sentence: str, cut: Cut) -> None:
    before = b"SEND\ncontent-length:1\nreceipt:1\n\nx\0SEND\ncontent-length:2\nreceipt:2\n\nxy\0"
    assert refusal(before + second, cut, limits=SMALL) == sentence


def test_a_section_with_one_of_receipt_and_length_is_not_taken_for_one_with_both(cut: Cut) -> None:
    octets = (
        b"SEND\na:b\ncontent-length:2\nreceipt:0\n\nxx\0"
        b"SEND\na:b\ncontent-length:1\nreceipt:1\n\nx\0"
        b"SEND\na:b\ncontent-length:2\n\nxy\0"
        b"SEND\na:b\ncontent-length:3\n\nxyz\0"
        b"SEND\na:b\nreceipt:2\n\nx\0"
        b"SEND\na:b\nreceipt:3\ncontent-length:1\n\nx\0"
        b"SEND\na:b\ncontent-length:1\nreceipt:4\n\nx\0"
    )
    assert [(frame.headers.get("receipt"), frame.body) for frame in parse(client_parser(), octets, cut)] == [
        ("0", b"xx"),
        ("1", b"x"),
        (None, b"xy"),
        (None, b"xyz"),
        ("2", b"x"),
        ("3", b"x"),
        ("4", b"x"),
    ]


def test_sections_that_never_repeat_do_not_pile_up() -> None:
    parser = client_parser(limits=Limits(sections_max=10))
    for number in range(1000):
        parse(parser, b"SEND\ndestination:a\ncorrelation-id:%d\ncontent-length:0\n\n\0" % number)
    assert len(parser._sections._known) <= 10


def test_long_sections_are_not_remembered() -> None:
    parser = client_parser(limits=Limits(section_octets_max=100))
    parse(parser, b"SEND\ndestination:a\nfoo:%b\n\n\0" % (b"x" * 100))
    assert not parser._sections._known
