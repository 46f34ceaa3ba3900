"""Levels of reliability: what delivery modes stand for, by the factory's word in CONNECT, by the account's, and without either."""

from __future__ import annotations

import pytest

from broker_core.engine.commands import Send
from broker_core.engine.outputs import Refused
from broker_core.engine.message import Header, Reliability
from broker_core.engine.refusal import Refusal
from broker_core.stomp.escaping import read_canonical
from broker_core.engine.levels import UNMAPPED, LevelMapping
from broker_core.stomp.login import Login
from broker_core.stomp.sections import SectionMemory
from tests.stomp.conversation import PEER, SESSION, Client, Cut, whole

BEST_EFFORT, EXPRESS, RELIABLE_NP, RELIABLE, ASSURED = Reliability


def client(connect: bytes = b"", account: LevelMapping = UNMAPPED, cut: Cut = whole, memory: SectionMemory | None = None) -> Client:
    """Logged in."""
    opened = Client(cut=cut, memory=memory)
    assert [type(event) for event in opened.says(b"CONNECT\naccept-version:1.2\nhost:/\n" + connect + b"\n\0")] == [Login]
    opened.machine.accept("guest", SESSION, opened.now, account)
    opened.hears()
    return opened


def sends(sender: Client, headers: bytes) -> Header:
    (send,) = sender.says(b"SEND\ndestination:a\n" + headers + b"\nbody\0")
    assert isinstance(send, Send)
    return send.message.header


# -- refused ----------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("mode", ["persistent", "nonpersistent"])
@pytest.mark.parametrize("level", ["total", "ASSURED", "5", "x" * 1000])
def test_a_mapping_to_no_level_is_refused_at_connect(mode: str, level: str, cut: Cut) -> None:
    refused = Client(cut=cut)
    assert refused.says(f"CONNECT\naccept-version:1.2\nhost:/\n{mode}-reliability:{level}\n\n\0".encode()) == []
    sentence = f"header {mode}-reliability of CONNECT is none of best-effort, express, reliable-np, reliable, assured, as-destination"
    assert refused.error().headers["message"] == sentence


def test_a_level_above_the_destinations_maximum_is_an_error_that_says_which(cut: Cut) -> None:
    sender = client(cut=cut)
    (send,) = sender.says(b"SEND\ndestination:a\nreliability:assured\nreceipt:1\n\nbody\0")
    assert isinstance(send, Send)
    sender.gets(Refused(PEER, send.token, Refusal.RELIABILITY_EXCEEDED, "queue/a takes at most express, the message asks for assured"))
    error = sender.error()
    assert (error.headers["message"], error.headers["receipt-id"]) == ("reliability too high", "1")
    assert error.body == (
        b"the message asks for a higher reliability than the destination's maximum: queue/a takes at most express, the message asks for assured"
    )


# -- understood ---------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("headers", "level", "stated"),
    [
        (b"", EXPRESS, False), (b"persistent:false\n", EXPRESS, True), (b"persistent:true\n", ASSURED, True),
        (b"reliability:reliable\n", RELIABLE, True), (b"reliability:as-destination\n", EXPRESS, False),
        (b"reliability:as-destination\npersistent:true\n", ASSURED, False),
    ],
)  # fmt: skip
def test_without_a_mapping_who_names_neither_mode_nor_level_leaves_it_to_the_destination(headers, level, stated, cut) -> None:
    header = sends(client(cut=cut), headers)
    assert (header.reliability, header.stated) == (level, stated)


@pytest.mark.parametrize(
    ("connect", "account", "headers", "level", "stated"),
    [
        (b"persistent-reliability:reliable\n", UNMAPPED, b"persistent:true\n", RELIABLE, True),
        (b"persistent-reliability:reliable\n", UNMAPPED, b"persistent:false\n", EXPRESS, True),
        (b"nonpersistent-reliability:reliable-np\n", UNMAPPED, b"", RELIABLE_NP, True),
        (b"nonpersistent-reliability:best-effort\n", UNMAPPED, b"persistent:false\n", BEST_EFFORT, True),
        (b"persistent-reliability:as-destination\n", UNMAPPED, b"persistent:true\n", ASSURED, False),
        (b"", LevelMapping("reliable", "best-effort"), b"persistent:true\n", RELIABLE, True),
        (b"", LevelMapping("reliable", "best-effort"), b"", BEST_EFFORT, True),
        (b"persistent-reliability:assured\n", LevelMapping("reliable", "best-effort"), b"persistent:true\n", ASSURED, True),
        (b"persistent-reliability:assured\n", LevelMapping("reliable", "best-effort"), b"", BEST_EFFORT, True),
        (b"persistent-reliability:reliable\n", UNMAPPED, b"persistent:true\nreliability:express\n", EXPRESS, True),
        (b"persistent-reliability:reliable\n", UNMAPPED, b"persistent:true\nreliability:as-destination\n", ASSURED, False),
    ],
)
def test_the_header_counts_before_the_factory_and_the_factory_before_the_account(connect, account, headers, level, stated, cut) -> None:
    header = sends(client(connect, account, cut), headers)
    assert (header.reliability, header.stated) == (level, stated)


def test_consumers_are_told_the_level_that_a_mapping_gave(cut: Cut) -> None:
    sender = client(b"persistent-reliability:reliable\n", cut=cut)
    assert read_canonical(sends(sender, b"persistent:true\n").octets) == {"destination": "a", "persistent": "true", "reliability": "reliable"}
    assert read_canonical(sends(sender, b"reliability:as-destination\n").octets) == {"destination": "a"}
    assert read_canonical(sends(sender, b"reliability:express\nx:y\n").octets) == {"destination": "a", "reliability": "express", "x": "y"}


def test_what_one_connection_maps_is_no_other_ones(cut: Cut) -> None:
    memory = SectionMemory()
    plain, mapped = client(cut=cut, memory=memory), client(b"persistent-reliability:express\n", cut=cut, memory=memory)
    for _ in range(3):
        assert sends(mapped, b"persistent:true\n").reliability == EXPRESS
        assert sends(plain, b"persistent:true\n").reliability == ASSURED


def test_a_mapping_is_looked_at_once_for_messages_that_repeat() -> None:
    sender = client(b"persistent-reliability:reliable\n")
    assert len({id(sends(sender, b"persistent:true\n")) for _ in range(5)}) == 1
