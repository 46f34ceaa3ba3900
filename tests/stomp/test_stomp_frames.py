"""The grammar: what is a frame, what is not, and what may be kept of one that has not ended."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.stomp.frames import PART, Parser
from broker_core.stomp.limits import Limits
from broker_core.stomp.sections import CLIENT_COMMANDS, SERVER_COMMANDS, Malformed
from tests.stomp.conversation import SMALL, Cut, Frame, client_parser, parse, refusal, whole


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


@given(
    st.sampled_from([b"BEGIN", b"COMMIT", b"ABORT", b"ACK", b"NACK"]),
    st.lists(st.tuples(st.sampled_from([b"transaction", b"receipt", b"id", b"foo"]), st.sampled_from([b"1.2", b"t-1_a", b"", b"a\\cb"])), max_size=4),
    st.integers(min_value=1, max_value=50),
)
def test_frames_of_transactions_read_the_same_whatever_ends_their_lines(command: bytes, headers: list[tuple[bytes, bytes]], chunk: int) -> None:
    octets = b"\n".join([command, *(b"%b:%b" % header for header in headers), b"", b"\0"]) * 2
    cut = lambda stream: [stream[start : start + chunk] for start in range(0, len(stream), chunk)]  # noqa: E731
    (first, second) = parse(client_parser(), octets, cut)
    assert first == second
    assert [first] == parse(client_parser(), octets[: len(octets) // 2].replace(b"\n", b"\r\n"))
    assert first.headers == {name.decode(): value.decode().replace("\\c", ":") for name, value in reversed(headers)}
