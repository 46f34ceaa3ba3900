"""The auditor of the kill loop convicts what breaks the promises about message groups and nothing else."""

from __future__ import annotations

import re
import time

import pytest

from tests.acceptance.book import Book
from tests.acceptance.grouped import BRIEF, BRIEF_SPAN, group_headers_of, group_of
from tests.acceptance.groups import Group

A, BRIEF_ONE = Group("a"), Group("b", lasting=False)


class Read:
    """A book whose sends are a.0, a.1, ... of one group, and a clock that each event moves on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.book, self._now = Book(), 1000.0
        monkeypatch.setattr(time, "monotonic", self._tick)

    def _tick(self) -> float:
        self._now += 1
        return self._now

    def send(self, *numbers: int, group: Group = A, stream: str = "p/1", delay_ms: int = 0) -> None:
        for number in numbers:
            self.book.sent(f"a.{number}", ["q"], group=group, stream=stream, delay_ms=delay_ms)

    def deliver(self, holder: str, *numbers: int, redelivered: bool = False) -> None:
        for number in numbers:
            self.book.deliver("q", f"a.{number}", redelivered=redelivered, generation=0, intact=True, holder=holder)

    def acknowledge(self, holder: str, number: int) -> None:
        self.say(holder, number)()

    def say(self, holder: str, number: int):
        """An ACK that leaves now; calling what is returned is the answer."""
        said_at = time.monotonic()
        self.book.acknowledging("q", [f"a.{number}"])
        return lambda: self.book.acknowledge("q", [f"a.{number}"], holder=holder, said_at=said_at)

    def kinds(self) -> list[str]:
        return [re.sub(r"^\d\d:\d\d:\d\d ", "", line).partition(":")[0] for line in self.book.verdict()]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Read:
    made = Read(monkeypatch)
    made.send(0, 1, 2, 3)
    return made


# -- order --------------------------------------------------------------------------------------------------------------------------
def test_what_overtook_another_of_its_group_is_convicted(read: Read) -> None:
    read.deliver("x/1", 1, 0)
    assert read.kinds() == ["out of order in its group"]


def test_what_comes_again_comes_before_what_is_new(read: Read) -> None:
    read.deliver("x/1", 0, 1)
    read.deliver("y/1", 0, 1, redelivered=True)
    read.deliver("y/1", 2)
    assert read.kinds() == []
    read.deliver("z/1", 3)
    read.deliver("z/1", 2, redelivered=True)
    assert read.kinds() == ["out of order in its group"]


def test_what_was_refused_may_come_later(read: Read) -> None:
    read.deliver("x/1", 0)
    read.book.refusing("q", "a.0")
    read.deliver("x/1", 1)
    read.deliver("x/1", 0, redelivered=True)
    read.deliver("x/1", 2)
    assert read.kinds() == []


def test_what_comes_twice_to_one_consumer_that_did_not_refuse_it_is_convicted(read: Read) -> None:
    read.deliver("x/1", 0)
    read.deliver("x/1", 0, redelivered=True)
    assert read.kinds() == ["out of order in its group"]


def test_other_groups_other_connections_and_delayed_messages_have_an_order_of_their_own(read: Read) -> None:
    read.send(4, group=Group("other"))
    read.send(5, stream="p/2")
    read.send(6, delay_ms=1)
    read.deliver("x/1", 6, 5, 4, 3)
    assert read.kinds() == []


# -- one consumer at a time ---------------------------------------------------------------------------------------------------------
def test_a_group_whose_messages_go_to_two_in_turn_is_shared(read: Read) -> None:
    read.deliver("x/1", 0)
    read.deliver("y/1", 1)
    read.deliver("x/1", 2)
    assert read.kinds() == ["shared"]


def test_it_does_not_matter_who_reads_first(read: Read) -> None:
    read.deliver("x/1", 0, 2)
    read.deliver("y/1", 1)
    assert read.kinds() == ["shared"]


def test_a_group_that_another_gets_while_its_owner_is_there_is_shared(read: Read) -> None:
    read.deliver("x/1", 0)
    read.deliver("y/1", 1)
    read.acknowledge("x/1", 0)
    assert read.kinds() == ["shared"]


def test_a_group_that_another_gets_after_its_owners_last_word_is_handed_over(read: Read) -> None:
    read.deliver("x/1", 0)
    answer = read.say("x/1", 0)
    read.deliver("y/1", 1)
    answer()
    read.deliver("x/2", 2)
    assert read.kinds() == []
    assert read.book.groups.handovers == 2


def test_a_consumer_that_comes_back_is_another_one(read: Read) -> None:
    read.deliver("x/1", 0)
    read.deliver("x/2", 1)
    read.acknowledge("x/2", 1)
    assert read.kinds() == []


def test_what_comes_again_says_nothing_about_who_owns_the_group_now(read: Read) -> None:
    read.deliver("x/1", 0, 2)
    read.deliver("y/1", 1, redelivered=True)
    read.acknowledge("x/1", 2)
    assert read.kinds() == []


def test_a_group_that_was_closed_may_have_another_owner_at_once(read: Read) -> None:
    read.send(4, 5, 6, group=BRIEF_ONE)
    read.deliver("x/1", 4)
    read.deliver("y/1", 5)
    read.deliver("x/1", 6)
    assert read.kinds() == []


# -- what producers say -------------------------------------------------------------------------------------------------------------
def test_each_span_of_a_brief_group_ends_with_the_message_that_closes_it() -> None:
    found: dict[str, list[str]] = {}
    for number in range(BRIEF_SPAN * BRIEF):
        headers = group_headers_of(f"p-{number}")
        group = group_of(headers)
        if group is not None and not group.lasting:
            found.setdefault(group.name, []).append(headers["JMSXGroupSeq"])
    assert len(found) == BRIEF
    assert all(sequences.count("-1") == 1 and sequences[-1] == "-1" for sequences in found.values())


def test_most_messages_belong_to_lasting_groups_and_some_to_none() -> None:
    groups = [group_of(group_headers_of(f"p-{number}")) for number in range(1000)]
    assert sum(group is not None and group.lasting for group in groups) > 500
    assert groups.count(None) > 30
