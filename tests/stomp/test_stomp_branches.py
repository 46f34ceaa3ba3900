"""Branches of distributed transactions on the wire: BEGIN, COMMIT and ABORT with a xid, and what is sent to mq.sys.xa."""

from __future__ import annotations

import pytest

from broker_core.engine.branch import State
from broker_core.engine.commands import BeginBranch, EndBranch, ListBranches, Transacted, Verb
from broker_core.engine.message import Reliability
from broker_core.engine.outputs import Refused
from broker_core.engine.refusal import Refusal
from broker_core.stomp.sections import SectionMemory
from tests.stomp.conversation import PEER, SESSION, Client, Cut, byte_by_byte, connected, whole

VERSIONS = pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
XID = b"4660.0a1b.01"


def xa(*lines: bytes, body: bytes = b"") -> bytes:
    return b"\n".join([b"SEND", b"destination:/queue/mq.sys.xa", *lines]) + b"\n\n" + body + b"\0"


# -- BEGIN, COMMIT, ABORT -----------------------------------------------------------------------------------------------------------------
@VERSIONS
def test_a_branch_begins_with_its_xid_and_the_name_that_its_work_will_give(cut: Cut, version: str) -> None:
    client = connected(cut, version)
    (begin,) = client.says(b"BEGIN\ntransaction:t1\nxid:%b\nreceipt:5\n\n\0" % XID)
    assert isinstance(begin, BeginBranch)
    assert (begin.peer, begin.transaction, begin.xid, begin.again, begin.timeout) == (PEER, b"t1", XID.decode(), None, 0)
    client.confirm([begin])
    assert [frame.headers for frame in client.hears()] == [{"receipt-id": "5"}]


@pytest.mark.parametrize("written", [XID, XID.upper()])
def test_without_a_name_its_xid_is_the_name_and_its_work_says_so(cut: Cut, written: bytes) -> None:
    client = connected(cut)
    (begin,) = client.says(b"BEGIN\nxid:%b\n\n\0" % written)
    (send,) = client.says(b"SEND\ndestination:/queue/a\ntransaction:%b\n\nx\0" % written)
    assert isinstance(send, Transacted)
    assert begin.transaction == send.transaction == written


def test_large_digits_and_small_ones_are_the_same_xid(cut: Cut) -> None:
    (begin,) = connected(cut).says(b"BEGIN\nxid:%b\n\n\0" % XID.upper())
    assert begin.xid == XID.decode()


@pytest.mark.parametrize(("flag", "again"), [(b"join", State.ENDED), (b"resume", State.SUSPENDED)])
def test_a_branch_is_joined_or_resumed_with_a_flag(cut: Cut, flag: bytes, again: State) -> None:
    (begin,) = connected(cut).says(b"BEGIN\nxid:%b\nflag:%b\n\n\0" % (XID, flag))
    assert begin.again is again


def test_a_timeout_may_be_stated(cut: Cut) -> None:
    (begin,) = connected(cut).says(b"BEGIN\nxid:%b\ntimeout:2500\n\n\0" % XID)
    assert begin.timeout == 2500


@VERSIONS
@pytest.mark.parametrize(("phase", "verb"), [(b"prepare", Verb.PREPARE), (b"one", Verb.COMMIT_ONE), (b"two", Verb.COMMIT)])
def test_a_commit_names_its_phase(cut: Cut, version: str, phase: bytes, verb: Verb) -> None:
    (end,) = connected(cut, version).says(b"COMMIT\nxid:%b\nphase:%b\nreceipt:5\n\n\0" % (XID, phase))
    assert isinstance(end, EndBranch)
    assert (end.peer, end.xid, end.verb) == (PEER, XID.decode(), verb)


def test_an_abort_rolls_back(cut: Cut) -> None:
    (end,) = connected(cut).says(b"ABORT\nxid:%b\n\n\0" % XID)
    assert (end.xid, end.verb, end.token) == (XID.decode(), Verb.ROLL_BACK, None)


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (b"BEGIN\nxid:1.a.\nreceipt:5\n\n\0", "XAER_INVAL: header xid is '1.a.'"),
        (b"BEGIN\nxid:\nreceipt:5\n\n\0", "XAER_INVAL: header xid is ''"),
        (b"BEGIN\nxid:1.aa.\ntransaction:\nreceipt:5\n\n\0", "BEGIN has an empty header transaction"),
        (b"BEGIN\nxid:1.aa.\nflag:new\nreceipt:5\n\n\0", "XAER_INVAL: header flag is 'new', none of join, resume"),
        (b"BEGIN\nxid:1.aa.\ntimeout:-1\nreceipt:5\n\n\0", "XAER_INVAL: header timeout is '-1'"),
        (b"BEGIN\nxid:1.aa.\ntimeout:86400001\nreceipt:5\n\n\0", "XAER_INVAL: header timeout is '86400001'"),
        (b"COMMIT\nxid:1.aa.\nreceipt:5\n\n\0", "XAER_INVAL: header phase is '', none of prepare, one, two"),
        (b"COMMIT\nxid:1.aa.\nphase:three\nreceipt:5\n\n\0", "XAER_INVAL: header phase is 'three'"),
        (b"COMMIT\ntransaction:t\nphase:two\nreceipt:5\n\n\0", "XAER_INVAL: header phase is for branches of distributed transactions"),
        (b"ABORT\nxid:x\nreceipt:5\n\n\0", "XAER_INVAL: header xid is 'x'"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(frame: bytes, says: str, cut: Cut) -> None:
    client = connected(cut)
    assert client.says(frame) == []
    error = client.error()
    assert error.headers["message"].startswith(says)
    assert error.headers["receipt-id"] == "5"


@pytest.mark.parametrize("refusal", [each for each in Refusal if each.name.startswith(("XA_", "XAER_"))], ids=lambda each: each.name)
def test_a_refusal_has_its_name_of_xa(refusal: Refusal, cut: Cut) -> None:
    client = connected(cut)
    (end,) = client.says(b"COMMIT\nxid:%b\nphase:two\nreceipt:5\n\n\0" % XID)
    client.gets(Refused(PEER, end.token, refusal, "so it is"))
    error = client.error()
    assert (error.headers["message"], error.headers["receipt-id"]) == (refusal.name, "5")
    assert error.body.decode() == f"{refusal.value}: so it is"


# -- mq.sys.xa ----------------------------------------------------------------------------------------------------------------------------
@VERSIONS
@pytest.mark.parametrize("destination", [b"/queue/mq.sys.xa", b"mq.sys.xa"])
def test_recover_asks_for_a_message_to_its_reply_to(cut: Cut, version: str, destination: bytes) -> None:
    client = connected(cut, version)
    lines = (b"operation:recover", b"reply-to:/temp-queue/xa", b"correlation-id:c7", b"receipt:5", b"content-length:0")
    (asked,) = client.says(xa(*lines).replace(b"/queue/mq.sys.xa", destination))
    assert isinstance(asked, ListBranches)
    assert (asked.peer, asked.address, asked.after) == (PEER, f"temp-queue/{SESSION}.xa", "")
    assert sorted(asked.header.octets.split(b"\n")) == [b"content-type:text/plain", b"correlation-id:c7", b"operation:recover"]
    assert asked.header.reliability is Reliability.EXPRESS
    client.confirm([asked])
    assert [(frame.command, frame.headers) for frame in client.hears()] == [("RECEIPT", {"receipt-id": "5"})]
    assert not client.machine.wants_pause


def test_recover_may_go_on_behind_a_xid_and_answer_to_a_queue(cut: Cut) -> None:
    (asked,) = connected(cut).says(xa(b"operation:recover", b"reply-to:/queue/answers", b"after:%b" % XID))
    assert (asked.address, asked.after, asked.token) == ("queue/answers", XID.decode(), None)


@pytest.mark.parametrize(
    ("lines", "verb"),
    [
        ((b"operation:forget",), Verb.FORGET),
        ((b"operation:end",), Verb.END),
        ((b"operation:end", b"flag:success"), Verb.END),
        ((b"operation:end", b"flag:fail"), Verb.FAIL),
        ((b"operation:end", b"flag:suspend"), Verb.SUSPEND),
    ],
)
def test_other_operations_are_about_one_branch(cut: Cut, lines: tuple[bytes, ...], verb: Verb) -> None:
    client = connected(cut)
    for receipt in (b"1", b"2", b"3"):  # a section that repeats is recognised without being read
        (end,) = client.says(xa(*lines, b"xid:%b" % XID, b"receipt:%b" % receipt))
        assert (end.xid, end.verb, end.token.receipt) == (XID.decode(), verb, receipt)


def test_connections_that_remember_together_ask_each_for_itself(cut: Cut) -> None:
    memory = SectionMemory()
    for session in ("node1-1-7", "node1-1-8"):
        client = Client(memory=memory, session=session, cut=cut)
        client.connects()
        for _ in range(3):
            (asked,) = client.says(xa(b"operation:recover", b"reply-to:/temp-queue/xa"))
            assert asked.address == f"temp-queue/{session}.xa"


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (xa(b"receipt:5"), "header operation of SEND to mq.sys.xa is '', none of end, recover, forget"),
        (xa(b"operation:explode", b"receipt:5"), "header operation of SEND to mq.sys.xa is 'explode'"),
        (xa(b"operation:recover", b"receipt:5"), "operation recover needs header reply-to"),
        (xa(b"operation:recover", b"reply-to:/queue/mq.sys.dmq", b"receipt:5"), "header reply-to is '/queue/mq.sys.dmq', which belongs to the broker"),
        (xa(b"operation:recover", b"reply-to:/other/a", b"receipt:5"), "destination '/other/a' is none of"),
        (xa(b"operation:recover", b"reply-to:/queue/a", b"after:x", b"receipt:5"), "XAER_INVAL: header after is 'x'"),
        (xa(b"operation:forget", b"receipt:5"), "XAER_INVAL: header xid is ''"),
        (xa(b"operation:end", b"xid:1.aa.", b"flag:x", b"receipt:5"), "XAER_INVAL: header flag is 'x'"),
        (xa(b"operation:forget", b"xid:1.aa.", b"receipt:5", body=b"x"), "SEND to mq.sys.xa takes neither a body nor header transaction"),
        (xa(b"operation:forget", b"xid:1.aa.", b"transaction:t", b"receipt:5"), "SEND to mq.sys.xa takes neither a body nor header transaction"),
        (xa(b"operation:forget", b"xid:1.aa.", b"receipt:5", body=b"x" * 300_000), "SEND to mq.sys.xa takes neither"),
    ],
)
def test_what_makes_no_sense_there_is_refused_with_a_sentence(frame: bytes, says: str, cut: Cut) -> None:
    client = connected(cut if len(frame) < 1000 else whole)
    client.says(frame)
    error = client.error()
    assert error.headers["message"].startswith(says)
    assert error.headers["receipt-id"] == "5"


def test_what_was_said_byte_by_byte_is_the_same() -> None:
    client = connected(byte_by_byte)
    (end,) = client.says(xa(b"operation:forget", b"xid:%b" % XID))
    assert end.verb is Verb.FORGET
