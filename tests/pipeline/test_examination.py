"""The delivery audit: a ledger in order is proven, and each kind of fault is found where it was planted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from broker_core.engine.outcome import Outcome
from broker_core.engine.recovered import LedgerRow
from broker_core.pipeline.auditing import of_one
from broker_core.pipeline.examination import examine, with_evidence
from broker_core.pipeline.transforms import audit, continuity
from broker_core.pipeline.transforms.rollups import rolled_up
from broker_core.pipeline.transforms.spans import BUCKET, coalesced, overlay
from broker_core.store.memory import MemoryDatabase
from broker_core.store.memory_tables import Chooser, Tables
from tests.pipeline.told import ADDRESSES, DEAD, QUEUE, TOPIC, Holding, begins, commits_of, examined, fates, held_by, matter, quick, row, wrongs
from tests.simulation import world

ACCEPTED, EXPIRED, EXCLUDED, MOVED, PURGED, REJECTED, RESTORED = (
    Outcome.ACCEPTED, Outcome.EXPIRED, Outcome.EXCLUDED, Outcome.MOVED, Outcome.PURGED, Outcome.REJECTED, Outcome.RESTORED,
)  # fmt: skip


@pytest.fixture(autouse=True)
def small(spark: SparkSession) -> Iterator[None]:
    """To compile a plan takes Spark longer than to run it over a few rows."""
    with quick(spark):
        yield


APART = 1_000
"""More than the numbers of destinations and subscriptions of one ledger."""


def lawful() -> list[LedgerRow]:
    """Of positions 0 to 9: 0 to 3 are acknowledged, 4 is dead, 5 expires and nothing is kept, 6 goes elsewhere, 7 is purged, 8 is held, 9 waits."""
    return [
        begins(),
        row(2, accepted=[(QUEUE, 4, 0, 9)]),
        row(3, offered=[(1, 4, 0, 4, 77)]),
        row(4, settled=[(1, 4, 0, 1, ACCEPTED)], offered=[(1, 4, 8, 8, 77)]),
        row(5, offered=[(1, 4, 2, 3, 78)]),
        row(6, settled=[(1, 4, 2, 3, ACCEPTED), (1, 4, 4, 4, REJECTED)], accepted=[(DEAD, 4, 0, 0)], traced=[(QUEUE, 4, 4, 4, 0, DEAD, 4, 0)]),
        row(7, settled=[(1, 4, 5, 5, EXPIRED)], traced=[(QUEUE, 4, 5, 5, 0, 0, 0, 0)]),
        row(8, settled=[(1, 4, 6, 6, MOVED)], accepted=[(QUEUE, 9, 0, 0)], traced=[(QUEUE, 4, 6, 6, 1, QUEUE, 9, 0)]),
        row(9, settled=[(1, 4, 7, 7, PURGED)]),
    ]


HELD: list[Holding] = [
    ("row", QUEUE, None, 4, 0, 9), ("row", QUEUE, None, 9, 0, 0), ("row", DEAD, None, 4, 0, 0), ("reserved", QUEUE, 1, 4, 8, 8),
    ("settled", QUEUE, 1, 4, 0, 7),
]  # fmt: skip


def _without(rows: list[LedgerRow], number: int) -> list[LedgerRow]:
    return [one for one in rows if one.number != number]


def _with(rows: list[LedgerRow], number: int, **told: Any) -> list[LedgerRow]:
    """The commit also tells this."""
    return [row(number, **{name: getattr(one, name) + told.get(name, []) for name in _LISTS}) if one.number == number else one for one in rows]


_LISTS = ("accepted", "offered", "settled", "failures", "traced", "begun", "ended")
"""Of a LedgerRow."""
Fault = tuple[list[LedgerRow], list[Holding], list[tuple[str, int | None, int, int]]]


def _faults() -> dict[str, Fault]:
    plain = lawful()
    return {
        "nothing": (plain, HELD, []),
        "its row is gone": (plain, [("row", QUEUE, None, 4, 0, 8), *HELD[1:]], [(audit.LOST, QUEUE, 9, 9)]),
        "its row is there and the checkpoint has passed it": (plain, [*HELD, ("settled", QUEUE, 1, 4, 9, 9)], [(audit.LOST, QUEUE, 9, 9)]),
        "nothing, and the checkpoint is of a commit before its purge was undone": (
            [*_with(plain, 9, settled=[(1, 4, 9, 9, PURGED)]), row(10, settled=[(1, 4, 9, 9, RESTORED)])], [*HELD, ("settled", QUEUE, 1, 4, 9, 9)], [],
        ),
        "it was moved and arrived nowhere": (_with(plain, 9, settled=[(1, 4, 9, 9, MOVED)]), HELD, [(audit.LOST, QUEUE, 9, 9)]),
        "it is acknowledged twice": (_with(plain, 9, settled=[(1, 4, 1, 2, ACCEPTED)]), HELD, [(audit.DOUBLED, QUEUE, 1, 1), (audit.DOUBLED, QUEUE, 2, 2)]),
        "it is accepted twice": (_with(plain, 9, accepted=[(QUEUE, 4, 9, 9)]), HELD, [(audit.DOUBLED, QUEUE, 9, 9)]),
        "it is delivered after its end": (_with(plain, 9, offered=[(1, 4, 3, 3, 79)]), HELD, [(audit.DOUBLED, QUEUE, 3, 3)]),
        "it is acknowledged and was offered to nobody": (_with(plain, 9, settled=[(1, 4, 9, 9, ACCEPTED)]), HELD, [(audit.UNFLAGGED, QUEUE, 9, 9)]),
        "it is offered in the commit that says it was acknowledged": (
            _with(plain, 9, settled=[(1, 4, 9, 9, ACCEPTED)], offered=[(1, 4, 9, 9, 1)]), HELD, [(audit.DOUBLED, QUEUE, 9, 9)],
        ),
        "it is offered before it is durable": (
            [*_with(plain, 9, offered=[(1, 9, 1, 1, 5)]), row(10, accepted=[(QUEUE, 9, 1, 1)])], [*HELD, ("row", QUEUE, None, 9, 1, 1)],
            [(audit.PREMATURE, QUEUE, 1, 1)],
        ),
        "it is acknowledged and was never accepted": (_with(plain, 9, settled=[(1, 4, 10, 10, PURGED)]), HELD, [(audit.UNACCEPTED, QUEUE, 10, 10)]),
        "it ends after its purge was undone, twice": (
            [*_with(plain, 9, settled=[(1, 4, 9, 9, PURGED)]), row(10, settled=[(1, 4, 9, 9, RESTORED)]), row(11, offered=[(1, 4, 9, 9, 1)]),
             row(12, settled=[(1, 4, 9, 9, ACCEPTED)]), row(13, settled=[(1, 4, 9, 9, PURGED)])],
            HELD, [(audit.DOUBLED, QUEUE, 9, 9)],
        ),
        "its purge is undone, and its row is gone": (
            [*_with(plain, 9, settled=[(1, 4, 9, 9, PURGED)]), row(10, settled=[(1, 4, 9, 9, RESTORED)])], [("row", QUEUE, None, 4, 0, 8), *HELD[1:]],
            [(audit.LOST, QUEUE, 9, 9)],
        ),
        "nothing, and a purge is undone": (
            [*_with(plain, 9, settled=[(1, 4, 9, 9, PURGED)]), row(10, settled=[(1, 4, 9, 9, RESTORED)]), row(11, offered=[(1, 4, 9, 9, 1)]),
             row(12, settled=[(1, 4, 9, 9, ACCEPTED)])],
            HELD, [],
        ),
        "there is a row that nobody sent": (plain, [*HELD, ("row", QUEUE, None, 4, 10, 10)], [(audit.UNACCEPTED, QUEUE, 10, 10)]),
        "it died and nothing says where it is": (_with(plain, 9, settled=[(1, 4, 9, 9, EXPIRED)]), HELD, [(audit.UNRECORDED, QUEUE, 9, 9)]),
        "its copy is in the dead message queue and it did not die": (
            _with(plain, 9, accepted=[(DEAD, 4, 1, 1)], traced=[(QUEUE, 4, 9, 9, 0, DEAD, 4, 1)]), [*HELD, ("row", DEAD, None, 4, 1, 1)],
            [(audit.UNRECORDED, QUEUE, 9, 9)],
        ),
        "its copy was never accepted": (
            _with(plain, 9, settled=[(1, 4, 9, 9, EXPIRED)], traced=[(QUEUE, 4, 9, 9, 0, DEAD, 4, 1)]), HELD, [(audit.UNRECORDED, DEAD, 1, 1)],
        ),
        "there is a dead message and nothing died": (
            _with(plain, 9, accepted=[(DEAD, 4, 1, 1)]), [*HELD, ("row", DEAD, None, 4, 1, 1)], [(audit.UNRECORDED, DEAD, 1, 1)],
        ),
        "a position was never given": (_with(plain, 9, accepted=[(QUEUE, 4, 11, 11)]), [*HELD, ("row", QUEUE, None, 4, 11, 11)], [(audit.GAP, QUEUE, 10, 10)]),
    }  # fmt: skip


def _apart(rows: Sequence[LedgerRow], by: int) -> list[LedgerRow]:
    """The same of other destinations and subscriptions, so that many ledgers are examined as one."""

    def shifted(name: str, fact: tuple[int, ...]) -> tuple[int, ...]:
        places = {"traced": (0, 5), "begun": (0, 1), "ended": (0, 1)}.get(name, (0,))
        return tuple(value + by if place in places and value else value for place, value in enumerate(fact))

    return [replace(one, **{name: [shifted(name, fact) for fact in getattr(one, name)] for name in (*_LISTS, "octets")}) for one in rows]


def _together(ledgers: Sequence[Sequence[LedgerRow]]) -> list[LedgerRow]:
    """Commits of the same number as one, at an instant of their own."""
    whole: dict[int, LedgerRow] = {}
    for one in (one for rows in ledgers for one in rows):
        known = whole.get(one.number, row(one.number))
        whole[one.number] = replace(known, **{name: getattr(known, name) + getattr(one, name) for name in (*_LISTS, "octets")})
    return [whole[number] for number in sorted(whole)]


def _held_apart(holdings: Sequence[Holding], by: int) -> list[Holding]:
    return [(kind, d + by if d else d, s if s is None else s + by, *place) for kind, d, s, *place in holdings]  # type: ignore[misc]


def test_each_planted_fault_is_found_and_nothing_else(spark: SparkSession) -> None:
    faults = _faults()
    rows = _together([_apart(faults[name][0], APART * at) for at, name in enumerate(faults)])
    holdings = [one for at, name in enumerate(faults) for one in _held_apart(faults[name][1], APART * at)]
    addresses = {number + APART * at: address for at in range(len(faults)) for number, address in ADDRESSES.items()}
    asked = matter(spark, rows, holdings, addresses=addresses)
    found = examine(asked)
    told = wrongs(found)
    assert {name: [(kind, d - APART * at, *ends) for kind, d, *ends in told if d and d // APART == at] for at, name in enumerate(faults)} == {
        name: sorted(expected) for name, (_, _, expected) in faults.items()
    }
    proven = fates(found)
    assert {fate: count for (destination, fate), count in proven.items() if destination == QUEUE} == {
        audit.ACKNOWLEDGED: 4, audit.DEAD: 1, audit.EXPIRED: 1, audit.MOVED: 1, audit.DISCARDED: 1, audit.HELD: 1, audit.STORED: 2,
    }  # fmt: skip
    place = list(faults).index("it is acknowledged twice") * APART + QUEUE
    shown = {(one.destination, one.violation, one["first"]): json.loads(one.evidence) for one in with_evidence(found, asked.events).collect()}
    assert len(shown) == len(told)
    assert [(event["number"], event["kind"]) for event in shown[place, audit.DOUBLED, 1]] == [(2, "accepted"), (3, "offered"), (4, "settled"), (9, "settled")]
    place = list(faults).index("there is a row that nobody sent") * APART + QUEUE
    assert shown[place, audit.UNACCEPTED, 10] == [], "of its lane there are events, and none concerns it"
    found.release()


@pytest.mark.slow
def test_of_one_destination_copies_that_came_from_others_are_no_accusation(spark: SparkSession) -> None:
    whole = matter(spark, lawful(), [("row", DEAD, None, 4, 0, 0)])
    found = examine(replace(whole, events=of_one(whole.events, DEAD)))
    assert wrongs(found) == []
    assert fates(found) == {(DEAD, audit.STORED): 1}
    found.release()


@pytest.mark.slow
def test_commits_that_are_missing_are_told_and_what_they_may_have_said_is_no_accusation(spark: SparkSession) -> None:
    rows = _without(_with(lawful(), 9, settled=[(1, 4, 9, 9, ACCEPTED)]), 3)
    found = examined(spark, rows, HELD, gaps=[(3, 3, "the ledger exceeded its size cap")])
    (gap,) = found.violations.collect()
    assert (gap.violation, gap["first"], gap["last"], gap.reason) == (audit.GAP, 3, 3, "commits are missing: the ledger exceeded its size cap")
    told = fates(found)
    assert told[QUEUE, None] == 4, "0, 1, 4 and 9 were offered in commit 3, perhaps; 2 and 3 were seen to be"


def test_a_term_that_goes_back_and_a_commit_that_is_there_twice_are_told(spark: SparkSession) -> None:
    rows = lawful()
    commits = commits_of(spark, rows, {7: 3}).unionByName(commits_of(spark, [rows[2]], {3: 2}))
    assert sorted((one.after, one.number, one.reason) for one in continuity.breaks(commits).collect()) == [
        (3, 3, continuity.TWICE), (3, 4, continuity.TERM), (7, 8, continuity.TERM),
    ]  # fmt: skip


@pytest.mark.slow
def test_what_a_missing_commit_may_have_said_is_no_accusation_later_either(spark: SparkSession) -> None:
    """Commit 3 accepted 5 to 9, offered 0 to 3 and acknowledged 2."""
    before = examined(
        spark, [begins(), row(2, accepted=[(QUEUE, 4, 0, 4)]), row(4, settled=[(1, 4, 0, 0, ACCEPTED)])], [("row", QUEUE, None, 4, 0, 9)],
        gaps=[(3, 3, "the ledger exceeded its size cap")],
    )  # fmt: skip
    assert [kind for kind, *_ in wrongs(before)] == [audit.GAP]
    rows = [
        row(5, settled=[(1, 4, 1, 1, ACCEPTED)], accepted=[(QUEUE, 4, 10, 11)]), row(6, offered=[(1, 4, 5, 6, 7)]), row(7, settled=[(1, 4, 5, 5, ACCEPTED)]),
    ]  # fmt: skip
    held: list[Holding] = [("row", QUEUE, None, 4, 3, 10)]
    after = examined(spark, rows, held, state=before.state.localCheckpoint(), owners={1: QUEUE, 2: DEAD}, complete=True, earlier=[(3, 3)])
    assert wrongs(after) == [(audit.LOST, QUEUE, 11, 11)], "that came later; 2 is gone, and commit 3 may have had its end"
    rows = [row(8, settled=[(1, 4, 3, 3, PURGED)])]
    last = examined(spark, rows, held[:0], state=after.state.localCheckpoint(), owners={1: QUEUE, 2: DEAD}, complete=True, earlier=[(3, 3)])
    assert wrongs(last) == [(audit.LOST, QUEUE, 10, 10)]
    assert fates(last) == {(QUEUE, audit.DISCARDED): 1, (QUEUE, None): 2}, "4 is not proven, and 10 is lost; of 2 was spoken before"


@pytest.mark.slow
def test_an_audit_goes_on_where_the_one_before_ended(spark: SparkSession) -> None:
    rows = [*lawful(), row(10, settled=[(1, 4, 0, 0, ACCEPTED)], offered=[(1, 4, 3, 3, 7)])]
    before = examined(spark, rows[:5], [("row", QUEUE, None, 4, 0, 9)])
    assert wrongs(before) == []
    after = examined(spark, rows[5:], HELD, state=before.state.localCheckpoint(), owners={1: QUEUE, 2: DEAD})
    assert wrongs(after) == [(audit.DOUBLED, QUEUE, 0, 0), (audit.DOUBLED, QUEUE, 3, 3)]
    first, second = fates(before), fates(after)
    assert first == {(QUEUE, audit.ACKNOWLEDGED): 2, (QUEUE, audit.STORED): 8}
    assert second == {
        (QUEUE, audit.ACKNOWLEDGED): 1, (QUEUE, audit.DEAD): 1, (QUEUE, audit.EXPIRED): 1, (QUEUE, audit.MOVED): 1, (QUEUE, audit.DISCARDED): 1,
        (QUEUE, audit.HELD): 1, (QUEUE, audit.STORED): 2, (DEAD, audit.STORED): 1, (QUEUE, None): 2,
    }  # fmt: skip


@pytest.mark.slow
def test_what_was_there_before_the_first_commit_is_not_spoken_of(spark: SparkSession) -> None:
    rows = [row(50, settled=[(1, 4, 5, 6, ACCEPTED)]), row(51, accepted=[(QUEUE, 4, 9, 9)]), row(52, settled=[(1, 4, 8, 8, PURGED)])]
    found = examined(spark, rows, HELD, complete=False, owners={1: QUEUE})
    assert wrongs(found) == []
    assert fates(found) == {(QUEUE, audit.STORED): 1}


@pytest.mark.slow
def test_subscriptions_of_a_topic_each_have_their_fates(spark: SparkSession) -> None:
    rows = [
        row(1, begun=[(5, TOPIC)]),
        row(2, accepted=[(TOPIC, 4, 0, 9)]),
        row(3, begun=[(6, TOPIC)], settled=[(6, 4, 0, 9, EXCLUDED)]),
        row(4, accepted=[(TOPIC, 4, 10, 19)], offered=[(6, 4, 10, 19, 1)]),
        row(5, settled=[(6, 4, 10, 19, ACCEPTED)], ended=[(5, 0)]),
        row(6, accepted=[(TOPIC, 4, 20, 20)]),
    ]
    whole = matter(spark, rows, [("row", TOPIC, None, 4, 20, 20)])
    found = examine(whole)
    assert wrongs(found) == []
    told = {(one.subscription, one.fate): one.messages for one in found.tally.collect()}
    assert told == {(5, audit.ENDED): 20, (6, audit.NOT_MATCHED): 10, (6, audit.ACKNOWLEDGED): 10, (6, audit.STORED): 1}
    rolled = rolled_up(whole.events, found.verdict, 0).where("grain = 'day' AND subscription > 4").collect()
    moved = {one.subscription: (one.counts["arrived"], one.counts["left"]) for one in rolled}
    assert moved == {5: (20, 20), 6: (11, 10)}, "what ended with its subscription does not wait for ever, and what was there before that began never did"


@pytest.mark.slow
def test_what_leaves_a_subscription_has_arrived_there_and_leaves_once_whatever_lies_between_audits(spark: SparkSession) -> None:
    """Message 0 is purged, that is undone, and it is acknowledged, in three audits; 1 is purged and back in the first."""
    audits = [
        [
            row(1, begun=[(5, TOPIC)]), row(2, accepted=[(TOPIC, 4, 0, 9)]), row(3, settled=[(5, 4, 0, 1, PURGED)]),
            row(4, settled=[(5, 4, 1, 1, RESTORED)], offered=[(5, 4, 1, 1, 0)]),
        ],
        [row(5, settled=[(5, 4, 0, 0, RESTORED)], offered=[(5, 4, 0, 0, 0)]), row(6, begun=[(6, TOPIC)], settled=[(6, 4, 0, 9, EXCLUDED)])],
        [row(7, offered=[(5, 4, 0, 9, 1)]), row(8, settled=[(5, 4, 0, 9, ACCEPTED)])],
    ]  # fmt: skip
    state, moved = None, []
    for rows in audits:
        asked = matter(spark, rows, [("row", TOPIC, None, 4, 0, 9)], state=state, owners={5: TOPIC})
        found = examine(asked)
        assert wrongs(found) == []
        rolled = rolled_up(asked.events, found.verdict, rows[0].number - 1).where("grain = 'day' AND subscription > 4").collect()
        moved.append({(one.subscription, name): one.counts[name] for one in rolled for name in ("arrived", "left") if name in one.counts})
        state = found.state.localCheckpoint() if rows is not audits[-1] else None
        found.release()
    assert moved == [{(5, "arrived"): 10, (5, "left"): 1}, {}, {(5, "left"): 9}]


def test_ranges_are_cut_at_buckets_and_come_together_again(spark: SparkSession) -> None:
    ranges = spark.createDataFrame([(1, 0, 3 * BUCKET, 1), (1, 5, 5, 1), (2, 7, 8, 1)], "lane int, first bigint, last bigint, counts bigint")
    found = overlay(ranges, ["lane"], "counts", [])
    assert {(one.lane, one["first"], one["last"], one.counts) for one in found.collect() if one.lane == 2 or one["first"] < BUCKET} == {
        (1, 0, 4, 1), (1, 5, 5, 2), (1, 6, BUCKET - 1, 1), (2, 7, 8, 1),
    }  # fmt: skip
    assert {tuple(one) for one in coalesced(found.select("lane", "first", "last"), ["lane"]).collect()} == {(1, 0, 3 * BUCKET), (2, 7, 8)}


# -- histories ------------------------------------------------------------------------------------------------------------------------
def played(seed: int, monkeypatch: pytest.MonkeyPatch, commands: int = 2_000) -> Tables:
    """What a simulated broker has left in its store, after kills, faults of the database and operators' doings."""
    kept: list[MemoryDatabase] = []

    class Database(MemoryDatabase):
        def __init__(self, choose: Chooser, instance: str) -> None:
            super().__init__(choose, instance)
            kept.append(self)

    with monkeypatch.context() as patched:
        patched.setattr(world, "MemoryDatabase", Database)
        verdict, _ = world.run_seed(seed, commands=commands)
    assert verdict.problem == "", verdict.where
    return kept[0].tables


@pytest.mark.parametrize("seeds", [(1,), pytest.param(range(2, 22), marks=pytest.mark.slow)])
def test_whatever_happens_to_a_simulated_broker_its_ledger_is_proven_and_not_if_something_is_changed(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, seeds: Sequence[int]
) -> None:
    ledgers: list[list[LedgerRow]] = []
    holdings: list[Holding] = []
    addresses: dict[int, str] = {}
    for seed in seeds:
        tables = played(seed, monkeypatch)
        for rows in (tables.ledger, *spoiled(tables.ledger, Random(seed))):
            by = APART * len(ledgers)
            ledgers.append(_apart(rows, by))
            holdings += _held_apart(held_by(tables), by)
            addresses |= {number + by: one.address for number, one in tables.destinations.items()}
    found = examined(spark, _together(ledgers), holdings, addresses=addresses)
    told = found.violations.collect()
    assert [one for one in told if one.destination is None or one.destination // APART % 3 == 0] == []
    assert {one.destination // APART for one in told} == {at for at in range(len(ledgers)) if at % 3}
    assert None not in {one.fate for one in found.tally.collect() if one.destination // APART % 3 == 0}
    found.release()


def spoiled(rows: list[LedgerRow], random: Random) -> list[list[LedgerRow]]:
    """The same with one fact more, and with one less."""
    place = random.choice([place for place, one in enumerate(rows) if any(fact[4] == ACCEPTED for fact in one.settled)])
    fact = random.choice([fact for fact in rows[place].settled if fact[4] == ACCEPTED])
    later = random.randrange(place + 1, len(rows))
    twice = [replace(one, settled=[*one.settled, fact]) if at == later else one for at, one in enumerate(rows)]
    unseen = random.choice([place for place, one in enumerate(rows) if one.accepted])
    less = [replace(one, accepted=one.accepted[1:]) if at == unseen else one for at, one in enumerate(rows)]
    return [twice, less]
