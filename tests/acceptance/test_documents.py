"""The main job on real input: every stanza of Debian's package lists goes through stomp.py while the node is killed."""

from __future__ import annotations

import pytest

from broker_core.engine.outcome import Outcome
from tests.acceptance import ledger
from tests.acceptance.delivery_of_documents import Collector, Sender, acknowledge_all, send_all
from tests.acceptance.reading import read_all
from tests.support.clients import Connection
from tests.support.documents import all_documents
from tests.support.service import Service


def deliver(service: Service, queue: str, documents: list[bytes], kills_at_confirmation: list[int], kills_at_acknowledgement: list[int]) -> None:
    sender = Sender(documents, kills_at_confirmation)
    send_all(service, queue, sender)
    assert sender.kills_left == [], "every planned kill happened"
    collector = Collector(documents, kills_at_acknowledgement)
    acknowledge_all(service, queue, len(sender.confirmed), collector)
    assert collector.kills_left == [], "every planned kill happened"
    every_document_arrived(sender, collector)
    the_ledger_accounts_for_each(service, queue, collector)
    nothing_is_left(service, queue)


def every_document_arrived(sender: Sender, collector: Collector) -> None:
    numbers = {send_id.partition(".")[0] for send_id in collector.arrived}
    assert len(numbers) == len(sender.documents), "every document arrived"
    assert collector.wrong == [], "byte for byte"
    assert collector.repeated == [], "none twice without redelivered:true"
    assert collector.came_back == [], "none after the receipt for its acknowledgement"
    assert sender.confirmed <= collector.arrived, "every confirmed send arrived, also where its document was repeated"
    assert collector.arrived <= sender.sent, "nothing arrived that was not sent"


def nothing_is_left(service: Service, queue: str) -> None:
    with Connection(service.stomp_port) as connection:
        assert read_all(connection, queue) == [], "the queue is empty"


def the_ledger_accounts_for_each(service: Service, queue: str, collector: Collector) -> None:
    """As many positions accepted and settled by acknowledgement as messages arrived; none is open, none was settled otherwise."""
    with service.database() as connection:
        account = ledger.account(connection, queue)
    assert account.accepted == len(collector.arrived)
    assert account.settled == {Outcome.ACCEPTED: len(collector.arrived)}
    assert account.open == []


def test_two_thousand_documents_survive_two_kills(mortal: Service) -> None:
    deliver(mortal, "/queue/documents", all_documents()[:2000], [700], [900])


@pytest.mark.slow
def test_every_document_survives_kills_after_many_a_confirmation_and_acknowledgement(mortal: Service) -> None:
    documents = all_documents()
    assert len(documents) > 20_000
    deliver(mortal, "/queue/documents.all", documents, [1, 500, 20_001, 44_444], [1, 1_000, 15_017, 40_000])
