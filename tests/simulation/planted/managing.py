"""What operators do to the node, to what consumers hold, and to durable subscriptions."""

from __future__ import annotations

import asyncio
from typing import Any

from broker_core.engine import founding, presence
from broker_core.engine.commands import Control
from broker_core.engine.outcome import Outcome
from broker_core.engine.refusal import Declined
from broker_core.server.flow import FlowControl
from broker_core.server.listening import Node
from broker_core.server.managing import Managing

from .plant import Plant


def quiesced_node_lets_in(plant: Plant) -> None:
    """Its listeners are asked, and nobody asks whether it is quiesced."""
    right = Node.admit

    def admit(node: Any, peer: Any) -> str:
        before, node.quiesced = node.quiesced, False
        problem = right(node, peer)
        node.quiesced = before
        return problem

    plant.put(Node, "admit", admit)


def drained_node_delivers_on(plant: Plant) -> None:
    """Who is to go is given more, and never comes to an end."""
    plant.put(FlowControl, "starve", lambda *_: None)


def hands_over_before_it_answers(plant: Plant) -> None:
    """Who asked hears from the next node that this was another term."""

    async def do(managing: Any, request: Any) -> None:
        try:
            told = await managing._do(request)
        except Declined as no:
            told = {"declined": [no.refusal.name, no.detail]}
        if request.verb == "take_over" and "declined" not in told:
            managing.successor.set()
            await asyncio.sleep(0.020)
        managing._host.submit([Control(request.request, request.verb, request.address, {"told": told})])

    plant.put(Managing, "do", do)


def taken_back_without_its_flag(plant: Plant) -> None:
    """As if nobody had looked at what a consumer held."""
    right = presence.settle

    def settle(shard: Any, command: Any) -> None:
        command.outcome = Outcome.UNUSED
        right(shard, command)

    plant.put(presence, "settle", settle)


def made_by_hand_is_forgotten(plant: Plant) -> None:
    """A durable subscription that an operator makes is in memory only."""
    right = founding.subscribe

    def subscribe(shard: Any, *given: Any) -> Any:
        known = len(shard.batch.definitions)
        subscription = right(shard, *given)
        del shard.batch.definitions[known:]
        return subscription

    plant.put(founding, "subscribe", subscribe)


BUGS = (
    quiesced_node_lets_in,
    drained_node_delivers_on,
    hands_over_before_it_answers,
    taken_back_without_its_flag,
    made_by_hand_is_forgotten,
)
