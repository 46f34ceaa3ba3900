"""Sends that wait because their destination is full, under FLOW_CONTROL (R20): the receipt is withheld until there is room, and nothing else is asked
of the producer. A send that waits is nowhere: who loses its connection meanwhile was not told that it is safe."""

from __future__ import annotations

from collections import deque

from .blocking import unblock
from .capacity import (
    Capacity, Inherited, Withheld, bound_life, entered, follow_limits, may_be_removed, too_large, turn_away, waiter, waits_no_more, why_never
)  # fmt: skip
from .commands import Direction, Send
from .destination import Destination
from .outputs import Confirmed, Refused
from .link import Peer
from .noting import note_refused
from .placing import obtain
from .sending import accept, drop, reset, send, why_not_send
from .refusal import Refusal
from .settings import REMOVING
from .settlement import answer
from .shard import Shard

LOOK_EFFORT = 8
"""Of those that wait, looked at in a microsecond, about."""
PLACE_EFFORT = 2


def let_in(shard: Shard) -> bool:
    """Everything for which there is room by now, a bounded part of it in one flush. Whether anything came in."""
    steps = before = shard.limits.admissions
    for destination in list(shard.blocked):
        steps = _let_in(shard, destination, steps)
        if steps <= 0:
            break
    return steps < before


def may_let_in(shard: Shard) -> bool:
    """There is room for some that wait still."""
    return any(_is_open(shard, destination) and _fits(shard, destination, _capacity(destination)) for destination in shard.blocked)


def _capacity(destination: Destination) -> Capacity:
    assert destination.capacity is not None
    return destination.capacity


def _is_there(shard: Shard, destination: Destination) -> bool:
    """It was not destroyed."""
    return shard.numbered.get(destination.number) is destination


def _is_open(shard: Shard, destination: Destination) -> bool:
    return not (destination.state & Direction.PRODUCERS and _is_there(shard, destination))


def _fits(shard: Shard, destination: Destination, capacity: Capacity) -> bool:
    """What has waited longest fits in, if anything waits; or it need not wait, as the limits are others by now."""
    if not capacity.waiting or not _is_there(shard, destination) or destination.settings.limit_behavior in REMOVING:
        return bool(capacity.waiting)
    what = capacity.waiting[0]
    messages, octets = (1, what.message.size) if isinstance(what, Send) else (0, 0)
    if too_large(destination, octets):
        return True  # there will never be room for it: it is refused
    if capacity.take(shard, destination, messages, octets):
        capacity.messages += messages
        capacity.octets += octets
        return True
    return False


def _let_in(shard: Shard, destination: Destination, steps: int) -> int:
    """The steps that are left."""
    capacity = _capacity(destination)
    capacity.forget()
    while steps > 0 and _is_open(shard, destination) and _fits(shard, destination, capacity):
        successor = _successor(shard, destination, capacity.waiting[0])
        if successor is not destination:
            return _let_in(shard, successor, steps)
        steps -= 1
        what = capacity.waiting.popleft()
        peer = waiter(shard, what)
        waits_no_more(shard, destination, peer, what)
        if isinstance(what, Withheld):
            what.left -= 1
            if not what.left:
                shard.batch.outputs.append(what.answer)
        elif not _is_there(shard, destination):
            send(shard, what)  # it was destroyed meanwhile, and none of its name may be made
        else:
            _enter(shard, destination, what)
        _answer_syncs(shard, peer)
    if not capacity.waiting:
        unblock(shard, destination)
        follow_limits(shard, destination)
    return steps


def _successor(shard: Shard, destination: Destination, what: Send | Withheld) -> Destination:
    """Of one that was destroyed: another one of its name, if what has waited longest may make it; it has inherited what waits. Else the same."""
    if _is_there(shard, destination) or not isinstance(what, Send):
        return destination
    if what.address in shard.destinations or why_not_send(shard, what)[0] is not None:
        return destination
    made = obtain(shard, what.peer, what.address)
    return made if made.address == destination.address and made.capacity is not None and made.capacity.waiting else destination


def _enter(shard: Shard, destination: Destination, what: Send) -> None:
    """It waits no more. What another destination let wait may not be for this one."""
    if what.__class__ is Inherited:
        refusal, detail = why_not_send(shard, what)
        if refusal is not None:
            shard.batch.outputs.append(Refused(what.peer, what.token, refusal, detail))
            note_refused(shard, what, refusal, detail)
            drop(shard, what, refusal)
            return
        reset(destination, what.message)
        refusal, detail = why_never(shard, destination, what)
        if refusal is not None:
            turn_away(shard, what, refusal, detail)
            return
        bound_life(destination, what.message, shard.now)
    elif detail := too_large(destination, what.message.size):
        turn_away(shard, what, Refusal.MESSAGE_TOO_LARGE, detail)
        return
    capacity = _capacity(destination)
    if not capacity.take(shard, destination, 1, what.message.size):
        capacity.exceed()
        may_be_removed(shard, destination)
    accept(shard, destination, what.message, shard.now)
    if what.token is not None:
        shard.batch.outputs.append(Confirmed(what.peer, what.token))


def _answer_syncs(shard: Shard, peer: Peer) -> None:
    """If nothing of the peer's waits any more."""
    if not peer.blocked:
        for sync in peer.syncs:
            answer(shard, peer, sync)
        peer.syncs = []


def let_in_all(shard: Shard, destination: Destination, peer: Peer) -> None:
    """Every send of the peer that waits there, in order, though there is no room: what comes next from the peer must not overtake them."""
    capacity = _capacity(destination)
    shard.effort += len(capacity.waiting) // LOOK_EFFORT
    sends = capacity.sends_of(peer.number)
    capacity.waiting = deque(what for what in capacity.waiting if not (isinstance(what, Send) and what.peer == peer.number))
    for one in sends:
        waits_no_more(shard, destination, peer, one)
        _enter(shard, destination, one)
    shard.effort += PLACE_EFFORT * len(sends)
    entered(shard, destination)
    _answer_syncs(shard, peer)
