"""duplicate-id: what SEND says of it, that each message keeps its own, and that it takes no place among the sections that repeat."""

from __future__ import annotations

import pytest

from broker_core.engine.commands import Send, Transacted
from broker_core.engine.outputs import Confirmed
from broker_core.stomp.sections import SectionMemory
from tests.stomp.conversation import PEER, Client, Cut, connected


def send(*headers: bytes, receipt: bytes = b"", transaction: bytes = b"") -> bytes:
    lines = [b"SEND", b"destination:/queue/a", *headers]
    lines += [b"receipt:" + receipt] if receipt else []
    lines += [b"transaction:" + transaction] if transaction else []
    return b"\n".join(lines) + b"\ncontent-length:1\n\nx\0"


# -- refused ------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["duplicate-id", "_AMQ_DUPL_ID"])
@pytest.mark.parametrize(("value", "octets"), [("", 0), ("x" * 256, 256), ("ü" * 128, 256)])
def test_an_identifier_that_is_empty_or_too_long_is_refused_with_its_receipt(name: str, value: str, octets: int, cut: Cut) -> None:
    client = connected(cut)
    client.says(send(f"{name}:{value}".encode(), receipt=b"7"))
    error = client.error()
    assert error.headers["message"] == f"header {name} must have 1 to 255 octets, it has {octets}"
    assert error.headers["receipt-id"] == "7"


# -- understood ---------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("headers", "identifier"),
    [
        ((), ""),
        ((b"duplicate-id:1",), "1"),
        ((b"_AMQ_DUPL_ID:2",), "2"),
        ((b"_AMQ_DUPL_ID:2", b"duplicate-id:1"), "1"),
        ((b"duplicate-id:1", b"duplicate-id:2"), "1"),
        ((b"duplicate-id:a\\cb",), "a:b"),
        ((b"duplicate-id:" + b"x" * 255,), "x" * 255),
    ],
)
def test_it_is_read_under_both_of_its_names_and_sent_on(headers: tuple[bytes, ...], identifier: str, cut: Cut) -> None:
    (command,) = connected(cut).says(send(*headers))
    assert isinstance(command, Send)
    header = command.message.header
    assert header.duplicate_id == identifier
    assert all(line in header.octets for line in headers[:1])


def test_each_message_has_its_own_in_and_out_of_transactions(cut: Cut) -> None:
    client = connected(cut)
    client.says(b"BEGIN\ntransaction:t\n\n\0")
    for transaction in (b"", b"t"):
        frames = [send(b"duplicate-id:%d" % number, transaction=transaction) for number in (1, 2, 2, 3)]
        works = [command.work if isinstance(command, Transacted) else command for command in client.says(b"".join(frames + frames))]
        assert [work.message.header.duplicate_id for work in works] == list("12231223")  # type: ignore[union-attr]


def test_a_message_that_names_none_has_none_though_it_is_otherwise_like_the_one_before(cut: Cut) -> None:
    commands = connected(cut).says((send() + send(b"duplicate-id:1")) * 3)
    assert [command.message.header.duplicate_id for command in commands] == ["", "1"] * 3  # type: ignore[union-attr]


def test_a_million_of_them_do_not_push_out_what_repeats() -> None:
    memory = SectionMemory(sections_max=4)
    client = Client(memory=memory)
    client.connects()
    first = client.says(send(b"k:v") * 3)
    for number in range(100):
        client.says(send(b"duplicate-id:%d" % number) + send(b"_AMQ_DUPL_ID:%d" % number))
    assert sum(len(table) for table in memory.tables("1.2")) == 2
    (again,) = client.says(send(b"k:v"))
    assert again.message.header is first[0].message.header  # type: ignore[union-attr]


def test_what_is_dropped_gets_its_receipt_as_what_is_accepted(cut: Cut) -> None:
    client = connected(cut)
    client.says(send(b"duplicate-id:1", receipt=b"r1") + send(b"duplicate-id:1", receipt=b"r2"))
    client.gets(Confirmed(PEER, b"r1"), Confirmed(PEER, b"r2"))
    assert [frame.headers["receipt-id"] for frame in client.hears()] == ["r1", "r2"]
