"""Operations of operators on many messages: what is refused, and what becomes of messages that are moved, copied, deleted, made to expire or get another
priority."""

from __future__ import annotations

import json

import pytest

from broker_core.engine import commands as c
from broker_core.engine.dead import REASON
from broker_core.engine.message import StoredBody
from broker_core.engine.settings import REJECT_NEWEST
from tests.engine.operation_rig import OTHER, counts, operate, ready
from tests.engine.rig import ASSURED, BEST_EFFORT, DEAD, EXPRESS, QUEUE, RELIABLE, Bench

TOPIC = "topic/prices"


@pytest.fixture
def bench() -> Bench:
    return ready(operation_rows=3, operation_effort=61)


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
    bench = ready(operation_rows=3, operation_effort=61, memory_octets=30, page_octets=40)
    bench.send(*"abcdefghij")
    assert operate(bench, "move", destination=OTHER).done == 10
    assert bench.attach(address=OTHER) == list("abcdefghij")


def test_a_copy_leaves_its_source(bench: Bench) -> None:
    bench.send(*"abc")
    assert operate(bench, "copy", destination=OTHER).done == 3
    assert (bench.depth(), bench.depth(OTHER)) == (3, 3)
    assert bench.attach(address=OTHER) == list("abc")
    assert bench.attach(2) == list("abc")


def test_only_what_the_filter_lets_through_is_moved(bench: Bench) -> None:
    for number in range(8):
        bench.send(str(number), properties={"colour": "red" if number % 3 == 0 else "blue"})
    ended = operate(bench, "move", destination=OTHER, filter={"selector": "colour = 'red'"})
    assert counts(ended) == ("done", 8, 3, 0, 0) and ended.total is None
    assert bench.attach(address=OTHER) == ["0", "3", "6"]
    assert bench.attach(2) == ["1", "2", "4", "5", "7"]


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


# -- delete, expire, reprioritize -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("level", [ASSURED, EXPRESS])
@pytest.mark.parametrize("verb", ["delete", "purge"])
def test_messages_are_deleted_and_never_dead(bench: Bench, verb: str, level) -> None:
    bench.send(*"abcdefg", level=level)
    assert operate(bench, verb, messages=[[4 if level is ASSURED else 14, 2]]).done == 1
    assert bench.browse(9) == list("abdefg")
    bench.apply(c.Detach(1, 9))
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
