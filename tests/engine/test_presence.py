"""Who is connected, who consumes, who holds what; giving back and closing by an operator's hand."""

from __future__ import annotations

from typing import Any

from broker_core.engine import commands as c
from broker_core.engine.effects import Outcome
from broker_core.engine.selector import compile_selector
from broker_core.engine.subscription import Filter
from tests.engine.rig import QUEUE, START, Bench

TOPIC = "topic/prices"


def holding(count: int = 3) -> Bench:
    bench = Bench()
    bench.apply(c.Open(2, "shop", "till"))
    bench.attach(7, peer=2, credit=count)
    bench.send(*[str(number) for number in range(5)])
    bench.now += 4000
    bench.flush(report=True)
    return bench


def by_number(rows: list[dict[str, Any]], name: str) -> dict[int, dict[str, Any]]:
    return {row[name]: row for row in rows}


def test_what_does_not_exist_is_refused() -> None:
    bench = holding()
    for verb, arguments, refusal in (
        ("unsettled", {"consumer": 9}, "NO_SUCH_CONSUMER"),
        ("release", {"consumer": 9}, "NO_SUCH_CONSUMER"),
        ("disconnect", {"connection": 9, "reason": "x"}, "NO_SUCH_CONNECTION"),
    ):
        assert bench.control(verb, **arguments)["refusal"] == refusal


def test_the_brokers_own_connection_is_not_closed() -> None:
    bench = Bench()
    bench.apply(c.Open(5, "forwarder", forwards=True))
    assert bench.control("disconnect", connection=5, reason="x")["refusal"] == "NO_SUCH_CONNECTION"


def test_connections_are_listed_with_what_they_hold() -> None:
    bench = holding()
    found = by_number(bench.control("connections", origins={"2": ["10.0.0.7", "stomp"]})["connections"], "connection")
    assert list(found) == [1, 2]
    assert found[2] == {
        "connection": 2, "account": "shop", "client_id": "till", "since": START, "address": "10.0.0.7", "protocol": "stomp", "consumers": 1, "browsers": 0,
        "unsettled": 3, "oldest_since": START + 4000, "transactions": 0, "temporary_destinations": 0, "blocked_by": [], "forwards": False, "stopped": False,
    }  # fmt: skip
    assert (found[1]["unsettled"], found[1]["oldest_since"], found[1]["address"]) == (0, None, None)


def test_lists_are_pages() -> None:
    bench = Bench()
    for number in range(2, 8):
        bench.apply(c.Open(number, "shop", f"c{number}"))
        bench.attach(10 + number, peer=number)
    first = bench.control("connections", limit=3)
    assert ([row["connection"] for row in first["connections"]], first["next"]) == ([1, 2, 3], 3)
    assert [row["connection"] for row in bench.control("connections", after=6, limit=3)["connections"]] == [7]
    consumers = bench.control("consumers", limit=4, after=13)
    assert ([row["consumer"] for row in consumers["consumers"]], consumers["next"]) == ([14, 15, 16, 17], None)
    assert [row["consumer"] for row in bench.control("consumers", connection=3)["consumers"]] == [13]
    assert [row["connection"] for row in bench.control("connections", only=3)["connections"]] == [3]


def test_consumers_say_what_they_want_and_hold() -> None:
    bench = holding()
    bench.attach(8, credit=10, wanted=Filter(compile_selector("a = 1")), exclusive=False, priority=4)
    bench.apply(c.Open(3, "shop", "board"))
    bench.attach(9, peer=3, address=TOPIC, name="s", durable=True)
    bench.apply(c.Browse(1, 20, QUEUE, credit=1))
    bench.flush()
    found = by_number(bench.control("consumers")["consumers"], "consumer")
    assert (found[7]["destination"], found[7]["unsettled"], found[7]["delivered"], found[7]["oldest_since"]) == (QUEUE, 3, 3, START + 4000)
    assert (found[8]["selector"], found[8]["priority"], found[8]["credit"]) == ("a = 1", 4, 10)
    assert (found[9]["subscription_name"], found[9]["durable"]) == ("s", True)
    assert found[20]["kind"] == "browser"
    assert list(by_number(bench.control("consumers", destination=QUEUE)["consumers"], "consumer")) == [7, 8]


def test_what_a_consumer_holds_is_listed_by_delivery() -> None:
    bench = holding()
    first = bench.control("unsettled", consumer=7, limit=2)
    assert [(d["delivery"], d["position"], d["destination"]) for d in first["deliveries"]] == [(1, 0, QUEUE), (2, 1, QUEUE)]
    assert {d["since"] for d in first["deliveries"]} == {START + 4000}
    assert first["next"] == 2
    assert [d["delivery"] for d in bench.control("unsettled", consumer=7, after=2)["deliveries"]] == [3]


def test_what_is_released_is_anothers_flagged_and_no_failure() -> None:
    bench = holding()
    assert bench.attach(8, credit=1) == ["3"]
    bench.settle(1, link=8)
    assert bench.control("release", consumer=7, deliveries=[2, 2, 77]) == {"released": 1, "left": 2}
    held = [message for link in bench.engine.shard.links.values() for message in link.unsettled.values()]
    (again,) = [message for message in held if message.position == 1]
    assert (again.redelivered, again.failures) == (True, 0)


def test_all_that_a_consumer_holds_is_released_and_late_acknowledgements_harm_nobody() -> None:
    bench = holding()
    bench.apply(c.Stop(2))
    assert bench.control("release", consumer=7) == {"released": 3, "left": 0}
    bench.settle(1, 2, 3, link=7, peer=2)
    assert bench.depth() == 5
    assert bench.attach(8, credit=9) == ["0", "1", "2", "3", "4"]
    bench.settle(link=8, upto=5)
    assert bench.depth() == 0
    bench.settle(1, link=7, peer=2, outcome=Outcome.FAILED)


def test_a_connection_is_closed_with_a_reason() -> None:
    bench = holding()
    assert bench.control("disconnect", connection=2, reason="it hangs") == {"connection": 2, "account": "shop", "client_id": "till"}
    assert [dismissed for effects in bench.effects for dismissed in effects.dismissed] == [(2, "closed by an operator: it hangs")]
