"""Who is connected, who consumes, who holds what; giving back and closing by an operator's hand."""

from __future__ import annotations

from typing import Any

import pytest

from broker_core.engine import commands as c
from broker_core.engine import presence
from broker_core.engine.message import Header, Message, Reliability
from broker_core.engine.outcome import Outcome
from broker_core.engine.outputs import Detached
from broker_core.engine.presence import page_of_producers
from broker_core.engine.producers import ADDRESSES_MAX, PER_PEER, Producers
from broker_core.engine.refusal import Refusal
from broker_core.engine.selector import compile_selector
from broker_core.engine.subscription import Filter
from tests.engine.rig import QUEUE, START, Bench

TOPIC = "topic/prices"


def holding(count: int = 3, *, detaches: bool = False) -> Bench:
    bench = Bench()
    bench.apply(c.Open(2, "shop", "till", detaches=detaches))
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
        ("detach", {"consumer": 9, "reason": "x"}, "NO_SUCH_CONSUMER"),
        ("disconnect", {"connection": 9, "reason": "x"}, "NO_SUCH_CONNECTION"),
    ):
        assert bench.control(verb, **arguments)["refusal"] == refusal


def test_the_brokers_own_connection_is_not_closed() -> None:
    bench = Bench()
    bench.apply(c.Open(5, "forwarder", forwards=True))
    assert bench.control("disconnect", connection=5, reason="x")["refusal"] == "NO_SUCH_CONNECTION"


def test_connections_are_listed_with_what_they_hold() -> None:
    bench = holding()
    found = by_number(bench.control("connections", origins={"2": ["10.0.0.7", "stomp", 4]})["connections"], "connection")
    assert list(found) == [1, 2]
    assert found[2] == {
        "connection": 2, "account": "shop", "client_id": "till", "since": START, "address": "10.0.0.7", "protocol": "stomp", "producers": 4,
        "consumers": 1, "browsers": 0, "unsettled": 3, "oldest_since": START + 4000, "transactions": 0, "temporary_destinations": 0,
        "blocked_by": [], "forwards": False, "stopped": False,
    }  # fmt: skip
    assert (found[1]["unsettled"], found[1]["oldest_since"], found[1]["address"], found[1]["producers"]) == (0, None, None, None)


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


def test_open_transactions_of_a_connection_are_told_with_what_is_in_them() -> None:
    bench = holding()
    bench.control("create_alias", "queue/old", target=QUEUE)
    at = bench.now
    first, second = [c.Send(2, None, address, Message(Header(b"", reliability=Reliability.ASSURED), b"x", 10)) for address in ("queue/old", TOPIC)]
    bench.apply(c.Begin(2, b"t 1"), c.Begin(2, b"\x01\xff"), c.BeginBranch(2, b"b", "7.61.62"))
    bench.apply(c.Transacted(2, b"t 1", first), c.Transacted(2, b"t 1", c.Settle(2, 7, [1, 2])))
    bench.apply(c.Transacted(2, b"\x01\xff", c.Settle(2, 7, [1])))
    bench.apply(c.Transacted(2, b"b", second), c.EndBranch(2, "7.61.62", c.Verb.SUSPEND))
    bench.flush()
    local, hopeless, branch = bench.control("transactions", connection=2)["transactions"]
    assert local | {"octets": 0} == {
        "connection": 2, "account": "shop", "client_id": "till",
        "name": "t 1", "xid": None, "state": "active", "ends_at": at + bench.limits.transaction_ms_max, "sends": 1, "octets": 0, "acknowledgements": 2,
        "destinations": [QUEUE], "refused": None,
    }  # fmt: skip
    assert (hopeless["name"], hopeless["acknowledgements"]) == ("01ff", 0)
    assert "outstanding" in hopeless["refused"]
    assert (branch["name"], branch["xid"], branch["state"], branch["sends"], branch["destinations"]) == ("b", "7.61.62", "suspended", 1, [TOPIC])
    assert bench.control("transactions", connection=1)["transactions"] == []
    assert [row["name"] for row in bench.control("transactions")["transactions"]] == ["t 1", "01ff", "b"]
    assert [row["transactions"] for row in bench.control("connections")["connections"]] == [0, 3]
    assert bench.control("transactions", connection=9)["refusal"] == "NO_SUCH_CONNECTION"


def test_a_page_of_open_transactions_ends_with_the_connection_that_fills_it() -> None:
    bench = Bench()
    for number in range(2, 6):
        bench.apply(c.Open(number, "shop", ""), *[c.Begin(number, b"%d" % each) for each in range(0 if number == 3 else 2)])
    first = bench.control("transactions", limit=3)
    assert ([row["connection"] for row in first["transactions"]], first["next"]) == ([2, 2, 4, 4], 4)
    last = bench.control("transactions", limit=3, after=4)
    assert ([row["connection"] for row in last["transactions"]], last["next"]) == ([5, 5], None)


def test_connections_of_an_account_or_of_a_client_are_told_alone() -> None:
    bench = holding()
    assert list(by_number(bench.control("connections", account="shop")["connections"], "connection")) == [2]
    assert list(by_number(bench.control("connections", client_id="till", account="guest")["connections"], "connection")) == []


def told(bench: Bench, known: dict[int, Producers], /, **asked: Any) -> dict[str, Any]:
    produced = page_of_producers(bench.engine.shard, asked, known)
    return bench.control("producers", **asked, produced=produced | {"held_up": [2]})


def test_producers_are_listed_with_their_connections_and_with_what_waits() -> None:
    bench = Bench()
    bench.apply(c.Open(2, "shop", "till"))
    bench.control("create", QUEUE, max_messages=1)
    bench.control("create_alias", "queue/old", target=QUEUE)
    known = {1: Producers(1), 2: Producers(2), 3: Producers(3)}
    known[2].meet("queue/old", START)
    known[1].open(QUEUE, START + 5, "mine", lambda: 12)
    known[3].meet(QUEUE, START)
    bench.send("a", "b", "c")
    first, second = told(bench, known)["producers"]
    assert first == {
        "producer": PER_PEER + 1, "connection": 1, "account": "guest", "client_id": "", "destination": QUEUE, "alias": None, "link": "mine",
        "since": START + 5, "sent": 12, "waiting": 2, "held_up": False,
    }  # fmt: skip
    assert (second["destination"], second["alias"], second["link"], second["sent"], second["waiting"]) == (QUEUE, "queue/old", None, None, 0)
    assert (second["client_id"], second["held_up"]) == ("till", True)
    assert [row["connection"] for row in told(bench, known, destination=QUEUE)["producers"]] == [1, 2], "not who has not logged in"
    assert told(bench, known, destination="queue/other")["producers"] == []


def test_producers_are_pages_in_order_of_their_numbers() -> None:
    bench = Bench()
    known = {number: Producers(number) for number in range(1, 4)}
    for number in (2, 3):
        bench.apply(c.Open(number, "shop"))
    for producers in known.values():
        for name in "abc":
            producers.meet(f"queue/{name}", START)
    seen, after = [], 0
    for _ in range(5):
        page = told(bench, known, after=after, limit=2)
        seen += [row["producer"] for row in page["producers"]]
        after = page["next"] or after
    assert (seen, page["next"]) == ([peer * PER_PEER + n for peer in (1, 2, 3) for n in (1, 2, 3)], None)
    assert [row["connection"] for row in told(bench, known, connection=2)["producers"]] == [2, 2, 2]
    assert [row["destination"] for row in told(bench, known, only=2 * PER_PEER + 3)["producers"]] == ["queue/c"]
    assert told(bench, known, only=2 * PER_PEER + 9)["producers"] == []
    assert told(bench, known, only=9 * PER_PEER)["producers"] == []


def test_a_page_of_producers_ends_after_so_many_that_were_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "LOOKED_AT_MAX", 3)
    bench = Bench()
    known = {number: Producers(number) for number in range(1, 8)}
    for number, producers in known.items():
        bench.apply(c.Open(number, "shop"))
        for name in ("a", "b", "rare" if number in (1, 7) else "c"):
            producers.meet(f"queue/{name}", START)
    pages = [told(bench, known, destination="queue/rare", limit=5)]
    while pages[-1]["next"] is not None:
        pages.append(told(bench, known, destination="queue/rare", limit=5, after=pages[-1]["next"]))
    assert [[row["connection"] for row in page["producers"]] for page in pages] == [[1], [], [], [7]]


def test_what_is_known_of_a_connections_producers_is_bounded() -> None:
    producers = Producers(1)
    producers.meet("temp-queue/node-1-1.1", START)
    assert len(producers) == 0, "who answers requests has as many of these as there are clients"
    for number in range(2 * ADDRESSES_MAX):
        producers.meet("queue/first", START)
        producers.meet(f"queue/{number}", START)
    assert len(producers) == ADDRESSES_MAX
    numbers = [producers.open("queue/a", START, "link", None) for _ in range(10)]
    assert len(producers) == ADDRESSES_MAX + 10
    for number in [*numbers, *numbers]:
        producers.close(number)
    assert len(producers) == ADDRESSES_MAX


def test_a_number_that_is_free_again_is_not_anothers() -> None:
    producers = Producers(1)
    kept = producers.open("queue/kept", START, "kept", None)
    seen = set()
    for _ in range(PER_PEER):
        number = producers.open("queue/a", START, "link", None)
        seen.add(number)
        producers.close(number)
    assert kept not in seen
    assert {number // PER_PEER for number in seen} == {1}


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


def closing(bench: Bench, consumer: int = 7) -> tuple[dict[str, Any], list[tuple[int, int, Refusal, str]]]:
    """The answer, and who was told what."""
    answer = bench.control("detach", consumer=consumer, reason="it hangs")
    return answer, [(one.peer, one.link, one.refusal, one.detail) for one in bench.outputs if isinstance(one, Detached)]


def test_a_consumer_is_closed_with_a_reason_and_what_it_held_is_anothers() -> None:
    bench = holding(detaches=True)
    answer, told = closing(bench)
    assert answer == {"consumer": 7, "connection": 2, "account": "shop", "unsettled": 3}
    assert told == [(2, 7, Refusal.CONSUMER_CLOSED, "it hangs")]
    assert bench.attach(8, credit=9) == ["0", "1", "2", "3", "4"]
    assert [message.failures for link in bench.engine.shard.links.values() for message in link.unsettled.values()] == [0] * 5
    bench.settle(1, link=7, peer=2)
    assert bench.depth() == 5, "which is late"
    assert bench.attach(9, peer=2) == [], "its connection goes on"
    assert bench.control("disconnect", connection=2, reason="x")["connection"] == 2


def test_a_durable_subscription_outlives_its_closed_consumer_and_another_ends_with_it() -> None:
    bench = Bench()
    bench.apply(c.Open(2, "shop", "till", detaches=True))
    bench.attach(7, peer=2, address=TOPIC, name="s", durable=True)
    bench.attach(8, peer=2, address=TOPIC)
    closing(bench, 7)
    closing(bench, 8)
    assert [each.name for each in bench.destination(TOPIC).subscriptions] == ["s"]


def test_a_browser_is_closed_like_a_consumer() -> None:
    bench = Bench()
    bench.apply(c.Open(2, "shop", "till", detaches=True))
    bench.send("a", "b")
    bench.apply(c.Browse(2, 9, QUEUE, credit=1))
    bench.flush()
    assert closing(bench, 9)[0]["unsettled"] == 0
    assert not bench.engine.shard.browsing.browsers
    assert bench.depth() == 2


def test_a_consumer_whose_protocol_has_no_word_for_it_is_not_closed() -> None:
    bench = holding()
    answer, told = closing(bench)
    assert (answer["refusal"], told) == ("NOT_SUPPORTED", [])
    assert answer["detail"].endswith("close connection 2")
    assert 7 in bench.engine.shard.links


def test_a_connection_is_closed_with_a_reason() -> None:
    bench = holding()
    assert bench.control("disconnect", connection=2, reason="it hangs") == {"connection": 2, "account": "shop", "client_id": "till"}
    assert [dismissed for effects in bench.effects for dismissed in effects.dismissed] == [(2, "closed by an operator: it hangs")]
