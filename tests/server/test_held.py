"""Sends that wait for disk space, when their connections end."""

from __future__ import annotations

import pytest

from broker_core.engine.commands import Attach, CreateTemporary, End, EndTemporary, Grant, Lookup, PeerLost, Send, Settle, Transacted
from broker_core.engine.message import Encoding, Header, Message, Reliability, StoredBody
from broker_core.server import held
from broker_core.server.held import HeldSends

HEADER = Header(b"", 4, Reliability.ASSURED, 0, Encoding.STOMP)


def send(peer: int, body: bytes | StoredBody) -> Send:
    return Send(peer, None, "queue/a", Message(HEADER, body, 10))


def test_sends_of_a_connection_that_ended_are_kept_while_they_are_few() -> None:
    unwanted: list[int] = []
    waiting = HeldSends(unwanted.append, lambda _end: False)
    first = send(1, StoredBody(7, 10))
    assert waiting.hold([first, PeerLost(1)]) == [PeerLost(1)]
    assert waiting.release() == [first]
    assert unwanted == []


def test_a_large_body_of_a_send_that_is_dropped_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held, "ORPHANS_OCTETS_MAX", 0)
    unwanted: list[int] = []
    waiting = HeldSends(unwanted.append, lambda _end: False)
    others = send(2, StoredBody(8, 10))
    waiting.hold([send(1, StoredBody(7, 10)), send(1, b"small"), others, PeerLost(1)])
    assert unwanted == [7]
    assert waiting.release() == [others]


def test_behind_a_commit_that_places_messages_everything_of_its_peer_waits_in_order() -> None:
    waiting = HeldSends(lambda _body: None, lambda _end: True)
    part, commit, later, others = Transacted(1, b"t", Settle(1, 1, [1])), End(1, b"t", True), Settle(1, 1, (), 5), Settle(2, 2, [1])
    assert waiting.hold([part, commit, later, others]) == [part, others]
    assert waiting.release() == [commit, later]
    assert waiting.hold([later]) == [later]


def test_a_commit_of_acknowledgements_alone_frees_space_and_does_not_wait() -> None:
    waiting = HeldSends(lambda _body: None, lambda _end: False)
    assert waiting.hold([End(1, b"t", True)]) == [End(1, b"t", True)]


def test_links_that_open_behind_such_a_commit_have_their_credit_when_they_are_there() -> None:
    waiting = HeldSends(lambda _body: None, lambda _end: True)
    commit, attach, grant, others = End(1, b"t", True), Attach(1, 65537, "queue/a"), Grant(65537, 10, peer=1), Grant(131073, 10, peer=2)
    made, ended, sought = CreateTemporary(1, "temp-queue/s.1"), EndTemporary(1, "temp-queue/s.1"), Lookup(1, "s", None)
    assert waiting.hold([commit, attach, grant, others, made, ended, sought]) == [others]
    assert waiting.release() == [commit, attach, grant, made, ended, sought]
