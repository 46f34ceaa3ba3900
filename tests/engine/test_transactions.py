"""Local transactions: together or not at all (checklist items 60 to 64 and 122)."""

from __future__ import annotations

from typing import Any

import pytest

from broker_core.engine import commands as c
from broker_core.engine.message import Encoding, Header, Message
from broker_core.engine.outcome import Outcome
from broker_core.engine.outputs import Output
from broker_core.engine.refusal import Refusal
from tests.engine.rig import ASSURED, BEST_EFFORT, DEAD, EXPRESS, QUEUE, RELIABLE, Bench

TX = b"tx"
OTHER = "queue/other"


def begin(b: Bench, name: bytes = TX) -> list[Output]:
    b.apply(c.Begin(1, name, "begun"))
    return b.flush()


def send(b: Bench, *bodies: str, address: str = QUEUE, level=ASSURED, size: int = 10) -> list[Output]:
    for body in bodies:
        message = Message(Header(b"", 4, level, 0, Encoding.STOMP), body.encode(), size)
        b.apply(c.Transacted(1, TX, c.Send(1, None, address, message), "sent"))
    return b.flush()


def settle(b: Bench, *tags: int, upto: int = 0, outcome: Outcome = Outcome.ACCEPTED) -> list[Output]:
    b.apply(c.Transacted(1, TX, c.Settle(1, 1, list(tags), upto, outcome), "settled"))
    return b.flush()


def end(b: Bench, commit: bool = True) -> list[Output]:
    b.apply(c.End(1, TX, commit, "ended"))
    return b.flush()


def held(messages: list[Message]) -> list[tuple[int, bool, int]]:
    return [(message.position, message.redelivered, message.failures) for message in messages]


# -- together -----------------------------------------------------------------------------------------------------------------------------
def test_nothing_is_seen_before_the_commit_and_all_of_it_in_one_commit_of_the_store() -> None:
    b = Bench()
    b.attach()
    b.attach(2, address=OTHER)
    begin(b)
    assert b.confirmed(send(b, "a", "b")) == ["sent", "sent"]
    send(b, "c", address=OTHER, level=EXPRESS)
    assert (b.depth(), b.depth(OTHER)) == (0, 0)
    commits = b.engine.shard.commit_number
    assert sorted(b.bodies(end(b))) == ["a", "b", "c"]
    assert b.engine.shard.commit_number == commits + 1


LEVELS = {"queue/best-effort": BEST_EFFORT, "queue/express": EXPRESS, "queue/reliable": RELIABLE, "queue/assured": ASSURED}


def send_at_every_level(b: Bench) -> None:
    for address, level in LEVELS.items():
        send(b, "m", address=address, level=level)


def test_whatever_their_levels_its_messages_appear_together() -> None:
    b = Bench()
    begin(b)
    send_at_every_level(b)
    assert not any(address in b.engine.shard.destinations for address in LEVELS)
    end(b)
    assert [b.depth(address) for address in LEVELS] == [1, 1, 1, 1]


@pytest.mark.parametrize("commit", [False, True], ids=["aborted", "refused"])
def test_whatever_their_levels_they_are_rolled_back_together(commit: bool) -> None:
    b = Bench()
    begin(b)
    send_at_every_level(b)
    if commit:
        settle(b, 1)  # of no subscription: the commit cannot be done
    end(b, commit)
    assert not any(address in b.engine.shard.destinations for address in LEVELS)


def test_best_effort_that_finds_no_memory_at_the_commit_is_lost_alone() -> None:
    b = Bench(memory_octets=10_000)
    b.send("fills the memory", level=EXPRESS, size=7_495)
    begin(b)
    send_at_every_level(b)
    assert b.confirmed(end(b)) == ["ended"]
    assert [b.depth(address) for address in LEVELS] == [0, 1, 1, 1]


def test_what_a_crash_at_the_commit_leaves_is_all_that_is_stored_or_none() -> None:
    """The levels that outlive a node (checklist items 111 to 113) do so together."""
    b = Bench()
    begin(b)
    send_at_every_level(b)
    b.start()
    assert not any(address in b.engine.shard.destinations for address in LEVELS)
    begin(b)
    send_at_every_level(b)
    end(b)
    b.start()
    assert [b.depth(address) for address in LEVELS] == [0, 0, 1, 1]


def test_acknowledgements_count_at_the_commit() -> None:
    b = Bench()
    b.attach()
    b.send("a", "b", "c")
    begin(b)
    settle(b, upto=2)
    assert b.depth() == 3
    end(b)
    assert b.depth() == 1
    b.start()
    assert b.attach() == ["c"]


def test_a_crash_before_the_commit_leaves_nothing_of_it() -> None:
    b = Bench()
    b.attach()
    b.send("a")
    begin(b)
    settle(b, 1)
    send(b, "new")
    b.start()
    b.apply(c.Attach(1, 1, QUEUE, credit=10))
    assert held(b.delivered(b.flush())) == [(0, True, 0)]


def test_a_send_to_the_dead_message_queue_is_refused_and_so_is_the_commit_with_it() -> None:
    b = Bench()
    begin(b)
    send(b, "a")
    assert b.refused(send(b, "forged", address=DEAD)) == [Refusal.DESTINATION_RESERVED]
    assert b.refused(end(b)) == [Refusal.DESTINATION_RESERVED]
    assert b.depth(DEAD) == 0
    assert QUEUE not in b.engine.shard.destinations


def test_an_abort_forgets_the_sends_and_brings_back_what_was_acknowledged_flagged_as_a_failure() -> None:
    b = Bench()
    b.attach()
    b.send("a")
    begin(b)
    settle(b, 1)
    send(b, "new")
    assert held(b.delivered(end(b, commit=False))) == [(0, True, 1)]
    assert b.depth() == 1


def test_what_a_transaction_acknowledged_is_nobody_elses_meanwhile() -> None:
    b = Bench()
    b.attach()
    b.send("a", "b")
    begin(b)
    settle(b, 1)
    assert b.attach(2) == []
    assert b.control("purge", QUEUE)["purged"] == 0
    b.settle(upto=2)
    assert b.depth() == 1
    assert b.confirmed(end(b)) == ["ended"]
    assert b.depth() == 0


@pytest.mark.parametrize("commit", [True, False], ids=["committed", "aborted"])
def test_what_a_transaction_acknowledged_does_not_expire_under_it(commit: bool) -> None:
    b = Bench()
    b.attach(credit=1)
    b.send("acknowledged", "delivered then", "waiting", expires=b.now + 1_000)
    begin(b)
    settle(b, 1)
    b.passes(2_000)
    b.control("expire")
    assert (b.depth(), b.depth(DEAD)) == (2, 1), "what nobody had is dead"
    end(b, commit)
    b.passes(1)
    assert (b.depth(), b.depth(DEAD)) == (1, 1 if commit else 2)


def test_a_consumer_may_close_before_its_transaction_commits() -> None:
    b = Bench()
    b.attach()
    b.send("a")
    begin(b)
    settle(b, 1)
    b.apply(c.Detach(1, 1))
    b.flush()
    assert b.confirmed(end(b)) == ["ended"]
    assert b.depth() == 0


def test_what_a_lost_peers_transactions_held_comes_back_and_is_no_failure() -> None:
    b = Bench()
    b.apply(c.Open(2, "guest"))
    b.attach()
    b.send("a")
    begin(b)
    settle(b, 1)
    send(b, "new")
    b.apply(c.PeerLost(1), c.Attach(2, 9, QUEUE, credit=10))
    assert held(b.delivered(b.flush())) == [(0, True, 0)]
    assert b.depth() == 1


def test_a_negative_acknowledgement_counts_at_the_commit_too() -> None:
    b = Bench()
    b.attach()
    b.send("a")
    begin(b)
    assert b.delivered(settle(b, 1, outcome=Outcome.FAILED)) == []
    assert held(b.delivered(end(b))) == [(0, True, 1)]


def test_credit_comes_back_with_the_acknowledgement_so_that_a_transaction_may_be_longer_than_the_prefetch() -> None:
    b = Bench()
    b.attach(credit=1)
    b.send("a", "b", "c")
    begin(b)
    for tag in (1, 2):
        assert len(b.delivered(settle(b, tag))) == 1
    settle(b, 3)
    end(b)
    assert b.depth() == 0


def test_a_message_that_fails_in_too_many_transactions_is_dead() -> None:
    b = Bench()
    b.control("create", QUEUE, redelivery_max=1, redelivery_delay_ms=0)
    b.attach()
    b.send("a")
    for tag in (1, 2):
        begin(b)
        settle(b, tag)
        end(b, commit=False)
    assert (b.depth(), b.depth(DEAD)) == (0, 1)


# -- not at all ---------------------------------------------------------------------------------------------------------------------------
def test_a_commit_that_cannot_be_done_rolls_everything_back() -> None:
    b = Bench()
    b.attach()
    b.send("a")
    b.control("create", OTHER)
    begin(b)
    settle(b, 1)
    send(b, "b", address="queue/third")
    send(b, "c", address=OTHER)
    b.control("pause", OTHER, direction="PRODUCERS")
    outputs = end(b)
    assert b.refused(outputs) == [Refusal.DESTINATION_PAUSED]
    assert held(b.delivered(outputs)) == [(0, True, 1)]
    assert "queue/third" not in b.engine.shard.destinations


@pytest.mark.parametrize("work", [c.Send(1, None, QUEUE, Message(Header(b"", 4, ASSURED), b"m", 10)), c.Settle(1, 1, [1])])
def test_work_for_a_transaction_that_has_not_begun_is_refused(work: Any) -> None:
    b = Bench()
    b.attach()
    b.send("a")
    b.apply(c.Transacted(1, TX, work))
    assert b.refused(b.flush()) == [Refusal.NO_SUCH_TRANSACTION]
    assert b.refused(end(b)) == [Refusal.NO_SUCH_TRANSACTION]


def test_a_name_is_free_again_when_its_transaction_has_ended() -> None:
    b = Bench()
    begin(b)
    assert b.refused(begin(b)) == [Refusal.TRANSACTION_EXISTS]
    end(b)
    assert b.confirmed(begin(b)) == ["begun"]


def test_transactions_are_bounded_in_number_messages_and_octets() -> None:
    b = Bench(transactions_max=1, transaction_messages_max=2, transaction_octets_max=2000)
    begin(b)
    assert b.refused(begin(b, b"second")) == [Refusal.TRANSACTION_TOO_LARGE]
    assert b.refused(send(b, "a", size=1500)) == [Refusal.TRANSACTION_TOO_LARGE]
    end(b, commit=False)
    begin(b)
    assert b.refused(send(b, "a", "b", "c")) == [Refusal.TRANSACTION_TOO_LARGE]


def test_a_transaction_of_which_a_part_was_refused_cannot_be_committed() -> None:
    b = Bench()
    b.control("create", OTHER)
    b.control("pause", OTHER, direction="PRODUCERS")
    begin(b)
    send(b, "a")
    assert b.refused(send(b, "b", address=OTHER)) == [Refusal.DESTINATION_PAUSED]
    b.control("resume", OTHER, direction="PRODUCERS")
    assert b.refused(end(b)) == [Refusal.DESTINATION_PAUSED]
    assert QUEUE not in b.engine.shard.destinations


def test_a_transaction_that_acknowledges_what_is_not_outstanding_cannot_be_committed() -> None:
    b = Bench()
    b.send("m")
    b.attach(credit=1)
    begin(b)
    settle(b, 1)
    end(b, commit=False)
    begin(b)
    send(b, "answer", address=OTHER)
    settle(b, 1)  # once more: it came back meanwhile, and is outstanding under another tag or not at all
    assert b.refused(end(b)) == [Refusal.NOT_OUTSTANDING]
    assert OTHER not in b.engine.shard.destinations
    assert b.depth() == 1


def test_nor_can_one_that_acknowledges_what_went_back_with_its_consumer() -> None:
    b = Bench()
    b.send("m")
    b.attach(credit=1)
    begin(b)
    b.apply(c.Detach(1, 1))
    send(b, "answer", address=OTHER)
    settle(b, 1)
    assert b.refused(end(b)) == [Refusal.NOT_OUTSTANDING]
    assert OTHER not in b.engine.shard.destinations
    assert b.depth() == 1


def test_what_a_cumulative_acknowledgement_brings_counts_towards_the_bound() -> None:
    b = Bench(transaction_messages_max=3)
    b.send("a", "b", "c", "d")
    b.attach()
    begin(b)
    assert b.refused(settle(b, upto=4)) == [Refusal.TRANSACTION_TOO_LARGE]
    end(b, commit=False)
    begin(b)
    assert b.refused(settle(b, upto=7)) == []


def timed_out() -> Bench:
    """Its transaction, with the acknowledgement of a message that has come again."""
    b = Bench(transaction_ms_max=1000)
    b.attach()
    b.send("a")
    begin(b)
    settle(b, 1)
    b.now += 1000
    assert held(b.delivered(b.flush(report=True))) == [(0, True, 1)]
    return b


def test_a_transaction_that_nobody_ends_gives_back_what_it_holds() -> None:
    b = timed_out()
    assert b.refused(send(b, "b")) == [Refusal.TRANSACTION_TIMED_OUT]
    assert b.refused(end(b)) == [Refusal.TRANSACTION_TIMED_OUT]


def test_a_destination_destroyed_meanwhile_takes_its_part_of_the_transaction_with_it() -> None:
    b = Bench()
    b.attach()
    b.send("a")
    begin(b)
    settle(b, 1)
    b.control("destroy", QUEUE)
    assert b.confirmed(end(b)) == ["ended"]
    assert QUEUE not in b.engine.shard.destinations


def test_a_commit_that_needs_more_destinations_than_there_may_be_makes_none_of_them() -> None:
    b = Bench(destinations_max=3)
    begin(b)
    for number in range(100):
        send(b, "a", address=f"queue/{number}")
    assert b.refused(end(b)) == [Refusal.TOO_MANY_DESTINATIONS]
    assert list(b.engine.shard.destinations) == [DEAD]
    begin(b)
    for address in (QUEUE, OTHER, QUEUE):
        send(b, "a", address=address)
    assert b.confirmed(end(b)) == ["ended"]


def test_a_lower_priority_that_waited_for_a_reserved_message_is_delivered_at_the_commit() -> None:
    """The last of the higher priority expires on disk; the one before it is settled by the commit, and then all of them are over."""
    b = Bench(slow=True, memory_octets=120, page_octets=10)
    b.attach(credit=1)
    b.send("a", level=EXPRESS, priority=9)
    b.send("fills the memory", address="queue/other", level=EXPRESS, size=70)
    b.send("on disk", level=EXPRESS, priority=9, expires=b.now + 10, size=50)
    b.send("low", level=EXPRESS, priority=1)
    b.apply(c.Begin(1, b"t"), c.Transacted(1, b"t", c.Settle(1, 1, [1])))
    b.flush()
    b.now += 20
    pages, b.reads = b.reads, []
    b.control("expire")
    b.read()
    b.flush()
    b.reads = pages
    b.apply(c.End(1, b"t", True))
    assert b.bodies(b.flush()) == ["low"]


# -- what was refused ---------------------------------------------------------------------------------------------------------------------
def test_what_comes_again_to_a_transaction_that_timed_out_and_is_acknowledged_there_has_failed_once() -> None:
    b = timed_out()
    assert held(b.delivered(settle(b, 2))) == [(0, True, 1)]
    assert b.confirmed(end(b, commit=False)) == ["ended"]
    b.settle(3, outcome=Outcome.FAILED)
    assert b.cursor().failures == {0: 2}


def test_a_cumulative_acknowledgement_does_not_take_along_what_a_transaction_that_timed_out_was_to_have() -> None:
    b = Bench(transaction_ms_max=1000)
    b.attach()
    b.send("a", "b")
    begin(b)
    b.passes(1000)
    b.apply(c.Transacted(1, TX, c.Settle(1, 1, [1]), "settled"), c.End(1, TX, False), c.Settle(1, 1, [], 2))
    outputs = b.flush()
    assert b.refused(outputs) == [Refusal.TRANSACTION_TIMED_OUT]
    assert [(b.body(message), message.redelivered) for message in b.delivered(outputs)] == [("a", True)]
    assert b.depth() == 1


def test_nor_what_a_transaction_had_no_room_for() -> None:
    b = Bench(transaction_messages_max=1)
    b.attach()
    b.send("a", "b", "c")
    begin(b)
    b.apply(c.Transacted(1, TX, c.Settle(1, 1, [], 2), "settled"), c.End(1, TX, False), c.Settle(1, 1, [], 3))
    outputs = b.flush()
    assert b.refused(outputs) == [Refusal.TRANSACTION_TOO_LARGE]
    assert held(b.delivered(outputs)) == [(0, True, 0), (1, True, 0)]
    assert b.depth() == 2
