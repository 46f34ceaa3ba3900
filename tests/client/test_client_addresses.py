"""Which broker is tried when, and names of destinations."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest

from broker_core.client import InvalidDestinationException, JMSException, Queue, TemporaryQueue, Topic
from broker_core.client.destinations import destination_of
from broker_core.client.machine import Address, Addresses, options_in
from broker_core.client.settings import AddressListBehavior, Settings

THREE = "stomp://a:1,b,stomp+tls://[::1]"
A, B, C = Address("a", 1, False), Address("b", 61613, False), Address("::1", 61614, True)


def tried(reached: Address | None = None, start: int = 0, limit: int = 20, **settings: Any) -> list[tuple[str, float]]:
    addresses = Addresses(Settings(**({"address_list": THREE} | settings)), start)
    if reached is not None:
        addresses.reached(reached)
    return [({A: "a", B: "b", C: "c"}[address], pause) for address, pause in islice(addresses.to_try(), limit)]


def test_addresses_are_read_with_and_without_scheme_and_port() -> None:
    assert tried() == [("a", 0), ("b", 0), ("c", 0)]
    assert [str(each) for each in (A, B, C)] == ["stomp://a:1", "stomp://b:61613", "stomp+tls://::1:61614"]
    assert tried(address_list=["a:1", " b "]) == [("a", 0), ("b", 0)]


@pytest.mark.parametrize("wrong", ["", "http://a", "a:0", "a:70000", "a:b", "stomp://", "a b", [], "a,,b", "a..b", ".a", "x" * 64])
def test_what_is_no_address_is_refused_with_an_example(wrong: Any) -> None:
    with pytest.raises(JMSException, match="stomp://"):
        Addresses(Settings(address_list=wrong), 0)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ("a?", "'' in 'a\\?' is no option"), ("a?x=1", "'x=1' in"), ("a?optimizeAcknowledge=yes", "optimizeAcknowledge=true or false"),
        ("a?optimizeAcknowledgeTimeOut=-1", "optimizeAcknowledgeTimeOut=MS"), ("a?optimizeAcknowledgeTimeOut=0.3", "optimizeAcknowledgeTimeOut=MS"),
        ("a?optimizeAcknowledge=true,b?optimizeAcknowledge=false", "say it once"), (["a?jms.optimizeAcknowledge=true&"], "'' in"),
    ],
)  # fmt: skip
def test_an_option_of_an_address_that_does_not_exist_is_refused(wrong: str | list[str], sentence: str) -> None:
    with pytest.raises(JMSException, match=sentence):
        options_in(wrong)


def test_addresses_may_say_how_to_acknowledge_as_activemqs_do() -> None:
    said = "stomp://a:1?jms.optimizeAcknowledge=true&jms.optimizeAcknowledgeTimeOut=500"
    assert options_in(said) == options_in([said, "b", said]) == {"optimize_acknowledge": True, "optimize_acknowledge_timeout": 0.5}
    assert options_in(THREE) == {}
    assert tried(address_list=f"{said}, b ,stomp+tls://[::1]?optimizeAcknowledge=true") == [("a", 0), ("b", 0), ("c", 0)]


def test_the_list_is_tried_in_its_order_as_often_as_it_says_with_a_pause_between() -> None:
    assert tried(address_list_iterations=2) == [("a", 0), ("b", 0), ("c", 0), ("a", 3), ("b", 0), ("c", 0)]
    assert len(tried(address_list_iterations=-1)) == 20


def test_or_beginning_anywhere() -> None:
    assert tried(address_list_behavior=AddressListBehavior.RANDOM, start=4) == [("b", 0), ("c", 0), ("a", 0)]
    assert tried(start=4)[0] == ("a", 0)


def test_what_was_lost_is_tried_first_and_each_as_often_as_it_says() -> None:
    enabled = {"reconnect_enabled": True, "reconnect_interval": 0.5}
    assert tried(reached=B, reconnect_attempts=2, **enabled) == [
        ("b", 0), ("b", 0.5), ("c", 0), ("c", 0.5), ("a", 0), ("a", 0.5),
    ]  # fmt: skip
    assert tried(reached=C, **enabled) == [("c", 0), ("a", 0), ("b", 0)]
    assert tried(reconnect_attempts=-1, limit=3, **enabled) == [("a", 0), ("a", 0.5), ("a", 0.5)]
    assert tried(reconnect_attempts=-1) == [("a", 0), ("b", 0), ("c", 0)]


@pytest.mark.parametrize("name", ["", "/a", "a*", "a>b", "a b\n", "x" * 256])
def test_a_name_that_the_broker_would_refuse_names_no_destination(name: str) -> None:
    for kind in (Queue, Topic):
        with pytest.raises(InvalidDestinationException, match="cannot name a"):
            kind(name)


def test_topics_alone_have_wildcards_as_whole_levels() -> None:
    for name in ("*", "a.*", "a.**.b", "a.>"):
        assert Topic(name).is_pattern
        with pytest.raises(InvalidDestinationException):
            Queue(name)
    assert not Topic("a.b").is_pattern


def test_destinations_are_values() -> None:
    assert Queue("a") == Queue("a") != Topic("a")
    assert {Queue("a"), Queue("a")} == {Queue("a")}
    assert TemporaryQueue("a", deleting=print) == TemporaryQueue("a") != Queue("a")
    assert [str(destination_of(text)) for text in ("a", "/queue/a", "/topic/a.b", "/temp-queue/x")] == [
        "/queue/a", "/queue/a", "/topic/a.b", "/temp-queue/x",
    ]  # fmt: skip
    with pytest.raises(InvalidDestinationException, match="none of"):
        destination_of("/exchange/a")
