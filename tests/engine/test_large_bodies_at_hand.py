"""Large bodies are in the store: whatever happens to their messages, in memory they weigh a header and little more (R16). The bench checks after every
flush that what was counted is given back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from broker_core.engine import commands as c
from broker_core.engine.memory import MemoryLevel, memory_level
from broker_core.engine.message import APART_OCTETS, Header, Message, StoredBody, weight_of
from broker_core.engine.message_group import GROUP_ID, group_of
from broker_core.engine.outcome import Outcome
from broker_core.engine.selector import compile_selector
from broker_core.engine.subscription import Filter
from tests.engine.rig import ASSURED, BEST_EFFORT, DEAD, EXPRESS, QUEUE, Bench

HUGE = 50 << 20
COLOURED = b"colour:red"
TOPIC = "topic/orders"
LITTLE = 5 * (APART_OCTETS + len(COLOURED))
"""Octets: what one message may weigh, wherever it is, and some copies of it."""


def large(body: int = 1, *, level: int = ASSURED, expires: int = 0, delay: int = 0, group: str = "") -> Message:
    header = Header(COLOURED, reliability=level, expiration=expires, delay=delay, group=group_of({GROUP_ID: group}) if group else None)
    return Message(header, StoredBody(body, HUGE), HUGE + len(COLOURED))


def send(b: Bench, message: Message, *, address: str = QUEUE) -> None:
    b.apply(c.Send(1, 1, address, message))
    b.flush()


def memory(b: Bench) -> int:
    return b.engine.shard.memory


def test_a_message_whose_body_was_written_to_the_store_weighs_its_header_from_then_on() -> None:
    message = Message(Header(COLOURED), None, HUGE + len(COLOURED))
    message.keep_apart(7)
    assert message.body == StoredBody(7, HUGE)
    assert message.weight == weight_of(message) == APART_OCTETS + len(COLOURED)
    assert message.size == HUGE + len(COLOURED)


@pytest.mark.parametrize("level", [EXPRESS, ASSURED])
def test_what_waits_weighs_its_header_and_a_destinations_limits_count_all_of_it(level: int) -> None:
    b = Bench()
    send(b, large(level=level))
    assert memory(b) == APART_OCTETS + len(COLOURED)
    assert b.destination().octets == HUGE + len(COLOURED)
    b.attach()
    assert memory(b) == 0
    b.settle(1)
    assert b.destination().octets == 0


def test_while_large_bodies_wait_there_is_room_for_what_is_in_memory() -> None:
    """100 MiB of 128 MiB once made volatile messages of other queues go to disk, or be dropped."""
    b = Bench()
    for number in range(20):
        send(b, large(number), address=f"queue/large{number}")
    assert memory_level(b.engine.shard) is MemoryLevel.GREEN
    b.send("best effort", level=BEST_EFFORT)
    b.send("express", level=EXPRESS)
    assert not any(effects.commit.spilled for effects in b.effects if effects.commit)
    assert b.attach() == ["best effort", "express"]


def comes_back(b: Bench) -> None:
    send(b, large())
    b.attach(credit=1)
    b.apply(c.Detach(1, 1))
    b.flush()
    assert b.attach(credit=1) == ["body 1"]
    b.settle(1, outcome=Outcome.RELEASED)


def fails(b: Bench) -> None:
    b.control("create", QUEUE, redelivery_delay_ms=50)
    send(b, large())
    b.attach(credit=1)
    b.settle(1, outcome=Outcome.FAILED)
    b.apply(c.Detach(1, 1))
    b.passes(1000)


def dies(b: Bench) -> None:
    send(b, large())
    b.attach(credit=1)
    b.settle(1, outcome=Outcome.REJECTED)
    assert b.attach(2, address=DEAD, credit=0) == [] and b.depth(DEAD) == 1


def dies_unstored(b: Bench) -> None:
    send(b, large(level=EXPRESS))
    b.attach(credit=1)
    b.settle(1, outcome=Outcome.REJECTED)
    assert b.depth(DEAD) == 1


def expires(b: Bench) -> None:
    send(b, large(level=EXPRESS, expires=b.now + 10))
    b.passes(20)
    assert b.depth(DEAD) == 1


def is_chosen(b: Bench) -> None:
    send(b, large())
    red = Filter(compile_selector("colour = 'red'"))
    b.attach(credit=0, wanted=red)
    assert b.attach(2, credit=1, wanted=red) == ["body 1"]
    b.settle(1, link=2, outcome=Outcome.RELEASED)


def is_read_to_be_chosen(b: Bench) -> None:
    send(b, large())
    b.start()
    b.attach(credit=0, wanted=Filter(compile_selector("colour = 'red'")))
    assert b.attach(2, credit=1, wanted=Filter(compile_selector("colour <> 'blue'"))) == ["body 1"]


def is_set_aside(b: Bench) -> None:
    b.attach(1, credit=1)
    b.attach(2, credit=1)
    for number in range(3):
        send(b, large(number, group="g"))


def is_looked_at(b: Bench) -> None:
    send(b, large())
    send(b, large(2, level=EXPRESS))
    assert b.browse() == ["body 1", "body 2"]


def is_delayed(b: Bench) -> None:
    send(b, large(delay=30))
    assert memory(b) <= LITTLE
    b.passes(50)


def is_in_a_transaction(b: Bench) -> None:
    b.apply(c.Begin(1, b"t"), c.Transacted(1, b"t", c.Send(1, None, QUEUE, large())))
    b.flush()
    assert b.engine.shard.transacted <= LITTLE
    b.apply(c.End(1, b"t", True))
    b.flush()
    b.attach(credit=1)
    b.apply(c.Begin(1, b"u"), c.Transacted(1, b"u", c.Settle(1, 1, [1])))
    b.flush()
    b.apply(c.End(1, b"u", False))
    b.flush()


def is_read_at_a_start(b: Bench) -> None:
    send(b, large())
    b.start()
    b.attach(credit=0)


def is_kept_for_a_subscription(b: Bench) -> None:
    for level in (EXPRESS, ASSURED):
        b.attach(address=TOPIC, name="s", durable=True, shared=True, of_any_client=True)
        b.apply(c.Detach(1, 1))
        b.flush()
        send(b, large(level, level=level), address=TOPIC)


def is_fanned_out(b: Bench) -> None:
    for link in range(1, 5):
        b.attach(link, address=TOPIC, credit=0)
    send(b, large(), address=TOPIC)


@pytest.mark.parametrize(
    "befalls",
    [
        comes_back, fails, dies, dies_unstored, expires, is_chosen, is_read_to_be_chosen, is_set_aside, is_looked_at, is_delayed, is_in_a_transaction,
        is_read_at_a_start, is_kept_for_a_subscription, is_fanned_out,
    ],
    ids=lambda befalls: befalls.__name__,
)  # fmt: skip
def test_whatever_befalls_it_a_large_message_weighs_little_and_in_the_end_nothing(befalls: Callable[[Bench], None]) -> None:
    b = Bench(fan_out=2 if befalls is is_fanned_out else 10_000)
    befalls(b)
    assert memory(b) <= LITTLE
    b.apply(c.PeerLost(1))
    b.flush()
    for address in (QUEUE, TOPIC, DEAD):
        if address in b.engine.shard.destinations:
            b.control("purge", address)
    b.flush(report=True)
    assert memory(b) == b.engine.shard.transacted == 0


def test_open_transactions_share_memory_by_what_is_in_it() -> None:
    """Large bodies were written before: what they send may wait beside as many others as there is room for."""
    b = Bench(memory_octets=10_000)
    for name in (b"t", b"u", b"v"):
        b.apply(c.Begin(1, name), c.Transacted(1, name, c.Send(1, None, QUEUE, large()), b"sent " + name))
    assert b.confirmed(b.flush()) == [b"sent t", b"sent u", b"sent v"]
