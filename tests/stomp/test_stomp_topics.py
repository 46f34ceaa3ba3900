"""SUBSCRIBE and UNSUBSCRIBE on topics: names, selectors, no-local, in our words and in those of ActiveMQ and RabbitMQ."""

from __future__ import annotations

import pytest

from broker_core.engine.commands import Attach, Detach, Unsubscribe
from broker_core.engine.outputs import Refused
from broker_core.engine.refusal import Refusal
from tests.stomp.conversation import PEER, Client, Cut, connected, message


def subscribe(client: Client, headers: bytes) -> Attach:
    (attach,) = client.says(b"SUBSCRIBE\nid:0\ndestination:/topic/a\nack:client\n%b\n\0" % headers)
    assert isinstance(attach, Attach)
    return attach


@pytest.mark.parametrize(
    ("headers", "name", "durable", "shared"),
    [
        (b"", "", False, False),
        (b"durable-subscription-name:d\n", "d", True, False),
        (b"activemq.subscriptionName:d\n", "d", True, False),
        (b"durable-subscriber-name:d\n", "d", True, False),
        (b"durable:true\nauto-delete:false\n", "0", True, True),
        (b"durable-subscription-name:d\nshared:true\n", "d", True, True),
        (b"subscription-name:v\nshared:true\n", "v", False, True),
    ],
)
def test_a_subscription_of_a_topic_is_what_its_headers_say(headers: bytes, name: str, durable: bool, shared: bool, cut: Cut) -> None:
    attach = subscribe(connected(cut), headers)
    assert (attach.address, attach.name, attach.durable, attach.shared) == ("topic/a", name, durable, shared)
    assert not attach.wanted


def test_a_selector_compares_headers_whatever_they_mean_as_numbers_too(cut: Cut) -> None:
    selector = subscribe(connected(cut), b"selector:weight > 3 AND region = 'north'\n").wanted.selector
    assert selector is not None
    assert selector.matches({"weight": "4", "region": "north"}.get, coerce=True)
    assert not selector.matches({"weight": "10", "region": "south"}.get, coerce=True)


def test_no_local_leaves_out_the_clients_own(cut: Cut) -> None:
    client = Client("1.2", cut)
    client.connects(b"client-id:me\n")
    assert subscribe(client, b"no-local:true\n").wanted.sender == "me"


@pytest.mark.parametrize(
    ("headers", "sentence"),
    [
        (b"selector:a =\n", "header selector is not valid"),
        (b"no-local:true\n", "header no-local of SUBSCRIBE needs a client: state header client-id in CONNECT"),
        (b"shared:true\n", "a shared subscription needs a name"),
        (b"subscription-name:v\n", "header subscription-name of SUBSCRIBE is for shared subscriptions"),
        (b"durable-subscription-name:\n", "header durable-subscription-name must have 1 to 255 characters"),
    ],
)
def test_a_bad_subscription_is_refused_naming_its_header(headers: bytes, sentence: str, cut: Cut) -> None:
    client = connected(cut)
    client.says(b"SUBSCRIBE\nid:0\ndestination:/topic/a\n%b\n\0" % headers)
    assert client.error().headers["message"].startswith(sentence)


def test_unsubscribing_closes_the_consumer_and_keeps_a_durable_subscription(cut: Cut) -> None:
    client = connected(cut)
    subscribe(client, b"durable-subscription-name:d\n")
    (detach,) = client.says(b"UNSUBSCRIBE\nid:0\n\n\0")
    assert isinstance(detach, Detach)


def test_unsubscribing_with_the_name_ends_it_for_good(cut: Cut) -> None:
    client = connected(cut)
    subscribe(client, b"durable-subscription-name:d\n")
    detach, end = client.says(b"UNSUBSCRIBE\nid:0\ndurable-subscription-name:d\nreceipt:3\n\n\0")
    assert isinstance(detach, Detach) and detach.token.receipt is None
    assert (end.peer, end.name, type(end)) == (PEER, "d", Unsubscribe)
    client.confirm([detach, end])
    assert [frame.headers for frame in client.hears()] == [{"receipt-id": "3"}]


def test_a_queues_consumer_has_no_durable_subscription_to_be_ended(cut: Cut) -> None:
    client = connected(cut)
    client.subscribes(b"client", b"0", b"/queue/a")
    client.says(b"UNSUBSCRIBE\nid:0\ndurable-subscription-name:d\n\n\0")
    assert client.error().headers["message"] == "id '0' of UNSUBSCRIBE is of a queue, which has no durable subscription to be ended"


def test_a_subscription_that_is_not_open_here_can_be_ended_too(cut: Cut) -> None:
    (end,) = connected(cut).says(b"UNSUBSCRIBE\nid:0\nactivemq.subscriptionName:d\n\n\0")
    assert end == Unsubscribe(PEER, "d")


def test_a_refused_subscription_says_why(cut: Cut) -> None:
    client = connected(cut)
    attach = subscribe(client, b"durable-subscription-name:d\n")
    client.gets(Refused(PEER, attach.token, Refusal.CLIENT_ID_REQUIRED, "topic/a", attach.link))
    assert client.error().headers["message"] == "client-id required"


@pytest.mark.parametrize("pattern", ["a.*.b", "*", "**", ">", "a.>", "a.**.b"])
def test_a_subscription_may_mean_all_topics_that_match_a_pattern(pattern: str, cut: Cut) -> None:
    client = connected(cut)
    (attach,) = client.says(f"SUBSCRIBE\nid:0\ndestination:/topic/{pattern}\ndurable-subscription-name:d\n\n\0".encode())
    assert (attach.address, attach.name, attach.durable) == (f"topic/{pattern}", "d", True)
    (detach, end) = client.says(b"UNSUBSCRIBE\ndurable-subscription-name:d\n\n\0")
    assert (type(detach), type(end)) == (Detach, Unsubscribe)


def test_a_message_of_a_pattern_names_the_topic_that_it_was_sent_to(cut: Cut) -> None:
    client = connected(cut)
    link = client.subscribes(b"client", b"0", b"/topic/a.*")
    client.is_delivered(link, message(b"destination:/topic/a.b"))
    (frame,) = client.hears()
    assert (frame.headers["destination"], frame.headers["subscription"]) == ("/topic/a.b", "0")


@pytest.mark.parametrize(
    ("destination", "sentence"),
    [
        ("/queue/a.*", "wildcards are for subscriptions of topics"),
        ("a.*", "wildcards are for subscriptions of topics"),
        ("/temp-topic/a.*", "wildcards are for subscriptions of topics"),
        ("/topic/a*", "a wildcard stands for whole levels, which are separated by dots"),
        ("/topic/a.>.b", "> stands at the end of a pattern; ** may stand before its end"),
    ],
)
def test_what_is_no_pattern_of_topics_is_refused(destination: str, sentence: str, cut: Cut) -> None:
    client = connected(cut)
    assert client.says(f"SUBSCRIBE\nid:0\ndestination:{destination}\n\n\0".encode()) == []
    assert client.error().headers["message"] == f"destination '{destination}' is not valid: {sentence}"


@pytest.mark.parametrize("destination", ["/topic/a.*", "/queue/*", "/topic/>"])
def test_nobody_sends_to_a_pattern(destination: str, cut: Cut) -> None:
    client = connected(cut)
    assert client.says(f"SEND\ndestination:{destination}\n\nx\0".encode()) == []
    assert client.error().headers["message"] == f"destination '{destination}' is not valid: wildcards are for SUBSCRIBE, on topics"
