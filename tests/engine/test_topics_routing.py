"""Filters of topics: found by value or asked, once a message, and what they leave out is over without a trace in anybody's memory."""

from __future__ import annotations

from random import Random

import pytest

from broker_core.engine import commands as c
from broker_core.engine.message import STORED, Encoding, Header, Message
from broker_core.engine.outcome import Outcome
from broker_core.engine.properties import Properties, takes
from broker_core.engine.routes import Routes
from broker_core.engine.selector import compile_selector
from broker_core.engine.subscription import Filter, Subscription
from tests.engine.rig import ASSURED, EXPRESS, Bench
from tests.engine.topic_rig import TOPIC, bench, durable, plain

SELECTORS = (
    "", "n = 1", "n = '1'", "n = 1.0", "n = TRUE", "n = 2", "n = 'x'", "n <> 1", "n = 1 AND m = 2", "m = 'a' AND n > 1", "n IS NULL", "n = 1 OR m = 2",
    "JMSPriority = 4", "JMSPriority = 4 AND n = 1", "JMSType = 'a'", "NOT n = 1", "n = m", "n IN ('1', '2')", "n = 9007199254740993",
)  # fmt: skip
VALUES = (None, "1", "1.0", "2", "x", "true", "a", "9007199254740993", "9007199254740992")


def decode(header: Header) -> dict[str, str]:
    """`n=1;m=2` to a mapping."""
    return dict(pair.split("=") for pair in header.octets.decode().split(";") if pair)


def filter_of(selector: str, sender: str = "") -> Filter:
    return Filter(compile_selector(selector) if selector else None, sender)


def message(random: Random, body: str = "m", level=ASSURED, client_id: str = "") -> Message:
    values = {name: random.choice(VALUES) for name in ("n", "m", "type")}
    octets = ";".join(f"{name}={value}" for name, value in values.items() if value is not None).encode()
    return Message(Header(octets, random.choice((4, 4, 7)), level, 0, random.choice((Encoding.STOMP, Encoding.AMQP)), client_id=client_id), body.encode(), 10)


def made(**how) -> Bench:
    b = bench(**how)
    b.engine.shard.decode = decode
    return b


# -- who takes it -------------------------------------------------------------------------------------------------------------------------
def test_a_message_finds_exactly_the_groups_that_take_it() -> None:
    random = Random(7)
    b = made()
    b.control("create", TOPIC)
    destination, routes = b.destination(TOPIC), Routes()
    subscriptions: list[Subscription] = []
    for number in range(1500):
        if subscriptions and random.random() < 0.4:
            routes.leave(subscriptions.pop(random.randrange(len(subscriptions))))
        wanted = filter_of(random.choice(SELECTORS), random.choice(("", "", "me")))
        subscriptions.append(Subscription(number, destination, wanted=wanted))
        routes.join(subscriptions[-1])
        sent = message(random, client_id=random.choice(("", "me")))
        sent.sequence, sent.accepted_at = number, 0
        properties = Properties(b.engine.shard, sent)
        found = {number for group in routes.takers(properties) for number in group.members}
        assert found == {s.number for s in subscriptions if takes(s.wanted, properties)}
    for subscription in subscriptions:
        routes.leave(subscription)
    assert (routes.groups, routes.filtered, routes._asked, routes._by_value) == ({}, {}, {}, {})


def test_of_a_thousand_selectors_for_one_value_each_only_the_one_that_has_it_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    b = made()
    for number in range(1000):
        b.apply(c.Attach(1, number, TOPIC, credit=9, wanted=filter_of(f"n = '{number}'")))
    asked: list[Filter] = []
    monkeypatch.setattr("broker_core.engine.routes.takes", lambda wanted, properties: asked.append(wanted) or takes(wanted, properties))
    b.apply(c.Send(1, None, TOPIC, Message(Header(b"n=77", 4, EXPRESS), b"m", 10)))
    assert b.bodies(b.flush()) == ["m"]
    assert [wanted.selector.text for wanted in asked if wanted.selector] == ["n = '77'"]


# -- what is left out ---------------------------------------------------------------------------------------------------------------------
def send_many(b: Bench, *octets: bytes, level=ASSURED) -> None:
    """In one batch."""
    for number, each in enumerate(octets):
        b.apply(c.Send(1, None, TOPIC, Message(Header(each, 4, level), str(number).encode(), 10)))


def ranges(b: Bench) -> list[tuple[int, int, int]]:
    """(subscription, first, last) of what the last commit says was left out."""
    commit = b.effects[-1].commit
    return [(number, first, last) for number, _, first, last, outcome in commit.settled if outcome is Outcome.EXCLUDED] if commit else []


def test_what_a_batch_leaves_out_is_a_few_ranges() -> None:
    b = made()
    durable(b, 1, wanted=filter_of("n = 1"))
    durable(b, 2, peer=3)
    send_many(b, *[b"n=2"] * 50, b"n=1", *[b"n=3"] * 50, b"n=1")
    assert sorted(b.bodies(b.flush())) == sorted([*map(str, range(102)), "50", "101"])
    (number,) = {number for number, _, _ in ranges(b)}
    assert ranges(b) == [(number, 0, 49), (number, 51, 100)]


def test_what_was_sent_in_the_batch_in_which_a_subscription_begins_is_left_out_once() -> None:
    b = made()
    durable(b, 1, wanted=filter_of("n = 1"))
    durable(b, 2, peer=3)
    send_many(b, b"n=2", b"n=2")
    b.apply(c.Attach(3, 4, TOPIC, name="later", durable=True, wanted=filter_of("n = 3")))
    send_many(b, b"n=2")
    b.flush()
    assert sorted((first, last) for _, first, last in ranges(b)) == [(0, 1), (0, 2), (2, 2)]


def test_between_what_it_takes_a_consumer_stays_caught_up() -> None:
    b = made()
    durable(b, 1, wanted=filter_of("n = 1"))
    durable(b, 2, peer=3, credit=0)
    for _ in range(3):
        send_many(b, b"n=1", b"n=2", b"n=1", b"n=2")
        assert len(b.bodies(b.flush())) == 2
    assert not [effects.reads for effects in b.effects if effects.reads]


@pytest.mark.parametrize("level", [ASSURED, EXPRESS])
def test_what_is_left_out_is_not_counted_by_a_purge_in_the_same_batch(level) -> None:
    b = made()
    durable(b, 1, wanted=filter_of("n = 1"), credit=0)
    durable(b, 2, peer=3, credit=0)
    send_many(b, b"n=1", b"n=2", b"n=2", level=level)
    assert b.control("purge", TOPIC) == {"purged": 4, "outstanding": 0}


def test_a_subscription_that_ends_in_the_batch_gives_back_what_it_took_and_no_more() -> None:
    b = made()
    durable(b, 1, wanted=filter_of("n = 1"))
    durable(b, 2, peer=3, wanted=filter_of("n = 2"), credit=0)
    b.apply(c.Detach(2, 1))
    send_many(b, b"n=1", b"n=2", b"n=2")
    b.apply(c.Unsubscribe(2, "s"))
    b.flush()
    assert (b.depth(TOPIC), b.destination(TOPIC).octets) == (2, 20)


def test_what_expired_before_it_came_dies_only_for_those_who_take_it() -> None:
    b = made()
    durable(b, 1, wanted=filter_of("n = 1"))
    durable(b, 2, peer=3)
    b.apply(c.Detach(2, 1), c.Detach(3, 2))
    for octets in (b"n=1", b"n=2"):
        b.apply(c.Send(1, None, TOPIC, Message(Header(octets, 4, ASSURED, b.now - 1), b"m", 10)))
    b.flush()
    assert (b.depth(TOPIC), b.destination(TOPIC).expired, b.destination(TOPIC).octets) == (0, 3, 0)


# -- order --------------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("group", ["", "g"], ids=["alone", "of a group"])
def test_a_volatile_subscription_gets_what_is_stored_for_others_and_what_is_not_in_the_order_in_which_it_was_sent(group: str) -> None:
    b = bench()
    durable(b, 1, wanted=Filter(compile_selector("kept = 'yes'")))
    plain(b, 2, credit=0, name="shared", shared=True)
    for body in "abcdef":
        b.send(body, address=TOPIC, group=group, properties={"kept": "yes" if body in "bcf" else "no"})
    b.apply(c.Grant(2, 10))
    assert b.bodies(b.flush()) == [*"abcdef"]


# -- any order of things ------------------------------------------------------------------------------------------------------------------
class Naive:
    """What each subscription must get: all it takes of what was sent while it was there, each mode in order."""

    def __init__(self, wanted: Filter, durable: bool) -> None:
        self.wanted, self.durable = wanted, durable
        self.owed: list[str] = []
        self.got: list[str] = []
        self.first: list[str] = []
        """Of them, those that came at the first delivery."""


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("tight", [False, True], ids=["roomy", "tight"])
def test_each_subscription_gets_what_it_takes_in_order_however_batches_and_consumers_come_and_go(seed: int, tight: bool) -> None:
    random = Random(seed)
    small = {"memory_octets": 300, "page_rows": 4, "page_octets": 128, "window_rows": 5, "segment_rows": 40} if tight else {}
    b = made(**small)
    all_of: dict[str, Naive] = {}
    for step in range(250):
        name = f"s{random.randrange(8)}"
        link = 100 + int(name[1:])
        there, active = all_of.get(name), link in b.engine.shard.links
        choice = random.random()
        if choice < 0.5:
            level = random.choice((ASSURED, EXPRESS))
            sent = message(random, f"m{step}", level)
            sent.accepted_at, sent.sequence = b.now, 0
            properties = Properties(b.engine.shard, sent)
            takers = [naive for naive in all_of.values() if takes(naive.wanted, properties)]
            b.apply(c.Send(1, None, TOPIC, sent))
            for naive in takers:
                naive.owed.append(f"{kind(sent)} m{step}")
        elif choice < 0.6 and there is None:
            wanted = filter_of(random.choice(("", "", "n = 1", "n = 2", "JMSPriority > 5", "m IS NULL")))
            all_of[name] = Naive(wanted, random.random() < 0.6)
            attach(b, name, link, all_of[name], random)
        elif choice < 0.7 and there is not None and not active:
            attach(b, name, link, there, random)
        elif choice < 0.76 and there is not None and active and random.random() < 0.6:
            collect(b, all_of)
            b.apply(c.Detach(2, link))
            if not there.durable:
                del all_of[name]
        elif choice < 0.79 and there is not None and there.durable and not active:
            b.apply(c.Unsubscribe(2, name))
            del all_of[name]
        elif choice > 0.82:
            collect(b, all_of)
    for name, naive in all_of.items():
        link = 100 + int(name[1:])
        if link not in b.engine.shard.links:
            attach(b, name, link, naive, random)
    for _ in range(1000):
        if b.depth(TOPIC):
            collect(b, all_of)
    for name, naive in all_of.items():
        assert sorted(naive.got) == sorted(naive.owed), name
        for mode in {each.split()[0] for each in naive.owed}:
            came = [m for m in naive.first if m.startswith(f"{mode} ")]
            assert came == [m for m in naive.owed if m in came], name
    b.flush(report=True)
    assert (b.depth(TOPIC), b.destination(TOPIC).octets, b.engine.shard.memory) == (0, 0, 0)


def kind(message: Message) -> str:
    """What has an order of its own: priority and delivery mode."""
    return f"{message.header.priority}{'p' if message.header.reliability >= STORED else 'n'}"


def attach(b: Bench, name: str, link: int, naive: Naive, random: Random) -> None:
    b.apply(c.Attach(2, link, TOPIC, credit=random.choice((1, 3, 100)), name=name, durable=naive.durable, shared=True, wanted=naive.wanted))


def collect(b: Bench, all_of: dict[str, Naive]) -> None:
    """Flush, and acknowledge everything that came."""
    b.flush(report=True)
    for name, naive in all_of.items():
        link = b.engine.shard.links.get(100 + int(name[1:]))
        if link is not None and link.unsettled:
            for held in link.unsettled.values():
                naive.got.append(f"{kind(held)} {b.body(held)}")
                naive.first += [] if held.redelivered else naive.got[-1:]
            b.apply(c.Settle(2, link.number, upto=link.tag))
    b.flush()
