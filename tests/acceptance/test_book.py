"""The auditor of the kill loop convicts every kind of broken promise and nobody else."""

from __future__ import annotations

import re
import time

import pytest

from tests.acceptance.book import Book


def kinds(book: Book) -> list[str]:
    """Of the broken promises, some of which begin with the time."""
    return [re.sub(r"^\d\d:\d\d:\d\d ", "", line).partition(":")[0] for line in book.verdict()]


def delivered(
    book: Book, send_id: str = "a.0", place: str = "q", *, redelivered: bool = False, generation: int = 0, intact: bool = True, alone: bool = False
) -> None:
    book.deliver(place, send_id, redelivered=redelivered, generation=generation, intact=intact, alone=alone)


def acknowledged(book: Book, send_id: str = "a.0", place: str = "q") -> None:
    book.acknowledging(place, [send_id])
    book.acknowledge(place, [send_id])


def confirmed_send(*places: str) -> Book:
    book = Book()
    book.sent("a.0", places or ["q"])
    book.confirm(["a.0"])
    return book


# -- queues -------------------------------------------------------------------------------------------------------------------------
def test_a_confirmed_send_that_nobody_received_is_lost() -> None:
    assert kinds(confirmed_send()) == ["lost"]


def test_a_confirmed_send_whose_last_delivery_was_not_acknowledged_is_lost() -> None:
    book = confirmed_send()
    delivered(book)
    book.acknowledging("q", ["a.0"])
    delivered(book, redelivered=True)
    assert kinds(book) == ["lost"]


def test_an_unconfirmed_send_may_be_lost() -> None:
    book = Book()
    book.sent("a.0", ["q"])
    assert book.verdict() == []


def test_a_second_delivery_without_its_flag_is_convicted() -> None:
    book = confirmed_send()
    delivered(book)
    delivered(book)
    acknowledged(book)
    assert kinds(book) == ["unflagged"]


def test_a_second_delivery_with_its_flag_is_allowed() -> None:
    book = confirmed_send()
    delivered(book)
    delivered(book, redelivered=True)
    acknowledged(book)
    assert book.verdict() == []


def test_a_delivery_after_the_receipt_for_its_acknowledgement_is_convicted() -> None:
    book = confirmed_send()
    delivered(book)
    acknowledged(book)
    delivered(book, redelivered=True)
    assert kinds(book) == ["came back"]


def test_a_delivery_after_a_fault_and_the_receipt_is_convicted() -> None:
    book = confirmed_send()
    delivered(book)
    acknowledged(book)
    delivered(book, redelivered=True, generation=book.next_generation())
    assert kinds(book) == ["came back"]


def test_what_a_former_node_wrote_may_be_read_late() -> None:
    book = confirmed_send()
    delivered(book, redelivered=True, generation=book.next_generation())
    acknowledged(book)
    delivered(book, generation=0)
    assert book.verdict() == []


def test_a_changed_body_and_an_unknown_message_are_convicted() -> None:
    book = confirmed_send()
    delivered(book, intact=False)
    acknowledged(book)
    delivered(book, "b.0")
    assert kinds(book) == ["corrupted", "corrupted"]


def test_a_delayed_message_that_comes_before_its_time_is_convicted(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    for late in (False, True):
        book = Book()
        book.sent("a.0", ["q"], delay_ms=1000)
        now += 1.0 if late else 0.5
        delivered(book)
        assert kinds(book) == ([] if late else ["early"])


def test_a_delayed_message_may_be_overtaken() -> None:
    book = Book()
    book.sent("a.0", ["q"], stream="x", delay_ms=1)
    book.sent("a.1", ["q"], stream="x")
    time.sleep(0.002)
    delivered(book, "a.1", alone=True)
    delivered(book, "a.0", alone=True)
    assert book.verdict() == []


# -- topics -------------------------------------------------------------------------------------------------------------------------
def test_each_subscription_that_takes_a_message_must_get_it() -> None:
    book = confirmed_send("d", "e")
    delivered(book, place="d")
    acknowledged(book, place="d")
    assert [line for line in book.verdict() if line.startswith("lost: a.0 in e")] == book.verdict() != []


def test_a_copy_for_each_is_no_second_delivery() -> None:
    book = confirmed_send("d", "e")
    for place in "de":
        delivered(book, place=place)
        acknowledged(book, place=place)
    assert book.verdict() == []


def test_a_copy_that_came_back_in_one_subscription_is_convicted_there() -> None:
    book = confirmed_send("d", "e")
    for place in "de":
        delivered(book, place=place)
        acknowledged(book, place=place)
    delivered(book, place="e", redelivered=True)
    assert kinds(book) == ["came back"]


def test_a_copy_where_a_selector_leaves_it_out_is_convicted() -> None:
    book = confirmed_send("d")
    delivered(book, place="d")
    acknowledged(book, place="d")
    delivered(book, place="e")
    assert kinds(book) == ["stray"]


def sent_in_order(*streams: str) -> Book:
    book = Book()
    for number, stream in enumerate(streams):
        book.sent(f"a.{number}", ["q"], stream=stream)
    return book


def test_what_overtook_another_of_its_connection_is_convicted_where_one_consumer_can_see_it() -> None:
    for alone in (True, False):
        book = sent_in_order("x", "x")
        delivered(book, "a.1", alone=alone)
        delivered(book, "a.0", alone=alone)
        assert kinds(book) == ["out of order"] * alone


def test_what_comes_again_or_from_another_connection_may_come_later() -> None:
    book = sent_in_order("x", "y", "x")
    delivered(book, "a.2", alone=True)
    delivered(book, "a.1", alone=True)
    delivered(book, "a.0", alone=True, redelivered=True)
    assert book.verdict() == []


# -- transactions -------------------------------------------------------------------------------------------------------------------
def transacted() -> Book:
    """Task a.0 is acknowledged and results r.0 and s.0 are sent within transaction t."""
    book = confirmed_send("tasks")
    delivered(book, place="tasks")
    book.begin("t")
    for send_id in ("r.0", "s.0"):
        book.sent(send_id, ["results"], transaction="t")
    return book


def in_doubt() -> Book:
    book = transacted()
    book.committing("t", [("tasks", "a.0")])
    return book


def results(book: Book, *send_ids: str) -> None:
    for send_id in send_ids:
        delivered(book, send_id, "results")
        acknowledged(book, send_id, "results")


def task_again(book: Book, generation: int = 0) -> None:
    delivered(book, place="tasks", redelivered=True, generation=generation)
    acknowledged(book, place="tasks")


def test_a_committed_transaction_owes_all_its_sends_and_never_again_what_it_acknowledged() -> None:
    book = in_doubt()
    book.committed("t")
    results(book, "r.0")
    assert kinds(book) == ["lost"]
    results(book, "s.0")
    assert book.verdict() == []
    delivered(book, place="tasks", redelivered=True)
    assert kinds(book) == ["came back"]


@pytest.mark.parametrize("end", [lambda book: None, lambda book: book.aborted("t")], ids=["open", "aborted"])
def test_a_send_that_is_seen_without_its_commit_is_convicted(end) -> None:
    book = transacted()
    end(book)
    delivered(book, "r.0", "results")
    task_again(book)
    assert kinds(book) == ["uncommitted"]


def test_what_an_aborted_transaction_acknowledged_must_come_again() -> None:
    book = transacted()
    book.aborted("t")
    assert kinds(book) == ["lost"]
    task_again(book)
    assert book.verdict() == []


def test_a_transaction_in_doubt_may_have_been_done() -> None:
    book = in_doubt()
    results(book, "r.0", "s.0")
    assert book.verdict() == []


def test_a_transaction_in_doubt_may_have_been_undone() -> None:
    book = in_doubt()
    task_again(book)
    assert book.verdict() == []


def test_a_transaction_of_which_a_part_of_the_sends_was_seen_is_torn() -> None:
    book = in_doubt()
    results(book, "r.0")
    assert kinds(book) == ["torn"]


def test_a_transaction_whose_sends_were_seen_and_whose_task_came_again_is_torn() -> None:
    book = in_doubt()
    results(book, "r.0", "s.0")
    task_again(book)
    assert kinds(book) == ["torn"]


def test_a_task_that_was_read_late_did_not_come_again() -> None:
    book = confirmed_send("tasks")
    book.next_generation()
    delivered(book, place="tasks", generation=1)
    book.begin("t")
    book.sent("r.0", ["results"], transaction="t")
    book.committing("t", [("tasks", "a.0")])
    results(book, "r.0")
    delivered(book, place="tasks", redelivered=True, generation=0)
    book.acknowledging("tasks", ["a.0"])
    assert book.verdict() == []


def test_a_transaction_whose_acknowledgement_alone_was_done_is_torn() -> None:
    assert kinds(in_doubt()) == ["torn"]


def test_a_transaction_of_which_a_part_of_the_tasks_came_again_is_torn() -> None:
    book = Book()
    book.sent("a.0", ["tasks"])
    book.sent("b.0", ["tasks"])
    book.confirm(["a.0", "b.0"])
    for send_id in ("a.0", "b.0"):
        delivered(book, send_id, "tasks")
    book.begin("t")
    book.committing("t", [("tasks", "a.0"), ("tasks", "b.0")])
    task_again(book)
    assert kinds(book) == ["torn"]
