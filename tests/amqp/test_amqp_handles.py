"""A handle may be used again as soon as its link was detached, before that is answered (transport 2.6.2)."""

from __future__ import annotations

import pytest

from broker_core.amqp.frames import frame
from broker_core.amqp.performatives import ACCEPTED, RECEIVER, SENDER, Attach, Begin, Close, Detach, Disposition, End, Flow, Performative, Source, Target
from tests.amqp.conversation import Client, bodies, message

DETACH = Detach(0, closed=False)


def consumer(name: str, address: str = "orders") -> Attach:
    return Attach(name, 0, RECEIVER, source=Source(address), target=Target())


def test_a_link_may_have_the_handle_of_one_whose_detach_is_not_answered(client: Client) -> None:
    client.produces()
    client.sends(message(b"a"))
    client.consumes(credit=0)
    heard = client.speaks(DETACH, consumer("next"), client.grants(0, 5))
    assert [type(each) for each in heard[:2]] == [Detach, Attach]
    assert heard[1].name == "next"
    assert bodies(heard) == [b"a"]


def test_it_may_have_the_name_too_and_end_at_once_and_so_may_one_more(client: Client) -> None:
    client.consumes(credit=0, name="sub")
    heard = client.speaks(DETACH, consumer("sub"), DETACH, consumer("last"), client.grants(0, 5, echo=True))
    assert [type(each) for each in heard] == [Detach, Attach, Detach, Attach, Flow]
    assert [each.name for each in heard if isinstance(each, Attach)] == ["sub", "last"]


def test_a_name_is_free_as_soon_under_another_handle(client: Client) -> None:
    client.consumes(credit=0, name="one")
    client.consumes(handle=1, credit=0, name="other")
    crossed = [Attach(name, handle, RECEIVER, source=Source("orders"), target=Target()) for handle, name in ((0, "other"), (1, "one"))]
    heard = client.speaks(DETACH, Detach(1, closed=False), *crossed, client.grants(0, 5), client.grants(1, 5))
    assert sorted(each.name for each in heard if isinstance(each, Attach) and each.source is not None) == ["one", "other"]
    assert [each.error for each in heard if isinstance(each, Detach)] == [None, None]


def test_a_producers_handle_is_free_as_well(client: Client) -> None:
    client.produces(handle=0)
    producer = Attach("p", 0, SENDER, source=Source(), target=Target(dynamic=True), initial_delivery_count=0)
    assert [type(each) for each in client.speaks(DETACH, producer, DETACH, consumer("c"))] == [Detach, Attach, Detach, Attach]


def test_what_is_wrong_with_it_ends_the_session_when_its_turn_comes(client: Client) -> None:
    client.consumes(credit=0)
    heard = client.speaks(DETACH, consumer("next"), consumer("once more"))
    assert [type(each) for each in heard] == [Detach, End]
    assert heard[-1].error.condition == "amqp:session:handle-in-use"
    assert [type(each) for each in client.speaks(End(), Begin(None, 0, 10, 10), consumer("again"))] == [Begin, Attach]


def test_only_so_much_is_kept_until_then() -> None:
    client = Client().opens()
    client.consumes(credit=0)
    said = b"".join(frame(0, each) for each in (DETACH, consumer("next"), *[client.grants(0, number) for number in range(20)]))
    client.says(said)
    assert client.hears_one(End).error.condition == "amqp:session:handle-in-use"


def test_the_window_that_came_with_its_credit_is_not_told_again_when_its_turn_comes() -> None:
    client = Client().opens()
    client.consumes(credit=0)
    client.consumes(handle=1, credit=10)
    late = Flow(0, 2, 0, 1000, 0, 0, 5)
    session = client.machine.sessions.by_channel[0]
    client.reads(b"".join(frame(0, each) for each in (DETACH, consumer("next"), late, Flow(0, 50, 0, 1000))))
    client.flush()
    assert [type(each) for each in client.hears()] == [Detach, Attach]
    assert session.room == 50


@pytest.mark.parametrize("ended", [End(), Flow(0, 10, 0, 10, 77)], ids=["by the peer", "for its mistake"])
def test_of_a_session_that_is_over_nothing_more_is_said(client: Client, ended: Performative) -> None:
    client.produces()
    client.sends(message(b"a"))
    client.consumes()
    client.hears()
    heard = client.speaks(Disposition(RECEIVER, 0, 0, False, ACCEPTED), Detach(0, True), ended)
    assert [type(each) for each in heard if not isinstance(each, Disposition | Detach)] == [End]
    assert type(heard[-1]) is End


def test_nor_on_the_next_one_of_its_channel() -> None:
    client = Client().opens()
    client.produces()
    client.sends(message(b"a"))
    client.consumes()
    client.hears()
    said = (Disposition(RECEIVER, 0, 0, False, ACCEPTED), Detach(0, True), End(), Begin(None, 0, 10, 10))
    assert [type(each) for each in client.speaks(*said)] == [End, Begin]


def test_a_handle_beyond_ours_ends_the_connection(client: Client) -> None:
    """Transport 2.7.2."""
    beyond = Attach("p", 65_536, SENDER, source=Source(), target=Target("q"), initial_delivery_count=0)
    (closed,) = client.speaks(beyond)
    assert isinstance(closed, Close)
    assert closed.error is not None
    assert closed.error.condition == "amqp:connection:framing-error"
