"""Bugs that the tests named in docs/behaviours.md must find: for each group of items at least one function of the product made wrong, as an honest
mistake would, and the test that fails for it. More of them, found by the simulator: tests/simulation/planted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from broker_core.client import DeliveryMode, Queue, Xid
from broker_core.client.machine import Confirmation, ConnectionMachine, ProducerMachine, XASessionMachine, acknowledging, consumer
from broker_core.client.machine.acknowledging import Acknowledging, When
from broker_core.engine.commit_capacity import Room
from broker_core.engine.link import Link
from broker_core.engine.message import STORED, Reliability
from broker_core.server.client_ids import ClientIds
from broker_core.stomp import mapping
from tests.client.broker import whole
from tests.semantics.application import AUTO
from tests.simulation.planted import consumers, durability, redelivery, subscriptions, transacting
from tests.simulation.planted.plant import Bug, Plant

MOST = [13, 26, 39]
"""65% of a prefetch of 20."""


# -- the client runtime ---------------------------------------------------------------------------------------------------------------------
def every_send_waits(plant: Plant) -> None:
    """A factory that does not say what to wait for is taken for one that wants to wait always."""
    right = ProducerMachine.send

    def send(self: ProducerMachine, *what: Any, **how: Any) -> Any:
        settings = self.session.connection.settings
        settings.ack_on_produce = settings.ack_on_produce is not False
        return right(self, *what, **how)

    plant.put(ProducerMachine, "send", send)


def _otherwise(plant: Plant, change: Any) -> None:
    """The decision about acknowledging comes out as `change` says."""
    right = acknowledging.acknowledging
    plant.put(consumer, "acknowledging", lambda *what: change(right(*what)))


def one_more(plant: Plant) -> None:
    """A batch is acknowledged when there is more than enough."""
    _otherwise(plant, lambda plan: replace(plan, messages=plan.messages + 1) if plan.when is When.BATCH else plan)


def nobody_waits(plant: Plant) -> None:
    """Acknowledgements are sent, and the session goes on."""
    _otherwise(plant, lambda plan: replace(plan, confirmed=False))


def without_a_timeout(plant: Plant) -> None:
    """What is not enough for a batch waits for ever."""
    _otherwise(plant, lambda plan: replace(plan, timeout_ms=0))


def each_alone(plant: Plant) -> None:
    """What should be said cumulatively is said of one message."""
    _otherwise(plant, lambda plan: Acknowledging(plan.when, "client-individual", plan.confirmed, plan.messages, plan.of_session, plan.timeout_ms))


def half_for_all(plant: Plant) -> None:
    """50% is taken for the watermark of optimized acknowledgements as well."""
    plant.put(acknowledging, "OPTIMIZED_PERCENT", 50.0)


def payload_goes_first(plant: Plant) -> None:
    """Control messages have their turn when there is no payload left."""
    right = ConnectionMachine.proceed

    def proceed(self: ConnectionMachine, now: int) -> None:
        self.settings.connection_flow_count = 0
        right(self, now)

    plant.put(ConnectionMachine, "proceed", proceed)


def doubts_are_over(plant: Plant) -> None:
    """A commit without an answer is taken for done, whatever the broker says."""

    def resolved(self: XASessionMachine, confirmation: Confirmation, _xids: list[Xid]) -> None:
        self._leave()
        self.connection.settle(confirmation, None)

    plant.put(XASessionMachine, "_resolved", resolved)


# -- the broker -----------------------------------------------------------------------------------------------------------------------------
def persistent_is_express(plant: Plant) -> None:
    """Nobody looks at `persistent`."""
    right = mapping.level_of
    plant.put(mapping, "level_of", lambda named, _persistent, mapped: right(named, None, mapped))


def levels_are_two(plant: Plant) -> None:
    """Nobody looks at `reliability`."""
    right = mapping.level_of
    plant.put(mapping, "level_of", lambda _named, persistent, mapped: right(None, persistent, mapped))


def lost_alone(plant: Plant) -> None:
    """A commit asks for room for its persistent messages, and takes the others as they come."""
    right = Room.why_not

    def why_not(self: Room, shard: Any, peer: Any, transaction: Any) -> Any:
        all_of_it = transaction.sends
        transaction.sends = [send for send in all_of_it if send.message.header.reliability >= STORED]
        try:
            return right(self, shard, peer, transaction)
        finally:
            transaction.sends = all_of_it

    plant.put(Room, "why_not", why_not)


def identifiers_for_everybody(plant: Plant) -> None:
    """Whoever asks for a client identifier has it."""

    async def claim(_self: ClientIds, *_who: Any) -> str:
        return ""

    plant.put(ClientIds, "claim", claim)


def available_at_once(plant: Plant) -> None:
    """Nobody looks at the percentage that a consumer must have consumed."""

    def regain(self: Link, count: int) -> None:
        self.credit += count

    plant.put(Link, "regain", regain)


@dataclass(frozen=True)
class Planted:
    group: str
    bug: Bug
    test: str
    """Named in the group, and fails with the bug."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Of the test, beside `run`."""


JOURNEY, ACKNOWLEDGEMENTS, DELIVERIES = (f"tests/semantics/test_{name}.py::" for name in ("journey", "acknowledgements", "deliveries"))
CLIENT, ENGINE = "tests/client/test_client_", "tests/engine/test_"
CELL = {"mode": AUTO, "destination": Queue("q"), "optimized": True, "when": MOST}
PLANTED = (
    Planted("The journey", durability.settled_without_ledger, f"{JOURNEY}test_a_persistent_message_takes_its_ten_steps_in_their_order"),
    Planted(
        "Production", every_send_waits, f"{JOURNEY}test_the_brokers_word_is_asked_for_and_comes_when_the_message_is_where_it_belongs",
        {"settings": {}, "mode": DeliveryMode.NON_PERSISTENT, "waits": False},
    ),
    Planted(
        "Handling and routing", persistent_is_express, f"{JOURNEY}test_a_broker_that_starts_again_has_what_is_persistent_and_nothing_else",
        {"mode": None, "left": ["m again"]},
    ),
    Planted("Queues", consumers.newest_exclusive_consumer_leads, f"{ENGINE}eligibility.py::test_of_exclusive_consumers_only_the_first_receives"),
    Planted(
        "Queues", available_at_once,
        f"{ENGINE}backup_consumers.py::test_a_consumer_that_had_all_its_limit_is_available_again_when_it_has_consumed_a_percentage_of_it",
    ),
    Planted(
        "Topics", identifiers_for_everybody, "tests/server/test_client_ids.py::test_an_identifier_in_use_is_refused_to_the_same_account_and_to_another"
    ),
    Planted("Consumption", one_more, f"{CLIENT}acknowledging.py::test_dups_ok_acknowledges_after_ten_messages_and_asks_for_no_answer"),
    Planted("Consumption", nobody_waits, f"{ACKNOWLEDGEMENTS}test_the_session_waits_until_the_store_has_its_acknowledgement", {"mode": AUTO}),
    Planted("Consumption", without_a_timeout, f"{CLIENT}acknowledging.py::test_dups_ok_acknowledges_seven_seconds_after_the_first_message_that_is_not"),
    Planted(
        "Transactions", transacting.transaction_torn,
        f"{ENGINE}transactions.py::test_nothing_is_seen_before_the_commit_and_all_of_it_in_one_commit_of_the_store",
    ),
    Planted("Transactions", doubts_are_over, f"{CLIENT}xa_doubts.py::test_a_commit_in_doubt_is_said_again_if_the_broker_still_has_the_branch"),
    Planted(
        "The end of a message", redelivery.back_without_flag,
        f"{DELIVERIES}test_what_was_delivered_and_not_acknowledged_comes_again_marked_so_to_whoever_is_there", {"level": Reliability.EXPRESS, "crash": False},
    ),
    Planted(
        "The end of a message", redelivery.dead_copy_dropped,
        f"{DELIVERIES}test_a_dead_message_says_when_it_died_and_why_and_is_there_to_be_looked_at_and_consumed",
        {"level": Reliability.ASSURED, "reason": "UNDELIVERABLE", "how": "rejected"},
    ),
    Planted(
        "The end of a message", redelivery.wishes_ignored,
        f"{ENGINE}dead_wishes.py::test_a_messages_own_wish_counts_more_than_its_destinations_setting",
        {"level": Reliability.ASSURED, "how": "fails", "use_dead": True, "wish": "false", "kept": 0},
    ),
    Planted("Performance", payload_goes_first, f"{CLIENT}holding.py::test_control_messages_have_their_turn_after_a_hundred_payload_messages"),
    Planted(
        "Durable and persistent", subscriptions.volatile_begins_in_the_past,
        f"{ENGINE}topics.py::test_a_subscriber_that_comes_later_gets_nothing_of_before",
    ),
    Planted(
        "Levels of reliability", levels_are_two, "tests/stomp/test_stomp_sending.py::test_reliability_follows_its_own_header_before_persistent",
        {"headers": b"reliability:reliable\npersistent:false\n", "reliability": Reliability.RELIABLE, "cut": whole},
    ),
    Planted(
        "Levels of reliability", lost_alone, f"{ENGINE}flow_control.py::test_of_any_other_level_all_of_a_commit_has_room_or_nothing_of_it_is_done",
        {"level": Reliability.EXPRESS, "there": True},
    ),
    Planted(
        "Acknowledgements", half_for_all, f"{ACKNOWLEDGEMENTS}test_of_each_cell_the_broker_has_every_acknowledgement_when_the_table_says", CELL
    ),
    Planted("Acknowledgements", each_alone, f"{ACKNOWLEDGEMENTS}test_of_each_cell_the_broker_has_every_acknowledgement_when_the_table_says", CELL),
    Planted("Acknowledgements", without_a_timeout, f"{ACKNOWLEDGEMENTS}test_of_each_cell_the_time_is_300_ms_or_7_s", CELL),
)  # fmt: skip
