"""Rules of access: which account may produce to, consume from, browse and create what, with the precedence that Open MQ's rules have."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_core.engine import commands as c
from broker_core.engine.access import ANYBODY, BROWSE, CONSUME, CREATE, EVERYTHING, OPERATIONS, PRODUCE, Access, Rule, access_of, problem
from broker_core.engine.message import Header, Message, Reliability
from broker_core.engine.outputs import Browsed, Confirmed, Detached, Refused
from broker_core.engine.pattern import Pattern
from broker_core.engine.pattern import problem as pattern_problem
from broker_core.engine.refusal import Refusal
from tests.engine.rig import QUEUE, Bench, now_of

OPEN = [Rule(EVERYTHING, operation, True, ANYBODY) for operation in OPERATIONS]
TOPIC = "topic/news.eu"


def rule(resource: str, verdict: str, principal: str, operation: str = CONSUME) -> Rule:
    """`principal`: an account, or @group."""
    return Rule(resource, operation, verdict == "allow", principal.lstrip("@"), principal.startswith("@"))


def guarded(*rules: Rule, groups: dict[str, list[str]] | None = None) -> Bench:
    bench = Bench()
    bench.apply(c.Open(2, "alice"))
    bench.apply(c.SetAccess(rules, groups or {}))
    bench.flush()
    return bench


def send(bench: Bench, peer: int, address: str = QUEUE, *, transaction: bytes = b"") -> list:
    command = c.Send(peer, None if transaction else "r", address, Message(Header(b"", reliability=Reliability.ASSURED), b"x", 1))
    bench.apply(c.Transacted(peer, transaction, command, "r") if transaction else command)
    return bench.flush()


def refusals(outputs: list) -> list[tuple[Refusal, str]]:
    return [(output.refusal, output.detail) for output in outputs if isinstance(output, Refused | Detached)]


# -- precedence ---------------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("rules", "allowed"),
    [
        ([], False),
        ([("queue/*", "allow", ANYBODY)], True),
        ([("queue/*", "allow", ANYBODY), ("queue/*", "deny", "alice")], False),  # a name counts more than everybody
        ([("queue/*", "deny", ANYBODY), ("queue/*", "allow", "alice")], True),
        ([("queue/*", "deny", "@staff"), ("queue/*", "allow", "alice")], True),  # a name counts more than a group
        ([("queue/*", "deny", "@staff"), ("queue/*", "allow", ANYBODY)], True),  # every account counts more than a group
        ([("queue/*", "allow", "@staff"), ("queue/*", "deny", "@*")], True),  # a group counts more than every group
        ([("queue/*", "allow", "@*")], True),
        ([("queue/*", "allow", "@others")], False),
        ([("queue/*", "allow", "alice"), ("queue/*", "deny", "alice")], False),  # what contradicts itself refuses
        ([("queue/*", "allow", "@staff"), ("queue/*", "deny", "@crew")], False),
        ([("queue/orders", "deny", ANYBODY), ("queue/*", "allow", "alice")], False),  # the particular resource counts more
        ([("queue/orders", "allow", "@staff"), ("queue/*", "deny", "alice")], True),
        ([("queue/orders", "allow", "bob"), ("queue/*", "allow", "alice")], True),  # it says nothing of alice
        ([("queue/*", "deny", "alice"), (EVERYTHING, "allow", "alice")], False),
        ([("queue/>", "deny", "alice"), ("queue/*", "allow", "alice")], True),
        ([("topic/*", "allow", "alice")], False),
        ([("queue/other", "allow", "alice")], False),
    ],
)
def test_which_rule_decides(rules, allowed):
    access = Access([rule(*each) for each in rules], {"alice": ("staff", "crew")})
    assert access.allows("alice", CONSUME, "queue/orders") is allowed
    assert access.allows("alice", PRODUCE, "queue/orders") is False, "each operation has rules of its own"


def test_who_may_everything_is_not_asked_again():
    assert access_of(OPEN, {}) is None
    assert access_of([*OPEN, rule("queue/a", "allow", "alice")], {}) is None
    assert access_of([*OPEN, rule("queue/a", "deny", "alice")], {}) is not None
    assert access_of(OPEN[1:], {}) is not None
    assert access_of([], {}) is not None


@pytest.mark.parametrize("wrong", [Rule("orders", CONSUME, True, "a"), Rule("queue/a", "eat", True, "a"), Rule("queue/a", CONSUME, True, "")])
def test_what_is_no_rule(wrong):
    assert problem(wrong)
    assert not problem(Rule("queue/a.*", CONSUME, True, "a"))


_LEVEL = st.sampled_from(["a", "b", "mq"])
_NAMES = st.lists(_LEVEL, min_size=1, max_size=4).map(lambda levels: "topic/" + ".".join(levels))
_PATTERNS = st.lists(st.sampled_from(["a", "b", "mq", "*", "**", ">"]), min_size=1, max_size=4).map(lambda levels: "topic/" + ".".join(levels))
_VALID = _PATTERNS.filter(lambda pattern: not pattern_problem(pattern))
_RULES = st.lists(
    st.builds(rule, st.one_of(_VALID, _NAMES, st.just(EVERYTHING)), st.sampled_from(["allow", "deny"]), st.sampled_from(["alice", ANYBODY, "@staff"])),
    max_size=6,
)


@settings(max_examples=300, deadline=None, database=None)
@given(_RULES, _VALID, _NAMES)
def test_who_may_have_a_pattern_may_have_each_of_its_topics(rules, pattern, name):
    access = Access(rules, {"alice": ("staff",)})
    if Pattern(pattern).matches(name) and access.allows("alice", CONSUME, pattern):
        assert access.allows("alice", CONSUME, name)


@pytest.mark.parametrize(
    ("rules", "pattern", "allowed"),
    [
        ([("topic/news.>", "allow")], "topic/news.*", True),
        ([("topic/news.**", "allow")], "topic/news.*.x", True),
        ([("topic/**", "allow")], "topic/news.>", False),  # a `>` may stand for nothing, which `**` does not; nobody is wronged who names his own
        ([("topic/>", "allow")], "topic/>", True),
        ([("topic/>", "allow"), ("topic/news.uk", "deny")], "topic/news.*", False),
        ([("topic/>", "allow"), ("topic/sport.uk", "deny")], "topic/news.*", True),
        ([("topic/>", "allow")], "topic/mq.>", False),
        ([("topic/news.eu", "allow")], "topic/news.*", False),
    ],
)
def test_patterns(rules, pattern, allowed):
    access = Access([rule(resource, verdict, ANYBODY) for resource, verdict in rules], {})
    expected = allowed or (pattern == "topic/news.>" and access.allows("alice", CONSUME, pattern))
    assert access.allows("alice", CONSUME, pattern) is expected


# -- in the engine ------------------------------------------------------------------------------------------------------------------------
def test_without_rules_everybody_may_everything():
    assert refusals(send(Bench(), 1)) == []
    bench = guarded(*OPEN)
    assert bench.engine.shard.access is None
    assert refusals(send(bench, 2)) == []


def test_a_send_that_no_rule_allows_is_refused_and_kept_nowhere():
    bench = guarded(*OPEN, rule("queue/orders", "deny", "alice", PRODUCE))
    assert refusals(send(bench, 2)) == [(Refusal.ACCESS_DENIED, "produce queue/orders")]
    assert refusals(send(bench, 1)) == []
    assert refusals(send(bench, 2, "queue/other")) == []
    assert bench.engine.shard.destinations[QUEUE].subscriptions[0].depth == 1


def test_an_alias_is_no_way_around():
    bench = guarded(*OPEN, rule("queue/orders", "deny", "alice", PRODUCE), rule("queue/orders", "deny", "alice"))
    bench.control("create_alias", "queue/alias", target=QUEUE)
    bench.flush()
    assert refusals(send(bench, 2, "queue/alias")) == [(Refusal.ACCESS_DENIED, "produce queue/orders")]
    bench.apply(c.Attach(2, 7, "queue/alias", "t", credit=1))
    assert refusals(bench.flush()) == [(Refusal.ACCESS_DENIED, "consume queue/orders")]


def test_a_transaction_is_no_way_around_and_ends_undone():
    bench = guarded(*OPEN, rule("queue/orders", "deny", "alice", PRODUCE))
    bench.apply(c.Begin(2, b"t"))
    assert refusals(send(bench, 2, transaction=b"t"))[0][0] is Refusal.ACCESS_DENIED
    bench.apply(c.End(2, b"t", True, "end"))
    assert any(isinstance(output, Refused) for output in bench.flush())
    assert QUEUE not in bench.engine.shard.destinations


def test_what_is_taken_away_before_the_commit_is_not_sent():
    bench = guarded(*OPEN, rule("queue/a", "deny", "nobody"))
    bench.apply(c.Begin(2, b"t"))
    assert refusals(send(bench, 2, transaction=b"t")) == []
    bench.apply(c.SetAccess([*OPEN, rule("queue/orders", "deny", "alice", PRODUCE)], {}))
    bench.apply(c.End(2, b"t", True, "end"))
    assert refusals(bench.flush()) == [(Refusal.ACCESS_DENIED, "produce queue/orders")]


def test_who_is_gone_already_sends_nothing_more():
    bench = guarded(*OPEN, rule("queue/orders", "deny", "alice", PRODUCE))
    bench.apply(c.PeerLost(2))
    assert refusals(send(bench, 2)) == [(Refusal.ACCESS_DENIED, "produce queue/orders")]


def test_what_sessions_of_the_database_send_is_the_databases_matter():
    bench = guarded()
    bench.database.send(c.TakeOver(bench.database.number(), QUEUE, Message(Header(b"", reliability=Reliability.ASSURED), b"x", 1), bench.now))
    bench.apply(*now_of(bench.store.inbox(100, 1 << 20)))
    bench.flush()
    assert bench.engine.shard.destinations[QUEUE].subscriptions[0].depth == 1


def test_to_consume_to_browse_and_to_create_are_apart():
    bench = guarded(rule("queue/>", "allow", ANYBODY, PRODUCE), rule("queue/>", "allow", ANYBODY, BROWSE), rule("queue/>", "allow", "guest", CREATE))
    assert refusals(send(bench, 2)) == [(Refusal.ACCESS_DENIED, "create queue/orders")], "produce may be allowed, create is not"
    assert refusals(send(bench, 1)) == []
    assert refusals(send(bench, 2)) == []
    bench.apply(c.Attach(2, 7, QUEUE, "t", credit=1))
    assert refusals(bench.flush()) == [(Refusal.ACCESS_DENIED, "consume queue/orders")]
    bench.apply(c.SetAccess([rule("queue/>", "allow", "alice"), rule("queue/>", "allow", ANYBODY, BROWSE)], {}), c.Attach(2, 7, "queue/new", "t", credit=1))
    assert refusals(bench.flush()) == [(Refusal.ACCESS_DENIED, "create queue/new")]
    bench.apply(c.Browse(2, 8, QUEUE, "t"))
    assert any(isinstance(output, Browsed) for output in bench.flush())
    bench.apply(c.Browse(2, 9, "queue/empty", "t"))
    assert refusals(bench.flush()) == [], "to look at what is not there makes nothing"
    bench.apply(c.SetAccess([], {}))
    bench.flush()
    bench.apply(c.Browse(2, 10, QUEUE, "t"))
    assert refusals(bench.flush()) == [(Refusal.ACCESS_DENIED, f"browse {QUEUE}")]


def test_temporary_destinations_are_their_owners():
    bench = Bench()
    bench.apply(c.Open(2, "alice", session="s"), c.SetAccess([], {}))
    bench.apply(c.Attach(2, 7, "temp-queue/s.x", "t", credit=1))
    assert any(isinstance(output, Confirmed) for output in bench.flush())


def test_new_rules_close_what_they_do_not_allow_and_nothing_else():
    bench = guarded(*OPEN)
    bench.apply(c.Attach(2, 7, QUEUE, credit=10), c.Attach(1, 8, QUEUE, credit=10), c.Attach(2, 9, TOPIC, credit=1), c.Attach(2, 10, "topic/>", credit=1))
    bench.flush()
    send(bench, 1)
    bench.apply(c.SetAccess([*OPEN, rule("queue/*", "deny", "alice"), rule("topic/news.uk", "deny", "alice")], {}))
    detached = [(output.peer, output.link, output.refusal) for output in bench.flush() if isinstance(output, Detached)]
    assert detached == [(2, 7, Refusal.ACCESS_DENIED), (2, 10, Refusal.ACCESS_DENIED)]
    assert sorted(bench.engine.shard.links) == [8, 9]


def test_what_its_consumer_held_goes_to_others():
    bench = guarded(*OPEN)
    send(bench, 1)
    bench.apply(c.Attach(2, 7, QUEUE, credit=10))
    bench.flush()
    bench.apply(c.Attach(1, 8, QUEUE, credit=10), c.SetAccess([*OPEN, rule("queue/*", "deny", "alice")], {}))
    [delivered] = [output for output in bench.flush() if getattr(output, "messages", None)]
    assert (delivered.peer, delivered.link) == (1, 8)


def test_a_browser_that_may_not_go_on_is_closed():
    bench = guarded(*OPEN)
    for _ in range(3):
        send(bench, 1)
    bench.apply(c.Browse(2, 7, QUEUE, "t", credit=1))
    bench.flush()
    bench.apply(c.SetAccess([*OPEN, rule("queue/*", "deny", "alice", BROWSE)], {}))
    assert refusals(bench.flush()) == [(Refusal.ACCESS_DENIED, "browse queue/orders")]
    assert not bench.engine.shard.browsing.browsers


def test_a_decision_is_made_once():
    access = Access([rule("queue/>", "allow", ANYBODY)], {})
    decided = []
    resource = access._resources[CONSUME][0]
    access._resources[CONSUME][0] = type("Counting", (), {"rank": resource.rank, "matches": lambda self, address: decided.append(address) or True,
                                                          "verdict": lambda self, account, groups: True})()  # fmt: skip
    for _ in range(3):
        assert access.allows("alice", CONSUME, "queue/orders")
    assert decided == ["queue/orders"]
