"""Consumers of a queue that take a part of it: what they get, what others get, what it costs (R8)."""

from __future__ import annotations

import pytest

from broker_core.engine import commands as c
from broker_core.engine.message import Header, Message
from broker_core.engine.outcome import Outcome
from broker_core.engine.outputs import Delivered, Drained
from broker_core.engine.reads import PageWanted, PositionsWanted
from broker_core.engine.selection import Scan
from broker_core.engine.selector import compile_selector
from broker_core.engine.subscription import Filter
from tests.engine.rig import DEAD, EXPRESS, QUEUE, RELIABLE, Bench


def wants(text: str, sender: str = "") -> Filter:
    return Filter(compile_selector(text) if text else None, sender)


RED, BLUE = wants("colour = 'red'"), wants("colour = 'blue'")


def send(b: Bench, *bodies: str, **how) -> list[str]:
    """Their first letter is their colour: r1 is red."""
    colours = {"r": "red", "b": "blue", "g": "grey"}
    outputs = []
    for body in bodies:
        outputs += b.send(body, properties={"colour": colours[body[0]]}, **how)
    return b.bodies(outputs)


def scan_of(b: Bench, wanted: Filter = RED, lane: int = 4) -> Scan:
    (scan,) = [scan for scan in b.destination().subscriptions[0].selections[wanted].order if scan.cursor.index == lane]
    return scan


def reads(b: Bench) -> list[PageWanted | PositionsWanted]:
    return [read for effects in b.effects for read in effects.reads]


# -- who gets what ----------------------------------------------------------------------------------------------------------------------
def test_a_selective_consumer_gets_what_matches_and_leaves_the_rest_to_others() -> None:
    b = Bench()
    send(b, "g1", "r1", "g2", "r2")
    assert b.attach(1, wanted=RED) == ["r1", "r2"]
    assert send(b, "g3", "r3") == ["r3"]
    assert b.attach(2) == ["g1", "g2", "g3"]
    b.settle(1, 2, 3)
    b.settle(1, 2, 3, link=2)
    assert b.depth() == 0


def test_what_arrives_is_delivered_in_the_same_flush_and_nothing_is_read() -> None:
    b = Bench()
    b.attach(1, wanted=RED)
    assert send(b, "g1", "r1", "g2", "r2") == ["r1", "r2"]
    assert reads(b) == []


def test_no_local_on_a_queue_leaves_the_clients_own_messages_to_others() -> None:
    b = Bench()
    b.send("mine", client_id="me")
    b.send("theirs", client_id="they")
    b.send("nobodys")
    assert b.attach(1, wanted=wants("", "me")) == ["theirs", "nobodys"]
    assert b.attach(2) == ["mine"]


def test_filters_that_say_the_same_share_a_scan_and_what_matches() -> None:
    b = Bench()
    send(b, *[f"r{number}" for number in range(6)])
    b.destination().state = c.Direction.CONSUMERS
    b.attach(1, wanted=wants("colour = 'red' AND 1 = 1"))
    b.attach(2, wanted=RED)
    assert len(b.destination().subscriptions[0].selections) == 1
    b.control("resume", QUEUE)
    delivered = [(output.link, b.bodies([output])) for output in b.outputs if isinstance(output, Delivered)]
    assert delivered == [(1, ["r0", "r1", "r2"]), (2, ["r3", "r4", "r5"])]


def test_whoever_was_first_to_get_what_several_want_is_last_the_next_time() -> None:
    b = Bench()
    b.attach(1)
    b.attach(2, wanted=RED)
    b.attach(3, wanted=wants("colour <> 'grey'"))
    got = []
    for number in range(9):
        b.send(f"r{number}", properties={"colour": "red"})
        got += [output.link for output in b.outputs if isinstance(output, Delivered)]
        b.outputs = []
    assert sorted(got) == [1] * 3 + [2] * 3 + [3] * 3


def test_a_higher_consumer_priority_goes_first_whatever_it_wants() -> None:
    b = Bench()
    b.attach(1)
    b.attach(2, wanted=RED, priority=3)
    for number in range(3):
        send(b, f"r{number}", f"g{number}")
    delivered = [(output.link, b.bodies([output])) for output in b.outputs if isinstance(output, Delivered)]
    assert {name for link, names in delivered if link == 2 for name in names} == {"r0", "r1", "r2"}


def test_a_lower_consumer_priority_takes_nothing_while_what_a_higher_one_takes_is_being_read() -> None:
    b = Bench(window_rows=2, page_rows=2)
    b.attach(1, wanted=RED, priority=-1)
    b.attach(2, credit=20)
    b.control("pause", QUEUE, direction="CONSUMERS")
    assert send(b, "g1", "g2", "g3", "r4") == [], "two of them are in memory, and the last one, which the scan has found"
    b.control("resume", QUEUE, direction="CONSUMERS")
    assert [link for outputs in b.effects for link in [o.link for o in outputs.outputs if isinstance(o, Delivered)]] == [2, 2]
    assert len(b.engine.shard.links[2].unsettled) == 4


def test_a_lane_whose_rest_a_selective_consumer_has_settled_holds_up_lower_ones_no_more_though_its_page_is_on_its_way() -> None:
    b = Bench(slow=True)
    send(b, "r1")
    b.start()
    b.attach(1, wanted=RED)
    for _ in range(3):  # a page without bodies, then the body
        b.read()
        b.flush()
    assert len(b.engine.shard.links[1].unsettled) == 1
    send(b, "g2", priority=1)
    assert b.attach(2) == [], "what is of higher priority comes first, and might be for it"
    assert b.bodies(b.settle(1)) == ["g2"]
    assert b.reads, "nobody has answered yet"


def test_a_candidate_that_stood_behind_what_a_lower_priority_took_leaves_with_the_next_flush() -> None:
    b = Bench(slow=True, window_rows=1)
    send(b, "g1", "r1")
    assert b.attach(1, credit=1) == ["g1"]
    b.attach(2, wanted=RED, priority=1)
    assert send(b, "r2") == []
    b.apply(c.Settle(1, 1, [1], 0, Outcome.ACCEPTED, None))
    b.read()  # the scan's page brings r1 without its body, the plain consumer's page with it
    assert b.bodies(b.flush()) == ["r1"]
    assert b.engine.next_deadline() == b.now
    assert b.bodies(b.flush()) == ["r2"]


def test_an_exclusive_consumer_with_a_selector_alone_is_served() -> None:
    b = Bench()
    b.attach(1)
    b.attach(2, wanted=RED, exclusive=True)
    assert send(b, "g1", "r1") == ["r1"]
    b.apply(c.Detach(1, 2))
    assert b.bodies(b.flush()) == ["r1", "g1"]


def test_a_selective_consumer_within_its_credit_gets_the_oldest_of_the_highest_priority_first() -> None:
    b = Bench()
    send(b, "r1", "r2", "g1")
    send(b, "r3", priority=9)
    send(b, "r4", level=EXPRESS)
    assert b.attach(1, wanted=RED, credit=1) == ["r3"]
    got = []
    for tag in (1, 2, 3, 4):
        got += b.bodies(b.settle(tag))
    assert got == ["r1", "r2", "r4"]


def test_what_was_taken_from_the_middle_is_nobody_elses_and_comes_back_to_all() -> None:
    b = Bench(page_rows=2, window_rows=3)
    send(b, "g1", "g2", "g3", "r1", "g4", "r2")
    assert b.attach(1, wanted=RED, credit=1) == ["r1"]
    assert b.attach(2) == ["g1", "g2", "g3", "g4", "r2"]
    assert b.bodies(b.settle(1, outcome=Outcome.RELEASED)) == ["r1"]


def test_what_comes_back_is_offered_to_selective_consumers_too() -> None:
    b = Bench()
    b.attach(1)
    send(b, "r1", "g1", "r2")
    b.attach(2, wanted=RED)
    b.apply(c.Detach(1, 1))
    back = b.delivered(b.flush())
    assert [(b.body(message), message.redelivered) for message in back] == [("r1", True), ("r2", True)]


def test_a_failed_delivery_goes_to_a_selective_consumer_after_its_back_off() -> None:
    b = Bench()
    b.control("create", QUEUE, redelivery_delay_ms=100)
    b.attach(1, wanted=RED)
    assert send(b, "r1") == ["r1"]
    assert b.bodies(b.settle(1, outcome=Outcome.FAILED)) == []
    assert b.bodies(b.passes(100)) == ["r1"]


def test_what_a_transaction_holds_is_reserved_and_comes_back_when_it_is_rolled_back() -> None:
    b = Bench()
    b.attach(1, wanted=RED)
    send(b, "g1", "r1")
    b.apply(c.Begin(1, b"t"), c.Transacted(1, b"t", c.Settle(1, 1, [1])))
    assert b.attach(2) == ["g1"]
    b.apply(c.End(1, b"t", commit=False))
    assert b.bodies(b.flush()) == ["r1"]


def test_a_dead_message_may_be_chosen_by_what_the_broker_says_of_it() -> None:
    b = Bench()
    for queue in ("queue/a", "queue/b"):
        b.send(queue, address=queue)
        b.attach(1, address=queue)
        b.settle(1, outcome=Outcome.REJECTED)
        b.apply(c.Detach(1, 1))
    assert b.attach(1, address=DEAD, wanted=wants("JMS_SUN_DMQ_UNDELIVERED_REASON = 'EXPIRED'")) == []
    assert b.attach(2, address=DEAD, wanted=wants("JMS_SUN_DMQ_UNDELIVERED_COMMENT LIKE '%rejected%'")) == ["queue/a", "queue/b"]
    b.apply(c.Detach(1, 2))
    assert b.attach(3, address=DEAD, wanted=wants("original_destination = 'queue/b'")) == ["queue/b"]


# -- what it costs ----------------------------------------------------------------------------------------------------------------------
def test_a_match_far_down_is_found_and_what_lies_above_it_leaves_no_trace() -> None:
    b = Bench(page_rows=10, window_rows=10, scan_rows=10, scan_positions=100)
    for _ in range(1000):
        b.apply(c.Send(1, None, QUEUE, Message(Header(b"colour:grey", 4, RELIABLE), b"g", 12)))
    send(b, "r1")
    before = b.engine.shard.memory
    assert b.attach(1, wanted=RED) == ["r1"]
    scan, cursor = scan_of(b), b.cursor()
    assert (scan.found, scan.octets, list(scan.unseen)) == ({}, 0, [])
    assert (cursor.progress.blocks, cursor.gone, b.engine.shard.memory) == ({}, {1000: None}, before)
    b.settle(1)
    assert cursor.gone == {}
    assert len([read for read in reads(b) if isinstance(read, PageWanted) and read.wanted]) == 10
    assert all(read.upto - read.after <= 100 for read in reads(b) if isinstance(read, PageWanted) and read.wanted)


def test_a_scan_passes_each_position_once_and_then_only_sees_arrivals() -> None:
    b = Bench(window_rows=2, page_rows=2, scan_rows=3)
    send(b, "g1", "g2", "g3", "g4", "g5", "g6")
    b.attach(1, wanted=RED)
    pages = [(read.after, read.upto) for read in reads(b) if isinstance(read, PageWanted)]
    assert pages == [(1, 5)]
    assert send(b, "g7", "r1", "g8") == ["r1"]
    assert len([read for read in reads(b) if isinstance(read, PageWanted)]) == 1


def test_what_arrives_beside_a_full_window_waits_for_its_consumer_in_memory() -> None:
    b = Bench(window_rows=2, page_rows=10)
    b.attach(1, wanted=RED, credit=1)
    send(b, "g1", "g2", "g3", "r1")
    b.effects = []
    assert send(b, "r2", "r3") == []
    assert b.bodies(b.settle(1)) == ["r2"]
    assert reads(b) == []


def test_candidates_are_bounded_and_what_finds_no_room_is_come_across_later() -> None:
    b = Bench(window_rows=2, page_rows=3, scan_rows=2)
    b.attach(1, wanted=RED, credit=1)
    names = [f"r{number}" for number in range(12)]
    got = send(b, *names)
    assert len(scan_of(b).found) == 3
    for tag in range(1, 13):
        got += b.bodies(b.settle(tag))
    assert got == names


def test_a_flush_looks_at_so_many_messages_and_leaves_the_rest_to_the_next() -> None:
    b = Bench(slow=True, looks=5)
    for number in range(12):
        colour = "red" if number == 11 else "grey"
        b.apply(c.Send(1, None, QUEUE, Message(Header(f"colour:{colour}\nn:{number}".encode(), 4, RELIABLE), b"x", 20)))
    b.flush()
    b.apply(c.Attach(1, 1, QUEUE, credit=5, wanted=RED))
    assert [len(b.delivered(b.flush())) for _ in range(3)] == [0, 0, 1]


def test_messages_with_the_same_header_section_are_compared_once_a_batch() -> None:
    b = Bench()
    asked = []

    def decode(header: Header) -> dict[str, str]:
        asked.append(header)
        return {"colour": "red"}

    b.engine.shard.decode = decode
    b.attach(1, wanted=RED)
    header = Header(b"", 4, RELIABLE)
    b.apply(*[c.Send(1, None, QUEUE, Message(header, b"x", 20)) for _ in range(10)])
    assert len(b.delivered(b.flush())) == 10
    assert len(asked) == 1


def test_one_scan_reads_at_a_time_and_rests_while_there_is_other_traffic() -> None:
    b = Bench(slow=True, window_rows=1, page_rows=5, scan_positions=4)
    send(b, *["g"] * 20)
    b.apply(c.Attach(1, 1, QUEUE, credit=5, wanted=RED), c.Attach(1, 2, QUEUE, credit=5, wanted=BLUE))
    b.flush()
    assert len(b.reads) == 1
    for took, rest in ((10, 50), (90, 125)):
        send(b, "g")
        b.now += took
        b.read()
        b.flush()
        assert (b.reads, b.engine.next_deadline()) == ([], b.now + rest)
        b.passes(rest - 1)
        assert b.reads == []
        b.passes(1)
        assert len(b.reads) == 1
    b.read()
    b.flush()
    assert len(b.reads) == 1, "without other traffic it goes on at once"


def test_bodies_are_read_for_what_is_about_to_leave() -> None:
    b = Bench(window_rows=1, page_rows=100)
    send(b, "g1", *[f"r{number}" for number in range(10)])
    assert b.attach(1, wanted=RED, credit=2) == ["r0", "r1"]
    assert [read.positions for read in reads(b) if isinstance(read, PositionsWanted)] == [[1, 2]]


def test_a_queue_whose_consumers_are_all_selective_is_not_read_ahead() -> None:
    b = Bench(window_rows=2, page_rows=4)
    send(b, *["g"] * 20)
    b.attach(1, wanted=RED)
    assert b.cursor().loaded == 2
    assert all(read.wanted for read in reads(b) if isinstance(read, PageWanted))


# -- what else befalls ------------------------------------------------------------------------------------------------------------------
def test_a_scan_ends_with_its_last_link_and_gives_back_its_memory() -> None:
    b = Bench(window_rows=1)
    b.attach(1, wanted=RED, credit=0)
    b.attach(2, wanted=RED, credit=0)
    send(b, "g1", "r1", "r2")
    assert scan_of(b).octets > 0
    b.apply(c.Detach(1, 1))
    b.flush()
    assert len(scan_of(b).found) == 2
    b.apply(c.Detach(1, 2))
    b.flush()
    subscription = b.destination().subscriptions[0]
    assert (subscription.selections, b.cursor().scans, b.engine.shard.memory) == ({}, [], b.cursor().octets)


def test_an_answer_that_comes_when_the_selective_consumer_is_gone_is_nobodys() -> None:
    b = Bench(slow=True, window_rows=1)
    send(b, *["g"] * 5, "r1")
    b.apply(c.Attach(1, 1, QUEUE, credit=5, wanted=RED))
    b.flush()
    b.apply(c.Detach(1, 1))
    b.flush()
    b.read()
    b.flush()
    assert (b.engine.shard.reading, b.engine.shard.scan_began) == ({}, 0)
    b.apply(c.Attach(1, 2, QUEUE, credit=5, wanted=RED))
    b.flush()
    assert len(b.reads) == 1


def test_a_purge_forgets_candidates_and_keeps_what_is_delivered() -> None:
    b = Bench(window_rows=2)
    b.attach(1, wanted=RED, credit=1)
    send(b, "g1", "r1", "r2", "r3", "g2")
    assert b.control("purge", QUEUE)["purged"] == 4
    assert (scan_of(b).found, b.depth()) == ({}, 1)
    b.settle(1)
    assert (b.depth(), b.destination().octets, b.engine.shard.memory) == (0, 0, 0)
    assert send(b, "r4") == ["r4"]


def test_a_page_on_its_way_while_the_queue_is_purged_does_not_bring_back_what_a_selective_consumer_holds() -> None:
    b = Bench(slow=True, window_rows=1, page_rows=2)
    send(b, "g1", "g2", "r1", "g3")
    b.apply(c.Attach(1, 1, QUEUE, credit=1, wanted=RED))
    for _ in range(4):
        b.flush()
        b.read()
    assert b.bodies(b.outputs) == ["r1"]
    b.apply(c.Attach(1, 2, QUEUE, credit=0))
    b.flush()
    assert len(b.reads) == 1
    b.control("purge", QUEUE)
    b.read()
    b.flush()
    b.apply(c.Grant(2, 5))
    assert b.bodies(b.flush()) == []


def test_a_destroyed_queue_takes_its_scans_along() -> None:
    b = Bench(window_rows=1)
    b.attach(1, wanted=RED, credit=0)
    send(b, "g1", "r1", "r2")
    b.control("destroy", QUEUE)
    assert b.engine.shard.memory == 0


def test_a_candidate_whose_time_to_live_has_passed_expires_instead_of_being_delivered() -> None:
    b = Bench(window_rows=1)
    b.attach(1, wanted=RED, credit=0)
    send(b, "g1")
    send(b, "r1", "r2", expires=b.now + 10)
    b.now += 10
    b.apply(c.Grant(1, 5))
    assert b.bodies(b.flush()) == []
    assert (b.depth(), b.depth(DEAD)) == (1, 2)


@pytest.mark.parametrize("memory", [1 << 20, 60])
def test_volatile_messages_are_chosen_in_memory_and_from_where_they_spilled(memory: int) -> None:
    b = Bench(memory_octets=memory, page_octets=20, scan_rows=2)
    names = ["g1", "g2", "g3", "g4", "g5", "r1", "g6", "r2"]
    send(b, *names, level=EXPRESS)
    assert b.attach(1, wanted=RED) == ["r1", "r2"]
    assert b.attach(2) == ["g1", "g2", "g3", "g4", "g5", "g6"]


def test_a_selective_consumer_is_drained_when_nothing_more_matches() -> None:
    b = Bench(window_rows=1)
    send(b, "g1", "g2", "g3", "r1", "g4")
    b.attach(1, wanted=RED, credit=0, replenish=False)
    b.apply(c.Grant(1, 5, drain=True))
    outputs = b.flush()
    assert b.bodies(outputs) == ["r1"]
    assert [type(output) for output in outputs][-1] is Drained


def test_paused_consumers_do_not_scan() -> None:
    b = Bench(window_rows=1)
    send(b, "g1", "g2", "r1")
    b.control("pause", QUEUE, direction="CONSUMERS")
    assert b.attach(1, wanted=RED) == []
    assert reads(b) == []
    b.control("resume", QUEUE)
    assert b.bodies(b.outputs) == ["r1"]


@pytest.mark.parametrize("reported", [False, True])
def test_only_what_a_selective_consumer_got_is_flagged_after_a_crash_not_what_lay_before_it(reported: bool) -> None:
    b = Bench(window_rows=1)
    send(b, "r0", "g1", "g2", "r1", "g3", "r2", "g4")
    assert b.attach(2, wanted=RED) == ["r0", "r1", "r2"]
    b.flush(report=reported)
    assert b.attach(1, credit=1) == ["g1"]
    b.flush(report=reported)
    b.settle(2, link=2)
    b.start()
    b.apply(c.Attach(1, 1, QUEUE, credit=9))
    flags = {b.body(message): message.redelivered for message in b.delivered(b.flush())}
    assert flags == {"r0": True, "g1": True, "g2": False, "g3": False, "r2": True, "g4": False}
    b.flush(report=reported)
    b.start()
    b.apply(c.Attach(1, 1, QUEUE, credit=9))
    assert all(message.redelivered for message in b.delivered(b.flush()))


def test_offers_ahead_are_forgotten_when_others_have_caught_up() -> None:
    b = Bench()
    b.attach(1, wanted=RED)
    for number in range(3):
        send(b, f"g{number}", f"r{number}")
    b.attach(2)
    b.settle(upto=9)
    b.settle(upto=9, link=2)
    b.flush(report=True)
    assert (b.cursor().offered, b.cursor().ahead.blocks) == (5, {})
    assert b.database.tables.blocks == {}


def test_after_a_crash_a_scan_begins_anew_and_finds_what_it_held_flagged() -> None:
    b = Bench(window_rows=1)
    send(b, "g1", "g2", "r1", "g3", "r2")
    assert b.attach(1, wanted=RED, credit=1) == ["r1"]
    b.start()
    b.apply(c.Attach(1, 1, QUEUE, credit=5, wanted=RED))
    assert [(b.body(message), message.redelivered) for message in b.delivered(b.flush())] == [("r1", True), ("r2", False)]


def test_what_expired_on_disk_is_chosen_in_the_dead_message_queue_by_its_headers() -> None:
    b = Bench(window_rows=1)
    b.attach(1, address=DEAD, wanted=RED)
    send(b, "g1")
    send(b, "g2", "r1", expires=b.now + 10)
    b.now += 10
    b.control("expire")
    assert b.bodies(b.outputs) == ["r1"]
