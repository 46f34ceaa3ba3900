"""Operations of operators on many messages."""

from __future__ import annotations

import json

import pytest

from broker_core.engine import commands as c
from broker_core.engine.dead import REASON
from broker_core.engine.message import StoredBody
from broker_core.engine.outcome import Outcome
from broker_core.engine.settings import REJECT_NEWEST
from broker_core.engine.writes import OperationRow, OperationState
from tests.engine.rig import ASSURED, BEST_EFFORT, DEAD, EXPRESS, QUEUE, RELIABLE, Bench

OTHER, TOPIC = "queue/other", "topic/prices"


def operate(bench: Bench, verb: str, address: str = QUEUE, **arguments: object) -> OperationRow:
    """From the request to the operation's end."""
    answer = bench.control("operate", address, verb=verb, **arguments)
    assert "operation" in answer, answer
    return row(bench, answer["operation"])


def row(bench: Bench, number: int) -> OperationRow:
    return bench.database.tables.operations[number]


def counts(row: OperationRow) -> tuple[str, int, int, int, int]:
    return row.state.value, row.looked_at, row.done, row.skipped, row.failed


def rows(bench: Bench, address: str) -> list[str]:
    """Bodies of what the queue holds, by looking."""
    shard = bench.engine.shard
    link = 900 + shard.read_number
    bodies = bench.browse(link, address=address)
    bench.apply(c.Detach(1, link))
    return bodies


@pytest.fixture
def bench() -> Bench:
    bench = Bench(operation_rows=3, operation_effort=61)
    bench.control("create", OTHER)
    return bench


# -- what is refused ------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"verb": "mvoe"}, "the verb must be one of"),
        ({"verb": "move"}, "move needs a destination"),
        ({"verb": "delete", "destination": OTHER}, "delete takes no destination"),
        ({"verb": "move", "destination": 5}, "must be the address"),
        ({"verb": "move", "destination": QUEUE}, "is where the messages are"),
        ({"verb": "move", "destination": "queue/nowhere"}, "queue/nowhere"),
        ({"verb": "move", "destination": DEAD}, "made to expire"),
        ({"verb": "reprioritize"}, "needs a priority"),
        ({"verb": "reprioritize", "priority": 10}, "from 0 to 9"),
        ({"verb": "reprioritize", "priority": True}, "from 0 to 9"),
        ({"verb": "delete", "limit": 0}, "from 1"),
        ({"verb": "delete", "messages": []}, "messages must be a list"),
        ({"verb": "delete", "messages": [[4]]}, "messages must be a list"),
        ({"verb": "delete", "messages": [[20, 1]]}, "messages must be a list"),
        ({"verb": "delete", "messages": [[4, "1"]]}, "messages must be a list"),
        ({"verb": "delete", "filter": []}, "an object of conditions"),
        ({"verb": "delete", "filter": {"selector": "colour ="}}, "selector"),
        ({"verb": "delete", "filter": {"colour": "red"}}, "no such condition"),
        ({"verb": "delete", "dry_run": "yes"}, "true or false"),
        ({"verb": "delete", "dryrun": True}, "no argument dryrun"),
        ({"verb": "delete", "subscription": 99}, "a queue has none but its own"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(bench: Bench, arguments: dict[str, object], sentence: str) -> None:
    bench.send("a")
    answer = bench.control("operate", QUEUE, **arguments)
    assert sentence in answer["detail"]
    assert bench.depth() == 1 and not bench.database.tables.operations


def test_of_a_queue_that_is_not_there_nothing_is_moved(bench: Bench) -> None:
    assert bench.control("operate", "queue/nowhere", verb="delete")["refusal"] == "NO_SUCH_DESTINATION"


# -- move and copy --------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("level", [ASSURED, RELIABLE, EXPRESS, BEST_EFFORT])
def test_messages_are_moved_in_order_whatever_their_level(bench: Bench, level) -> None:
    bench.send(*"abcdefg", level=level)
    ended = operate(bench, "move", destination=OTHER)
    assert counts(ended) == ("done", 7, 7, 0, 0) and ended.total == 7
    assert bench.depth() == 0 and bench.destination().octets == 0
    assert bench.attach(address=OTHER) == list("abcdefg")


def test_moved_messages_keep_their_identifiers(bench: Bench) -> None:
    bench.send("a", "b")
    before = [f"ID:test-{message.sequence}" for message in bench.cursor().ready]
    operate(bench, "move", destination=OTHER)
    bench.attach(address=OTHER)
    moved = bench.engine.shard.links[1].unsettled.values()
    assert [bench.engine.shard.message_id(message) for message in moved] == before


def test_what_is_on_disk_only_is_moved_without_being_read_by_a_cursor() -> None:
    bench = Bench(operation_rows=3, operation_effort=61, memory_octets=30, page_octets=40)
    bench.control("create", OTHER)
    bench.send(*"abcdefghij")
    assert operate(bench, "move", destination=OTHER).done == 10
    assert bench.attach(address=OTHER) == list("abcdefghij")


def test_a_copy_leaves_its_source(bench: Bench) -> None:
    bench.send(*"abc")
    assert operate(bench, "copy", destination=OTHER).done == 3
    assert (bench.depth(), bench.depth(OTHER)) == (3, 3)
    assert bench.attach(address=OTHER) == list("abc")
    assert bench.attach(2) == list("abc")


def test_what_came_after_the_beginning_is_not_moved() -> None:
    bench = Bench(operation_rows=2, operation_effort=31, slow=True)
    bench.control("create", OTHER)
    bench.send(*"abcd")
    bench.apply(c.Control(bench.database.request("operate"), "operate", QUEUE, {"verb": "move", "destination": OTHER}))
    bench.send("e")
    for _ in range(20):
        bench.read()
        bench.flush()
    assert (bench.depth(), bench.depth(OTHER)) == (1, 4)


def test_only_what_the_filter_lets_through_is_moved(bench: Bench) -> None:
    for number in range(8):
        bench.send(str(number), properties={"colour": "red" if number % 3 == 0 else "blue"})
    ended = operate(bench, "move", destination=OTHER, filter={"selector": "colour = 'red'"})
    assert counts(ended) == ("done", 8, 3, 0, 0) and ended.total is None
    assert bench.attach(address=OTHER) == ["0", "3", "6"]
    assert bench.attach(2) == ["1", "2", "4", "5", "7"]


@pytest.mark.parametrize(("condition", "moved"), [({"age_min_ms": 2_000}, 2), ({"age_max_ms": 1_500}, 2)])
def test_ages_count_from_the_beginning_however_long_it_takes(condition: dict[str, int], moved: int) -> None:
    bench = Bench(operation_rows=1, operation_effort=31, slow=True)
    bench.control("create", OTHER)
    bench.send("a", "b")
    bench.passes(1_000)
    bench.send("c", "d")
    bench.passes(1_000)
    number = bench.control("operate", QUEUE, verb="move", destination=OTHER, filter=condition)["operation"]
    for _ in range(20):
        bench.passes(1_000)
        bench.read()
        bench.flush()
    assert counts(row(bench, number)) == ("done", 4, moved, 0, 0)


def test_a_text_is_looked_for_in_bodies(bench: Bench) -> None:
    bench.send("apple", "pear", "pineapple", size=20)
    assert operate(bench, "delete", filter={"text": "apple"}).done == 2
    assert bench.attach() == ["pear"]


def test_selected_messages_alone_are_moved(bench: Bench) -> None:
    bench.send(*"abcdefgh")
    bench.send("x", priority=7)
    ended = operate(bench, "move", destination=OTHER, messages=[[4, 1], [4, 6], [4, 6], [7, 0], [4, 77]])
    assert counts(ended) == ("done", 3, 3, 0, 0) and ended.total == 4
    assert bench.attach(address=OTHER) == ["x", "b", "g"]
    assert ended.results == [["done", "", [[7, 0], [4, 1], [4, 6]]]], "there was no 4-77"


def test_of_named_messages_each_is_told_with_the_reason(bench: Bench) -> None:
    bench.control("update", OTHER, max_messages=1, limit_behavior=REJECT_NEWEST)
    bench.send(*"abcd")
    bench.attach(credit=1)
    ended = operate(bench, "move", destination=OTHER, messages=[[4, 0], [4, 1], [4, 3]])
    assert sorted(ended.results) == [
        ["done", "", [[4, 1]]], ["failed", ended.error, [[4, 3]]], ["skipped", "a consumer has it, or a transaction", [[4, 0]]],
    ]  # fmt: skip


def test_of_a_filter_the_first_that_failed_are_told(bench: Bench, monkeypatch) -> None:
    monkeypatch.setattr("broker_core.engine.operation.FAILED_MAX", 3)
    bench.control("update", OTHER, max_messages=2, limit_behavior=REJECT_NEWEST)
    bench.send(*"abcdefgh")
    ended = operate(bench, "move", destination=OTHER)
    assert counts(ended) == ("done", 8, 2, 0, 6)
    assert ended.results == [["failed", ended.error, [[4, 2], [4, 3], [4, 4]]]]
    assert operate(bench, "move", destination=OTHER, dry_run=True).results == []


@pytest.mark.parametrize("flushes", [1, 2, 3, 4])
def test_after_a_crash_each_is_told_all_the_same(flushes: int) -> None:
    bench = Bench(operation_rows=2, operation_effort=31, slow=True)
    bench.send(*"abcdefgh")
    places = [[4, number] for number in range(8)]
    number = bench.control("operate", QUEUE, verb="reprioritize", priority=9, messages=places)["operation"]
    for _ in range(flushes):
        bench.read()
        bench.flush()
    bench.slow = False
    bench.start()
    bench.flush()
    assert row(bench, number).results == [["done", "", places]]


def test_no_more_are_moved_than_the_limit(bench: Bench) -> None:
    bench.send(*"abcdefgh")
    ended = operate(bench, "move", destination=OTHER, limit=5)
    assert (ended.done, ended.total) == (5, 5)
    assert bench.attach(address=OTHER) == list("abcde")


def test_what_a_consumer_has_or_a_transaction_is_skipped_and_counted(bench: Bench) -> None:
    bench.send(*"abcdefgh")
    bench.attach(credit=3)
    bench.apply(c.Begin(1, b"t"), c.Transacted(1, b"t", c.Settle(1, 1, [1])))
    bench.flush()
    ended = operate(bench, "move", destination=OTHER)
    assert counts(ended) == ("done", 8, 4, 4, 0)
    assert (bench.depth(), bench.depth(OTHER)) == (4, 4)


def test_what_came_back_is_moved_too(bench: Bench) -> None:
    bench.send(*"abcd")
    bench.attach(credit=3)
    bench.apply(c.Detach(1, 1))
    bench.flush()
    assert operate(bench, "move", destination=OTHER).done == 4
    assert bench.attach(2, address=OTHER) == list("abcd")


def test_a_consumer_goes_on_behind_what_was_moved(bench: Bench) -> None:
    bench.send(*"abcdefgh")
    bench.attach(credit=1)
    operate(bench, "move", destination=OTHER, messages=[[4, 2], [4, 3]])
    assert bench.bodies(bench.settle(1)) == ["b"]
    assert bench.bodies(bench.settle(2)) == ["e"]


def test_moved_messages_reach_a_consumer_who_waits_for_them(bench: Bench) -> None:
    bench.attach(5, address=OTHER)
    bench.send(*"abc")
    bench.outputs.clear()
    operate(bench, "move", destination=OTHER)
    assert bench.bodies(bench.outputs) == list("abc")


def test_a_selective_consumer_finds_what_was_moved(bench: Bench) -> None:
    from broker_core.engine.selector import compile_selector
    from broker_core.engine.subscription import Filter

    bench.attach(5, address=OTHER, wanted=Filter(compile_selector("colour = 'red'")))
    bench.send("r", properties={"colour": "red"})
    bench.send("b", properties={"colour": "blue"})
    bench.outputs.clear()
    operate(bench, "move", destination=OTHER)
    bench.flush()
    assert bench.bodies(bench.outputs) == ["r"]


def test_a_large_body_goes_along_by_its_number(bench: Bench) -> None:
    from broker_core.engine.message import Header, Message

    bench.database.tables.bodies[1] = (1, [b"large"])
    bench.apply(c.Send(1, "t", QUEUE, Message(Header(b"", reliability=ASSURED), StoredBody(1, 5), 5)))
    bench.flush()
    operate(bench, "move", destination=OTHER)
    assert bench.attach(address=OTHER) == ["body 1"]


def test_room_in_the_target_is_respected(bench: Bench) -> None:
    bench.control("update", OTHER, max_messages=2, limit_behavior=REJECT_NEWEST)
    bench.send(*"abcd")
    ended = operate(bench, "move", destination=OTHER)
    assert counts(ended) == ("done", 4, 2, 0, 2) and "holds as much as it may" in ended.error
    assert (bench.depth(), bench.depth(OTHER)) == (2, 2)


def test_it_fails_with_a_sentence_when_its_queue_is_destroyed() -> None:
    bench = Bench(operation_rows=2, operation_effort=31, slow=True)
    bench.control("create", OTHER)
    bench.send(*"abcd")
    number = bench.control("operate", QUEUE, verb="move", destination=OTHER)["operation"]
    bench.control("destroy", QUEUE, depth=4)
    for _ in range(5):
        bench.read()
        bench.flush()
    assert row(bench, number).state is OperationState.FAILED and QUEUE in row(bench, number).error


# -- topics ---------------------------------------------------------------------------------------------------------------------------
def test_messages_are_moved_to_a_topic_for_those_who_subscribe_to_it(bench: Bench) -> None:
    bench.apply(c.Open(2, "guest", client_id="me"), c.Attach(2, 7, TOPIC, name="d", durable=True, credit=10))
    bench.flush()
    bench.send(*"abc")
    bench.outputs.clear()
    assert operate(bench, "move", destination=TOPIC).done == 3
    assert bench.bodies(bench.outputs) == list("abc")
    assert bench.depth(TOPIC) == 3


def test_what_nobody_would_get_of_a_topic_stays(bench: Bench) -> None:
    bench.control("create", TOPIC)
    bench.send("a")
    ended = operate(bench, "move", destination=TOPIC)
    assert (ended.done, ended.failed) == (0, 1) and "nobody subscribes" in ended.error
    assert bench.depth() == 1


def test_messages_of_one_durable_subscription_are_moved_and_others_keep_theirs(bench: Bench) -> None:
    bench.apply(c.Open(2, "guest", client_id="me"))
    bench.apply(c.Attach(2, 7, TOPIC, name="d", durable=True, credit=0), c.Attach(2, 8, TOPIC, name="e", durable=True, credit=0))
    bench.flush()
    bench.send(*"abcd", address=TOPIC)
    subscription = bench.engine.shard.named["me", "d"].number
    assert operate(bench, "move", TOPIC, subscription=subscription, destination=OTHER).done == 4
    assert bench.attach(9, address=OTHER) == list("abcd")
    assert bench.bodies([*_grant(bench, 7), *_grant(bench, 8)]) == list("abcd")


def _grant(bench: Bench, link: int):
    bench.apply(c.Grant(link, 10))
    return bench.flush()


def test_of_a_topic_a_subscription_must_be_named(bench: Bench) -> None:
    bench.control("create", TOPIC)
    assert "name a durable subscription" in bench.control("operate", TOPIC, verb="delete")["detail"]
    assert bench.control("operate", TOPIC, verb="delete", subscription=99)["refusal"] == "INVALID_SETTING"


# -- retry ----------------------------------------------------------------------------------------------------------------------------
def _dead(bench: Bench, *bodies: str, address: str = QUEUE, **how: object) -> None:
    bench.send(*bodies, address=address, **how)
    bench.attach(50, address=address)
    bench.apply(c.Settle(1, 50, upto=len(bodies), outcome=Outcome.REJECTED), c.Detach(1, 50))
    bench.flush()


@pytest.mark.parametrize("level", [ASSURED, EXPRESS])
def test_dead_messages_go_back_to_where_each_of_them_died(bench: Bench, level) -> None:
    _dead(bench, *"abc", level=level)
    _dead(bench, *"xy", address=OTHER, level=level)
    assert bench.depth(DEAD) == 5
    assert operate(bench, "retry", DEAD).done == 5
    assert bench.depth(DEAD) == 0
    assert bench.attach(address=QUEUE) == list("abc")
    assert bench.attach(2, address=OTHER) == list("xy")


def test_what_was_retried_is_as_it_was_and_may_die_again(bench: Bench) -> None:
    _dead(bench, "a")
    operate(bench, "retry", DEAD)
    bench.attach(credit=1)
    (message,) = bench.engine.shard.links[1].unsettled.values()
    assert message.header.annotations == "" and message.header.expiration == 0 and message.failures == 0
    bench.settle(1, outcome=Outcome.REJECTED)
    assert bench.depth(DEAD) == 1


def test_a_time_to_live_that_has_not_passed_holds_again(bench: Bench) -> None:
    _dead(bench, "a", expires=bench.now + 5_000)
    operate(bench, "retry", DEAD)
    bench.attach(credit=1)
    (message,) = bench.engine.shard.links[1].unsettled.values()
    assert message.header.expiration == bench.now + 5_000


def test_what_expired_comes_back_without_its_time_to_live(bench: Bench) -> None:
    bench.send("a", expires=bench.now + 10)
    bench.now += 20
    bench.control("expire")
    assert bench.depth(DEAD) == 1
    operate(bench, "retry", DEAD)
    assert bench.attach() == ["a"]


def test_what_has_no_origin_stays_where_it_is(bench: Bench) -> None:
    bench.send("a")
    ended = operate(bench, "retry", QUEUE)
    assert (ended.done, ended.failed) == (0, 1) and "has not died" in ended.error


def test_a_queue_that_is_gone_is_made_again(bench: Bench) -> None:
    _dead(bench, "a")
    bench.control("destroy", QUEUE, depth=0)
    assert operate(bench, "retry", DEAD).done == 1
    assert bench.attach() == ["a"]


def test_what_lost_its_body_is_not_sent_back_without(bench: Bench) -> None:
    bench = Bench(dead_truncate_body=True)
    _dead(bench, "a")
    ended = operate(bench, "retry", DEAD)
    assert ended.failed == 1 and "body" in ended.error


def test_dead_messages_of_a_reason_go_back(bench: Bench) -> None:
    _dead(bench, *"ab")
    bench.send("c", expires=bench.now + 10)
    bench.now += 20
    bench.control("expire")
    assert operate(bench, "retry", DEAD, filter={"reason": "EXPIRED"}).done == 1
    assert bench.attach() == ["c"]


# -- delete, expire, reprioritize -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("level", [ASSURED, EXPRESS])
@pytest.mark.parametrize("verb", ["delete", "purge"])
def test_messages_are_deleted_and_never_dead(bench: Bench, verb: str, level) -> None:
    bench.send(*"abcdefg", level=level)
    assert operate(bench, verb, messages=[[4 if level is ASSURED else 14, 2]]).done == 1
    assert rows(bench, QUEUE) == list("abdefg")
    assert operate(bench, verb).done == 6
    assert (bench.depth(), bench.depth(DEAD)) == (0, 0)


@pytest.mark.parametrize("level", [ASSURED, EXPRESS])
def test_messages_that_are_made_to_expire_are_dead_with_that_reason(bench: Bench, level) -> None:
    bench.send(*"abc", level=level)
    assert operate(bench, "expire").done == 3
    assert bench.depth() == 0
    assert bench.attach(address=DEAD) == list("abc")
    for message in bench.engine.shard.links[1].unsettled.values():
        assert json.loads(message.header.annotations)[REASON] == "EXPIRED"


@pytest.mark.parametrize("level", [ASSURED, EXPRESS])
def test_messages_get_another_priority_in_their_queue(bench: Bench, level) -> None:
    bench.send(*"abc", level=level)
    bench.send(*"xy", priority=9, level=level)
    ended = operate(bench, "reprioritize", priority=9)
    assert counts(ended) == ("done", 5, 3, 2, 0)
    assert bench.attach() == list("xyabc")
    assert all(message.header.priority == 9 for message in bench.engine.shard.links[1].unsettled.values())


# -- dry runs, cancelling, crashes ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("verb", ["delete", "expire", "retry"])
def test_a_dry_run_counts_and_changes_nothing(bench: Bench, verb: str) -> None:
    for number in range(8):
        bench.send(str(number), properties={"colour": "red" if number % 3 == 0 else "blue"})
    bench.attach(credit=1)
    ended = operate(bench, verb, filter={"selector": "colour = 'red'"}, dry_run=True)
    assert counts(ended) == ("done", 8, 2, 1, 0)
    assert bench.depth() == 8


def test_what_is_cancelled_stops_and_keeps_what_it_did() -> None:
    bench = Bench(operation_rows=2, operation_effort=31, slow=True)
    bench.control("create", OTHER)
    bench.send(*"abcdefgh")
    number = bench.control("operate", QUEUE, verb="move", destination=OTHER)["operation"]
    bench.read()
    bench.flush()
    done = row(bench, number).done
    assert 0 < done < 8
    assert bench.control("cancel", operation=number)["operation"] == number
    bench.read()
    bench.flush()
    assert counts(row(bench, number))[0::2] == ("cancelled", done, 0)
    assert bench.depth(OTHER) == done
    assert "no operation" in bench.control("cancel", operation=number)["detail"]


@pytest.mark.parametrize("verb", ["move", "copy", "delete", "reprioritize"])
@pytest.mark.parametrize("flushes", [1, 2, 3, 4, 5, 6])
def test_after_a_crash_it_goes_on_where_it_was(verb: str, flushes: int) -> None:
    bench = Bench(operation_rows=2, operation_effort=31, slow=True)
    bench.control("create", OTHER)
    bench.send(*"abcdefgh")
    arguments = {"move": {"destination": OTHER}, "copy": {"destination": OTHER}, "reprioritize": {"priority": 9}}.get(verb, {})
    number = bench.control("operate", QUEUE, verb=verb, **arguments)["operation"]
    for _ in range(flushes):
        bench.read()
        bench.flush()
    bench.slow = False
    bench.start()
    bench.flush()
    assert counts(row(bench, number)) == ("done", 8, 8, 0, 0)
    if verb in ("move", "copy"):
        assert bench.attach(address=OTHER) == list("abcdefgh")
    assert bench.depth() == (8 if verb in ("copy", "reprioritize") else 0)


def test_operations_take_turns_and_few_run_at_a_time() -> None:
    bench = Bench(operation_rows=1, operation_effort=1, slow=True)
    bench.send(*"abcdefgh")
    numbers = [bench.control("operate", QUEUE, verb="copy", destination=OTHER, limit=2) for _ in range(2)]
    assert "queue/other" in str(numbers)
    bench.control("create", OTHER)
    numbers = [bench.control("operate", QUEUE, verb="copy", destination=OTHER, limit=2)["operation"] for _ in range(6)]
    states = [row(bench, number).state for number in numbers]
    assert states.count(OperationState.RUNNING) == 4 and states.count(OperationState.WAITING) == 2
    for _ in range(40):
        bench.read()
        bench.flush()
    assert {row(bench, number).state for number in numbers} == {OperationState.DONE}
    assert bench.depth(OTHER) == 12


def test_beside_other_traffic_its_steps_are_short() -> None:
    bench = Bench(operation_rows=10, operation_effort=300, operation_effort_beside=41, slow=True)
    bench.control("create", OTHER)
    bench.send(*"abcdefghij")
    number = bench.control("operate", QUEUE, verb="move", destination=OTHER)["operation"]
    bench.read()
    bench.send("x", address="queue/busy")
    assert row(bench, number).done == 3
    bench.flush()
    assert row(bench, number).done == 10


def test_without_disk_space_operations_wait(bench: Bench) -> None:
    bench.send(*"abc")
    bench.apply(c.Control(bench.database.request("operate"), "operate", QUEUE, {"verb": "move", "destination": OTHER}))
    for _ in range(3):
        effects = bench.engine.flush(bench.now, space_low=True)
        bench._commit(effects)
        bench.release(effects)
        assert bench.depth(OTHER) == 0
        assert bench.engine.next_deadline() != bench.now
    bench.flush()
    assert bench.depth(OTHER) == 3
