"""What the ledger says of a message, on its page: a real engine over a real store, and a walk that may not take long."""

import itertools
import re
from html import unescape

import psycopg
import pytest

from broker_core.engine import commands as c
from broker_core.engine.outcome import Outcome
from broker_core.viewing import life
from broker_core.viewing.life import ACCEPTANCE, END, TIME, Place
from console.selectors import subscriptions
from console.services import looking
from tests.console import facts
from tests.console.api import granted, logged_in, person
from tests.console.store_node import EXPRESS

DEAD = "queue/mq.sys.dmq"


def told(response, status=200):
    """The lines of its life, and what is said below them."""
    text = response.content.decode()
    assert response.status_code == status, text[-2000:]
    part = text.partition('id="ledger"')[2].partition("</section>")[0]
    return [unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", line)).strip(" >")) for line in re.split(r"<li|</ol>|<p", part)[1:]]


def path(node, address, key, query=""):
    return f"/destinations/{node.number(address)}/messages/{key}/life{query}"


def consumes(node, link, *outcomes):
    """A consumer of queue/orders that ends the first message so, and goes."""
    for outcome in outcomes:
        node.does(c.Attach(1, link, "queue/orders", credit=1, replenish=False))
        node.does(c.Settle(1, link, [1], outcome=outcome), c.Detach(1, link))
        node.passes(120_000)


def test_a_dead_message_tells_its_life_before_and_where_it_is(node, operator):
    node.send(b"first", b"second")
    consumes(node, 9, Outcome.FAILED, Outcome.REJECTED)
    lines = told(operator.get(path(node, DEAD, "4-0")))
    stamp = r'^(class="\w+"> )?(In \S+ )?\d{4}-\d\d-\d\d \d\d:\d\d:\d\d '
    words = [re.sub(stamp, "", line) for line in lines if re.search(stamp, line)]
    assert words[0] == "accepted"
    assert words[1].startswith("left for consumer 9")
    assert words[2] == "its delivery failed; failures so far: 1"
    assert "left again for consumer 9" in " ".join(words)
    assert any(word.startswith("died, and went to queue/mq.sys.dmq as 4-0") for word in words)
    assert words[-1].startswith("came here dead, from queue/orders as 4-0")
    assert not any("Look further" in line for line in lines)
    there = told(operator.get(path(node, "queue/orders", "4-0")))
    assert any("died, and went to" in line for line in there)
    other = " ".join(told(operator.get(path(node, "queue/orders", "4-1"))))
    assert ("accepted" in other, "consumer 9" in other, "dead" in other) == (True, False, False)


def test_the_page_of_a_message_leads_to_it(node, operator):
    node.send(b"first")
    page = operator.get(f"/destinations/{node.number()}/messages/4-0").content.decode()
    href = unescape(re.search(r'id="ledger" hx-get="([^"]+)"', page)[1])
    assert "accepted" in " ".join(told(operator.get(href)))


def test_what_nobody_wrote_down_is_said_to_be_unknown(node, operator):
    node.send(b"volatile", level=EXPRESS)
    assert "in no ledger" in " ".join(told(operator.get(path(node, "queue/orders", "14-0"))))


def test_a_ledger_that_was_dropped_says_how_far_it_goes_back(node, database, operator):
    node.send(b"first")
    node.passes(10_000)
    node.send(b"second")
    for (segment,) in facts.rows(database, "SELECT segment FROM surety.ledger_segment"):
        facts.execute(database, f"DELETE FROM surety.ledger_0_{segment} WHERE 0 = ANY (accepted_first)")
    assert "The ledger goes back no further than" in " ".join(told(operator.get(path(node, "queue/orders", "4-0"))))


def test_who_may_not_look_is_told_nothing(node, database):
    node.send(b"first")
    node.send(b"secret", address="queue/secret")
    rita = person("rita", role="restricted")
    granted(rita, "queue/orders", "metrics", "browse_headers")
    restricted = logged_in(rita)
    assert told(restricted.get(path(node, "queue/orders", "4-0")))
    assert restricted.get(path(node, "queue/secret", "4-0")).status_code == 404
    assert restricted.get(path(node, "queue/orders", "4-0", f"?of={node.number('queue/secret')}-4-0")).status_code == 404


@pytest.mark.parametrize("query", ["?of=x", "?of=999999999-4-0", "?upto=-1", "?upto=99999999999999999999", "?at=soon", "?subscription=2147483648999"])
def test_what_is_no_place_and_no_commit_hurts_nobody(node, operator, query):
    node.send(b"first")
    assert operator.get(path(node, "queue/orders", "4-0", query)).status_code in (200, 404)


# -- the walk -----------------------------------------------------------------------------------------------------------------------------
@pytest.fixture
def long_ago(node, monkeypatch):
    """A message that failed once, and sixty commits after it."""
    monkeypatch.setattr(life, "STEP_FIRST", 8)
    monkeypatch.setattr(life, "STEP_MAX", 8)
    monkeypatch.setattr(life, "SLACK_MS", 0)
    node.passes(60_000)
    node.send(b"first")
    consumes(node, 9, Outcome.FAILED)
    for _ in range(60):
        node.passes(1_000)
        node.send(b"more", address="queue/other")
    return node


def walked(node, calls, **asked):
    """The walk that may look at the clock so often."""
    clock = itertools.count()
    read = lambda statement, parameters, seconds: looking.read(statement, parameters, 20)  # noqa: E731
    place = Place(node.number(), 4, 0)
    return life.life(read, lambda: float(next(clock)), place, subscriptions.numbers_of, calls, **asked)


def test_a_walk_without_haste_finds_everything(long_ago):
    found = walked(long_ago, 10_000)
    assert [event.kind for event in found.events] == ["failed", "offered", "accepted"]
    assert [stop.why for stop in found.stops] == [ACCEPTANCE]


def test_a_walk_in_haste_says_how_far_it_came_and_goes_on_from_there(long_ago):
    kinds, stop, upto, walks = [], None, 0, 0
    while stop is None or stop.why == TIME:
        found = walked(long_ago, 16, upto=upto)
        kinds += [event.kind for event in found.events]
        [stop] = found.stops
        assert not upto or stop.number < upto, "it gets on"
        upto, walks = stop.number, walks + 1
    assert (kinds, stop.why) == (["failed", "offered", "accepted"], ACCEPTANCE)
    assert walks > 1


def test_the_acceptance_is_found_by_its_time_and_what_is_between_is_unknown(long_ago):
    with psycopg.connect(long_ago.dsn) as connection:
        [[at]] = connection.execute("SELECT at FROM surety.ledger_0_1 WHERE accepted_destination && ARRAY[%s]::int4[] LIMIT 1", [long_ago.number()]).fetchall()
    found = walked(long_ago, 44, accepted_at=at)
    assert [event.kind for event in found.events] == ["accepted"]
    assert [stop.why for stop in found.stops] == [TIME, ACCEPTANCE]
    assert found.stops[0].number > found.stops[1].number


def test_an_empty_ledger_is_its_own_end(node):
    node.does(c.Attach(1, 9, "queue/orders", credit=1), c.Detach(1, 9))
    with psycopg.connect(node.dsn, autocommit=True) as connection:
        connection.execute("TRUNCATE surety.ledger_0_1")
    [stop] = walked(node, 1000).stops
    assert stop.why == END
