"""What an operator may say of a link, and what is told of it."""

from __future__ import annotations

import pytest

from broker_core.foreign.definition import ForeignLink, problem
from broker_core.foreign.retrying import BackOff

FINE = {"host": "far.example", "port": 61613, "passcode": "s3cret", "takes": {"/queue/a": "queue/b"}}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"host": ""}, "name the host of the other broker"),
        ({"host": "a\nb"}, "host must be a text of at most 255 octets, without control characters"),
        ({"port": 0}, "port must be a port, 1 to 65535"),
        ({"port": True}, "port must be a port, 1 to 65535"),
        ({"tls": 1}, "tls must be true or false"),
        ({"certificates": "é"}, "certificates must be certificates in PEM, at most 65536 octets"),
        ({"passcode": "s3cret\0"}, "passcode must be a text of at most 255 octets, without control characters"),
        ({"heart_beat_ms": -1}, "heart_beat_ms must be 0, for none, or at most 3600000 ms"),
        ({"kind": "qpid"}, "kind must be one of surety, activemq, rabbitmq"),
        ({"persistent_reliability": "total"}, "persistent_reliability must be one of "),
        ({"takes": []}, "takes must be an object of far addresses and destinations here, at most 1000"),
        ({"takes": {"": "queue/b"}}, "takes must be an object whose names are far addresses"),
        ({"takes": {"/queue/a": "b"}}, "takes must be an object whose values are destinations of clients"),
        ({"takes": {"/queue/a": "queue/mq.sys.dmq"}}, "takes must be an object whose values are destinations of clients"),
        ({"colour": "red"}, "colour is not a link's; it has host, port, "),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(change: dict, sentence: str) -> None:
    told = problem("far", FINE | change)
    assert told.startswith(sentence) and "s3cret" not in told


@pytest.mark.parametrize("name", ["", "a b", "-a", "a" * 64, "a\n"])
def test_a_link_needs_a_name(name: str) -> None:
    assert problem(name, FINE) == "a link needs a name of 1 to 63 letters, digits, dots, dashes and underscores"


def test_what_can_be_is_a_link() -> None:
    assert problem("far", FINE) == ""
    link = ForeignLink("far", **FINE)
    assert (link.persistent_reliability, link.nonpersistent_reliability, link.kind, link.tls) == ("assured", "express", "surety", False)


def test_the_passcode_is_in_no_text() -> None:
    link = ForeignLink("far", **FINE)
    assert "s3cret" not in repr(link)
    assert link.redacted("user s3cret\nis\0 wrong " + "x" * 1000) == ("user *** is  wrong " + "x" * 1000)[:500].strip()


def test_a_link_is_tried_again_ever_later_up_to_half_a_minute_and_less_a_part_by_chance() -> None:
    back_off = BackOff()
    assert [back_off.failed(0) for _ in range(9)] == [250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]
    assert back_off.failed(0.999) == 15_014
    back_off.succeeded()
    assert back_off.failed(0) == 250
