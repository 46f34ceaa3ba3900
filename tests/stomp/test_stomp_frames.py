"""The grammar: what is a frame, what is not, and what may be kept of one that has not ended."""

from __future__ import annotations

import pytest

from broker_core.stomp.frames import PART, Parser
from broker_core.stomp.limits import Limits
from broker_core.stomp.sections import CLIENT_COMMANDS, SERVER_COMMANDS, Malformed
from tests.stomp.conversation import Cut, Frame, parse, whole

SMALL = Limits(header_octets_max=200, headers_max=5, line_octets_max=60, body_octets_max=1000, large_body_octets=100, part_octets_max=150)


def client_parser(version: str = "1.2", limits: Limits | None = None) -> Parser:
    parser = Parser(limits or Limits(), CLIENT_COMMANDS)
    parser.version = version
    return parser


def refusal(octets: bytes, cut: Cut, version: str = "1.2", limits: Limits | None = None) -> str:
    with pytest.raises(Malformed) as refused:
        parse(client_parser(version, limits), octets, cut)
    return refused.value.sentence


# -- what breaks the grammar --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("octets", "sentence"),
    [
        (b"HELLO\n\n\0", "'HELLO' is not a STOMP command"),
        (b"send\ndestination:a\n\n\0", "'send' is not a STOMP command"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03abcdefghijklmnop", "the frame does not start with a command"),
        (b"SEND\0\n\n", "the frame does not start with a command"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "'GET / HTTP/1.1' is not a STOMP command"),
        (b"this is no command at all, and it never ends", "the frame does not start with a command"),
        (b"\0", "a NUL octet stands between frames"),
        (b"ACK\nid:1\n\n\0\0", "a NUL octet stands between frames"),
        (b"SEND\ndestination:a\0b\n\nx\0", "a NUL octet stands in a header section"),
        (b"SEND\ndestination\n\nx\0", "header line 1 of SEND has no colon"),
        (b"SEND\ndestination:a\n:b\n\nx\0", "header line 2 of SEND has no name"),
        (b"SEND\ndestination:a:b\nno colon\n\nx\0", "header line 2 of SEND has no colon"),
        (b"SEND\ndestination:a\nfoo:b\\tc\n\nx\0", "header line 2 of SEND holds an undefined escape sequence"),
        (b"SEND\ndestination:a\nfoo:b\\\n\nx\0", "header line 2 of SEND holds an undefined escape sequence"),
        (b"SEND\ndestination:a\nreceipt:b\\t\n\nx\0", "header receipt of SEND holds an undefined escape sequence"),
        (b"SEND\ndestination:a\nreceipt:\xff\n\nx\0", "the headers of SEND are not valid UTF-8"),
        (b"SEND\ndestination:\xc3\x28\n\nx\0", "the header section is not valid UTF-8"),
        (b"SEND\ndestination:\xed\xa0\x80\n\nx\0", "the header section is not valid UTF-8"),
        (b"SEND\ndestination:a\ncontent-length:ten\n\nx\0", "header content-length is not a number of octets"),
        (b"SEND\ndestination:a\ncontent-length:-1\n\nx\0", "header content-length is not a number of octets"),
        (b"SEND\ndestination:a\ncontent-length: 1\n\nx\0", "header content-length is not a number of octets"),
        (b"SEND\ndestination:a\ncontent-length:\n\nx\0", "header content-length is not a number of octets"),
        ("SEND\ndestination:a\ncontent-length:\u0661\n\nx\0".encode(), "header content-length is not a number of octets"),
        (b"SEND\ndestination:a\ncontent-length:99999999999999999999\n\nx\0", "header content-length is not a number of octets"),
        (b"SEND\ndestination:a\ncontent-length:104857601\n\nx\0", "the body of 104857601 octets is larger than the 104857600 allowed"),
        (
            b"SEND\ndestination:a\ncontent-length:3\n\nabcd\0",
            "the body of SEND does not end with NUL after its content-length of 3",
        ),
        (b"ACK\nid:1\n\nbody\0", "ACK may not have a body"),
        (b"ACK\nid:1\ncontent-length:4\n\nbody\0", "ACK may not have a body"),
    ],
)
def test_what_is_no_frame_is_refused_with_a_sentence_of_its_own(octets: bytes, sentence: str, cut: Cut) -> None:
    assert refusal(octets, cut) == sentence


@pytest.mark.parametrize(
    ("octets", "sentence"),
    [
        (b"SEND\n" + b"a:b\n" * 6 + b"\n\0", "SEND has more than 5 header lines"),
        (b"SEND\na:" + b"x" * 60 + b"\n\n\0", "a header line is longer than 60 octets"),
        (b"SEND\nreceipt:" + b"-" * 61 + b"\n\n\0", "a header line of SEND is longer than 60 octets"),
        (b"SEND\n" + b"abc:defgh\n" * 21, "the header section is longer than 200 octets"),
        (b"SEND\na:b\ncontent-length:1001\n\n", "the body of 1001 octets is larger than the 1000 allowed"),
        (b"SEND\na:b\n\n" + b"x" * 1001, "the body is larger than the 1000 octets allowed"),
        (b"ACK\nid:1\n\n" + b"\n" * 65, "ACK may not have a body"),
    ],
)
def test_what_exceeds_a_limit_is_refused_naming_the_limit_and_before_the_frame_ends(octets: bytes, sentence: str, cut: Cut) -> None:
    assert refusal(octets, cut, limits=SMALL) == sentence


def test_the_receipt_asked_for_goes_with_the_refusal(cut: Cut) -> None:
    with pytest.raises(Malformed) as refused:
        parse(client_parser(), b"SEND\ndestination:a\nreceipt:r-1\nbad\n\nx\0", cut)
    assert refused.value.receipt == b"r-1"


def test_frames_before_a_malformed_one_are_not_lost() -> None:
    parser = client_parser()
    events = parser.events(b"ACK\nid:1\n\n\0SEND\nbad\n\n\0")
    assert next(events)[2] == b"1"
    with pytest.raises(Malformed):
        next(events)


# -- what is a frame ----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("command", sorted(CLIENT_COMMANDS))
def test_every_client_command_is_known(command: str, cut: Cut) -> None:
    assert parse(client_parser(), f"{command}\na:b\n\n\0".encode(), cut) == [Frame(command, {"a": "b"})]


@pytest.mark.parametrize("command", sorted(SERVER_COMMANDS))
def test_every_server_command_is_known_to_a_parser_for_clients(command: str, cut: Cut) -> None:
    parser = Parser(Limits(), SERVER_COMMANDS)
    assert parse(parser, f"{command}\na:b\n\n\0".encode(), cut) == [Frame(command, {"a": "b"})]


def test_a_body_with_a_content_length_may_hold_nul(cut: Cut) -> None:
    (frame,) = parse(client_parser(), b"SEND\ndestination:a\ncontent-length:5\n\na\0b\0c\0", cut)
    assert frame.body == b"a\0b\0c"


def test_a_body_without_a_content_length_ends_at_nul(cut: Cut) -> None:
    frames = parse(client_parser(), b"SEND\ndestination:a\n\nfirst\n\nline\0SEND\ndestination:b\n\n\0", cut)
    assert [frame.body for frame in frames] == [b"first\n\nline", b""]


def test_line_ends_between_frames_are_skipped(cut: Cut) -> None:
    frames = parse(client_parser(), b"\n\r\n\nSEND\ndestination:a\n\nx\0\n\n\r\nACK\nid:1\n\n\0\n", cut)
    assert [frame.command for frame in frames] == ["SEND", "ACK"]


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_lines_may_end_with_carriage_return_and_line_feed(version: str, cut: Cut) -> None:
    octets = b"SEND\r\ndestination:/queue/a\r\nreceipt:5\r\ncontent-length:4\r\n\r\na\r\nb\0\r\nACK\r\nid:1\r\n\r\n\0"
    assert parse(client_parser(version), octets, cut) == [
        Frame("SEND", {"destination": "/queue/a", "receipt": "5"}, b"a\r\nb"),
        Frame("ACK", {"id": "1"}),
    ]


def test_line_ends_may_be_mixed(cut: Cut) -> None:
    octets = b"SEND\ndestination:/queue/a\nreceipt:5\r\n\r\nbody\n\nmore\0" * 2
    assert parse(client_parser(), octets, cut) == [Frame("SEND", {"destination": "/queue/a", "receipt": "5"}, b"body\n\nmore")] * 2


def test_of_repeated_headers_the_first_counts(cut: Cut) -> None:
    octets = b"SEND\nfoo:World\nfoo:Hello\nreceipt:1\nreceipt:2\ncontent-length:2\ncontent-length:9\n\nab\0"
    assert parse(client_parser(), octets, cut) == [Frame("SEND", {"foo": "World", "receipt": "1"}, b"ab")]


def test_a_frame_of_the_specification_without_its_blank_line_is_understood(cut: Cut) -> None:
    frames = parse(client_parser(), b"DISCONNECT\nreceipt:77\n\0ACK\nid:1\n\n\0", cut)
    assert frames == [Frame("DISCONNECT", {"receipt": "77"}), Frame("ACK", {"id": "1"})]


def test_1_2_unescapes_four_sequences_in_names_and_values(cut: Cut) -> None:
    assert parse(client_parser("1.2"), b"SEND\na\\cb:c\\\\d\\ne\\rf\n\n\0", cut) == [Frame("SEND", {"a:b": "c\\d\ne\rf"})]


def test_1_1_does_not_know_the_escaped_carriage_return(cut: Cut) -> None:
    assert parse(client_parser("1.1"), b"SEND\na\\cb:c\\\\d\\ne\n\n\0", cut) == [Frame("SEND", {"a:b": "c\\d\ne"})]
    assert refusal(b"SEND\na:b\\r\n\n\0", cut, "1.1") == "header line 1 of SEND holds an undefined escape sequence"


def test_1_0_escapes_nothing_and_trims_values(cut: Cut) -> None:
    assert parse(client_parser("1.0"), b"SEND\ndestination: /queue/a\nfoo:b\\nc:d \n\n\0", cut) == [
        Frame("SEND", {"destination": "/queue/a", "foo": "b\\nc:d"})
    ]


@pytest.mark.parametrize("version", ["1.1", "1.2"])
def test_from_1_1_on_nothing_is_trimmed(version: str, cut: Cut) -> None:
    assert parse(client_parser(version), b"SEND\nfoo: bar \n\n\0", cut) == [Frame("SEND", {"foo": " bar "})]


@pytest.mark.parametrize("command", ["CONNECT", "STOMP"])
def test_the_connect_frame_is_never_unescaped(command: str, cut: Cut) -> None:
    assert parse(client_parser(), f"{command}\npasscode:a\\nb\\x:c\n\n\0".encode(), cut) == [Frame(command, {"passcode": "a\\nb\\x:c"})]


def test_header_values_are_utf_8(cut: Cut) -> None:
    octets = "SEND\ndestination:/queue/größe\nreceipt:Ωmega\n\nx\0".encode()
    assert parse(client_parser(), octets, cut) == [Frame("SEND", {"destination": "/queue/größe", "receipt": "Ωmega"}, b"x")]


# -- repetition, the fast path ------------------------------------------------------------------------------------------------------
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


# -- bodies too large to hold -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("size", [101, 150, 151, 299, 300, 301, 1000])
@pytest.mark.parametrize("sized", [True, False], ids=["with content-length", "without"])
def test_a_large_body_comes_in_parts_and_then_its_frame(size: int, sized: bool, cut: Cut) -> None:
    parser = client_parser(limits=SMALL)
    body = bytes(number % 251 + 1 for number in range(size))
    length = b"content-length:%d\n" % size if sized else b""
    octets = b"SEND\ndestination:a\nreceipt:9\n%b\n%b\0SEND\ndestination:b\n\nnext\0" % (length, body)
    events = []
    for chunk in cut(octets):
        for event in parser.events(chunk):
            events.append(event)
            if event[2] is None:
                assert parser.body_octets == size
        assert parser.kept_octets <= SMALL.header_octets_max + SMALL.large_body_octets
    *parts, large, following = events
    assert all(section is PART and 0 < len(octets) <= 150 for section, _, octets in parts)
    assert b"".join(octets for _, _, octets in parts) == body
    assert (large[0].headers, large[1], large[2]) == ({"destination": "a"}, b"9", None)
    assert following[2] == b"next"


def test_a_body_of_exactly_the_bound_is_not_large(cut: Cut) -> None:
    (frame,) = client_parser(limits=SMALL).events(b"SEND\ndestination:a\n\n%b\0" % (b"x" * 100))
    assert frame[2] == b"x" * 100


def test_closing_the_generator_keeps_what_it_has_not_looked_at() -> None:
    parser = client_parser()
    events = parser.events(b"ACK\nid:1\n\n\0ACK\nid:2\n\n\0ACK\nid:3")
    assert next(events)[2] == b"1"
    events.close()
    assert [body for _, _, body in parser.events(b"\n\n\0")] == [b"2", b"3"]


def test_whatever_is_sent_not_more_than_the_limits_is_kept() -> None:
    parser = client_parser(limits=SMALL)
    for chunk in (b"SEND\n", b"foo:barbarbar\n" * 4, b"x:y"):
        parse(parser, chunk, whole)
    assert parser.kept_octets == 64
    parse(parser, b"\n\n" + b"y" * 900, whole)
    assert parser.kept_octets <= SMALL.large_body_octets
