"""The auditor: knows what clients sent, saw and acknowledged, nothing of the broker's inside, and says which promise was broken.

A promise that a fault takes away is given up explicitly: `excuse`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

DEAD = "queue/mq.sys.dmq"
BEST_EFFORT, RELIABLE, ASSURED = 0, 3, 4


class Broken(AssertionError):
    """A promise of the broker."""


@dataclass(eq=False)
class Known:
    """One message, as its clients know it."""

    uid: str
    body: bytes
    address: str
    session: str
    order: int
    """Counts the sends of the session."""
    level: int
    priority: int
    expires: int
    confirmed: bool = False
    excused: str = ""
    """Why it may be lost, or come again."""
    first_seen: set[str] = field(default_factory=set)
    """Addresses from which it was delivered without the flag."""
    seen: set[str] = field(default_factory=set)
    acked: set[str] = field(default_factory=set)
    """Addresses where an acknowledgement was sent, or where it left on a link without acknowledgements."""
    ack_confirmed: set[str] = field(default_factory=set)
    nacks: int = 0
    nacks_confirmed: int = 0

    @property
    def stored(self) -> bool:
        return self.level >= RELIABLE


@dataclass(eq=False)
class Subscription:
    """One SUBSCRIBE of a session."""

    name: str
    address: str
    mode: str
    prefetch: int
    open: bool = True
    outstanding: dict[str, Known] = field(default_factory=dict)
    orders: dict[tuple[object, ...], int] = field(default_factory=dict)

    @property
    def auto(self) -> bool:
        return self.mode == "auto"


class Auditor:
    def __init__(self, redelivery_max: int) -> None:
        self._maximum = redelivery_max
        self.known: dict[str, Known] = {}
        self._holders: dict[tuple[str, str], Subscription] = {}

    def _require(self, holds: bool, sentence: str) -> None:
        if not holds:
            raise Broken(sentence)

    # -- sending --------------------------------------------------------------------------------------------------------------------------
    def sends(self, message: Known) -> None:
        self.known[message.uid] = message

    def confirmed(self, uid: str) -> None:
        self.known[uid].confirmed = True

    # -- receiving ------------------------------------------------------------------------------------------------------------------------
    def delivered(self, at: Subscription, uid: str, body: bytes, redelivered: bool, headers: dict[str, str], now: int) -> Known:
        message = self.known.get(uid)
        if message is None:
            raise Broken(f"{uid} was delivered from {at.address} and never sent")
        self._require(body == message.body, f"{uid} came with another body than it was sent with")
        dead = at.address == DEAD
        self._require(dead or at.address == message.address, f"{uid} was sent to {message.address} and came from {at.address}")
        if not message.excused:
            self._check_history(message, at, redelivered, headers, now)
        message.seen.add(at.address)
        message.acked.discard(at.address)
        if not redelivered:
            message.first_seen.add(at.address)
        if not (redelivered or dead):
            self._check_order(message, at)
        self._hold(message, at)
        return message

    def _check_history(self, message: Known, at: Subscription, redelivered: bool, headers: dict[str, str], now: int) -> None:
        uid, address = message.uid, at.address
        self._require(redelivered or address not in message.first_seen, f"{uid} came from {address} a second time without its flag")
        self._require(address not in message.ack_confirmed, f"{uid} came back to {address}, its acknowledgement was confirmed")
        if address == DEAD:
            self._check_dead(message, headers, now)
            return
        self._require(DEAD not in message.seen, f"{uid} came from {address} after it had died")
        self._require(message.nacks_confirmed <= self._maximum, f"{uid} failed {message.nacks_confirmed} times and came again from {address}")

    def _check_dead(self, message: Known, headers: dict[str, str], now: int) -> None:
        uid, reason = message.uid, headers.get("JMS_SUN_DMQ_UNDELIVERED_REASON")
        self._require(headers.get("original-destination") == message.address, f"{uid} died in {headers.get('original-destination')!r}")
        if reason == "EXPIRED":
            self._require(0 < message.expires <= now, f"{uid} is said to have expired at {now}, it expires at {message.expires}")
        elif reason == "UNDELIVERABLE":
            count = int(headers["JMS_SUN_DMQ_DELIVERY_COUNT"])
            self._require(count == self._maximum + 1, f"{uid} died after {count} failures")
            self._require(message.nacks >= count, f"{uid} died after {count} failures, it was refused {message.nacks} times")
        else:
            raise Broken(f"{uid} is dead for the reason {reason!r}")
        self._require(message.address not in message.ack_confirmed, f"{uid} was acknowledged and is dead all the same")

    def _check_order(self, message: Known, at: Subscription) -> None:
        key = (message.session, message.address, message.priority, message.stored)
        before = at.orders.get(key, -1)
        self._require(before < message.order, f"{message.uid} overtook send {before} of {message.session} on {at.name}")
        at.orders[key] = message.order

    def _hold(self, message: Known, at: Subscription) -> None:
        place = (at.address, message.uid)
        holder = self._holders.get(place)
        held = holder is not None and holder.open and message.uid in holder.outstanding
        self._require(not held or bool(message.excused), f"{message.uid} is outstanding on {holder and holder.name} and came to {at.name}")
        if at.auto:
            message.acked.add(at.address)
            return
        at.outstanding[message.uid] = message
        self._holders[place] = at
        self._require(len(at.outstanding) <= at.prefetch, f"{at.name} holds {len(at.outstanding)}, it asked for {at.prefetch}")

    def missed(self, at: Subscription, uid: str) -> None:
        """It was written for a link that is gone; without acknowledgements that was its delivery."""
        if at.auto:
            self.known[uid].acked.add(at.address)

    # -- settling -------------------------------------------------------------------------------------------------------------------------
    def acks(self, at: Subscription, messages: Iterable[Known]) -> None:
        for message in messages:
            message.acked.add(at.address)
            at.outstanding.pop(message.uid, None)

    def nacks(self, at: Subscription, messages: Iterable[Known]) -> None:
        for message in messages:
            message.nacks += at.address != DEAD
            at.outstanding.pop(message.uid, None)

    def settlement_confirmed(self, at: Subscription, messages: Iterable[Known], *, accepted: bool) -> None:
        for message in messages:
            if accepted:
                message.ack_confirmed.add(at.address)
            elif at.address != DEAD:
                message.nacks_confirmed += 1

    # -- what takes promises away ---------------------------------------------------------------------------------------------------------
    def excuse(self, why: str, *, address: str | None = None, below: int = ASSURED + 1) -> None:
        """From now on the messages known so far, of this address, of lower levels than `below`, may be lost or come again. Of the dead
        message queue: those that may have died."""
        for message in self.known.values():
            here = address in (None, message.address) or (address == DEAD and (message.expires or message.nacks > self._maximum))
            if message.level < below and here:
                message.excused = message.excused or why

    # -- the end --------------------------------------------------------------------------------------------------------------------------
    def check_end(self) -> None:
        """Everything was drained: what was promised has come to somebody."""
        for message in self.known.values():
            promised = message.confirmed or (message.stored and bool(message.seen))
            if not promised or message.excused or message.level == BEST_EFFORT:
                continue
            ended = bool(message.acked)
            self._require(ended, f"{message.uid} (level {message.level}, to {message.address}, expires {message.expires}) is lost")
            if message.address not in message.acked:
                self._require(DEAD in message.seen | message.acked, f"{message.uid} ended nowhere")
