"""Sections met before are recognised by shortcuts; whatever the shortcut, a parser that remembers reads the same as one that is new."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.stomp.frames import Parser
from broker_core.stomp.limits import Limits
from broker_core.stomp.sections import CLIENT_COMMANDS, Malformed, SectionMemory

DESTINATIONS = [b"/queue/a", b"/queue/b", b"/queue/aa"]


def _send(
    destination: bytes, body: bytes, receipt: bytes | None, said: bool, receipt_first: bool, transaction: bytes | None = None, last: bool = False
) -> bytes:
    receipt_line = b"" if receipt is None else b"receipt:" + receipt + b"\n"
    length = b"content-length:%d\n" % len(body) if said else b""
    pieces = (receipt_line, length) if receipt_first else (length, receipt_line)
    within = b"" if transaction is None else b"transaction:" + transaction + b"\n"
    pieces = (*pieces, within) if last else (within, *pieces)
    return b"SEND\ndestination:" + destination + b"\n" + b"".join(pieces) + b"\n" + body + b"\0"


frames = st.builds(
    _send,
    st.sampled_from(DESTINATIONS),
    st.sampled_from([b"", b"x", b"yy", b"z" * 12]),
    st.sampled_from([None, b"1", b"22", b"with\\ccolon"]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, b"t", b"u", b"with\\ccolon"]),
    st.booleans(),
)


def _parser(memory: SectionMemory | None = None) -> Parser:
    parser = Parser(Limits(), CLIENT_COMMANDS, lambda headers, lines: dict(headers))
    parser.version = "1.2"
    if memory is not None:
        parser.share(memory)
    return parser


def _read(parser: Parser, octets: bytes) -> list[tuple[object, bytes | None, bytes | None]]:
    return [(section.prepared, receipt, body) for section, receipt, body in parser.events(octets)]


def _read_within(parser: Parser, octets: bytes) -> list[tuple[object, bytes | None, bytes | None, bytes | None]]:
    return [(section.prepared, section.transaction, receipt, body) for section, receipt, body in parser.events(octets)]


@given(st.lists(frames, max_size=30).map(lambda sent: [frame for frame in sent for _ in range(3)]), st.integers(min_value=1, max_value=200))
def test_a_parser_that_remembers_reads_what_a_new_one_reads(sent: list[bytes], chunk: int) -> None:
    memory, octets = SectionMemory(sections_max=2), b"".join(sent)
    remembering = [_parser(memory), _parser(memory)]
    expected = [event for frame in sent for event in _read_within(_parser(), frame)]
    for parser in remembering:
        assert [event for start in range(0, len(octets), chunk) for event in _read_within(parser, octets[start : start + chunk])] == expected


def test_a_section_met_before_with_a_length_is_still_held_to_it() -> None:
    parser = _parser()
    for destination in (*DESTINATIONS, *DESTINATIONS, *DESTINATIONS):
        assert len(_read(parser, _send(destination, b"yy", b"1", True, True))) == 1
    with pytest.raises(Malformed, match="does not end with NUL after its content-length of 2"):
        _read(parser, _send(DESTINATIONS[0], b"yy", b"1", True, True)[:-1] + b"y\0\0\0")


def test_a_section_met_before_does_not_lend_its_length_to_one_without() -> None:
    parser = _parser()
    for _ in range(3):
        _read(parser, _send(b"/queue/a", b"yy", b"1", True, True))
    assert _read(parser, _send(b"/queue/a", b"longer", b"1", False, True)) == [({"destination": "/queue/a"}, b"1", b"longer")]


def test_a_length_left_out_is_not_taken_for_another_length() -> None:
    """The receipt stands before the length: without the length its value stands where one could be."""
    parser = _parser()
    _read(parser, b"SEND\nreceipt:1\ndestination:/queue/a\ncontent-length:5\n\nhello\0")
    for receipt in (b"2", b"3", b"4"):
        assert _read(parser, b"SEND\nreceipt:%b\ndestination:/queue/a\n\nhello\0" % receipt) == [({"destination": "/queue/a"}, receipt, b"hello")]


def test_another_headers_number_is_not_taken_for_a_length() -> None:
    parser = _parser()
    _read(parser, b"SEND\nx-account:42\ndestination:a\ncontent-length:5\n\nhello\0")
    _read(parser, b"SEND\nx-account:42\ndestination:a\n\nhello\0")
    (event,) = _read(parser, b"SEND\nx-account:5\ndestination:a\n\nhello\0")
    assert event == ({"x-account": "5", "destination": "a"}, None, b"hello")


def test_only_sections_of_bounded_length_are_remembered() -> None:
    memory = SectionMemory()
    parser = _parser(memory)
    parser.version = "1.0"
    parser.share(memory)
    for blanks in range(2000, 2010):
        _read(parser, b"SEND\ndestination:a\ncontent-length:%b0\n\n\0" % (b" " * blanks))
    known, whole = memory.tables("1.0")
    assert len(known) == 1
    assert not whole


def test_within_a_transaction_the_second_send_is_recognised_and_the_next_transactions_is_not() -> None:
    parser = _parser()
    read = [
        section
        for transaction in (b"t", b"u")
        for length in (2, 2, 5)
        for section, _, _ in parser.events(_send(b"/queue/a", b"z" * length, b"1", True, True, transaction))
    ]
    assert [section.transaction for section in read] == [b"t"] * 3 + [b"u"] * 3
    assert len({id(section) for section in read}) == 2
