"""The auditor of the kill loop convicts every kind of broken promise and nobody else."""

from tests.acceptance.book import Book


def delivered(book: Book, *, redelivered: bool = False, generation: int = 0, intact: bool = True) -> None:
    book.deliver("a.0", redelivered=redelivered, generation=generation, intact=intact)


def acknowledged(book: Book) -> None:
    book.acknowledging(["a.0"])
    book.acknowledge(["a.0"])


def confirmed_send() -> Book:
    book = Book()
    book.sent("a.0")
    book.confirm(["a.0"])
    return book


def test_a_confirmed_send_that_nobody_received_is_lost() -> None:
    assert [line.split(":")[0] for line in confirmed_send().verdict()] == ["lost"]


def test_a_confirmed_send_whose_last_delivery_was_not_acknowledged_is_lost() -> None:
    book = confirmed_send()
    delivered(book)
    book.acknowledging(["a.0"])
    delivered(book, redelivered=True)
    assert book.verdict()[0].startswith("lost")


def test_an_unconfirmed_send_may_be_lost() -> None:
    book = Book()
    book.sent("a.0")
    assert book.verdict() == []


def test_a_second_delivery_without_its_flag_is_convicted() -> None:
    book = confirmed_send()
    delivered(book)
    delivered(book)
    acknowledged(book)
    assert "unflagged" in book.verdict()[0]


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
    assert "came back" in book.verdict()[0]


def test_a_delivery_after_a_fault_and_the_receipt_is_convicted() -> None:
    book = confirmed_send()
    delivered(book)
    acknowledged(book)
    delivered(book, redelivered=True, generation=book.next_generation())
    assert "came back" in book.verdict()[0]


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
    book.deliver("b.0", redelivered=False, generation=0, intact=True)
    assert [line.split()[1] for line in book.verdict()] == ["corrupted:", "corrupted:"]
