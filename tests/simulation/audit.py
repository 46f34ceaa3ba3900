"""The auditor: knows what clients sent, saw and acknowledged, nothing of the broker's inside, and says which promise was broken.

A promise that a fault takes away is given up explicitly: `excuse`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from broker_core.engine.capacity import REMOVING
from broker_core.engine.settings import Settings

from .interests import Interest, Interests
from .transactions import Transaction, Transactions

DEAD = "queue/mq.sys.dmq"
REASON = "JMS_SUN_DMQ_UNDELIVERED_REASON"
HELD = ("queue/h1", "queue/h2")
"""Queues between which operators move messages, and from which they have them expire and go back: to those who wait for them they are one place."""
ANY_OF_HELD = "queue/h1 or queue/h2"
REMOVED = ("OLDEST", "LOW_PRIORITY")
"""Reasons of those that were removed to make room."""
CLOSED = "g0"
"""The message group that is closed now and then, by any session: what was set aside for its owner then may be overtaken by what has another."""
BEST_EFFORT, RELIABLE, ASSURED = 0, 3, 4
CLOCK_LAG_MS = 2
"""The engine counts whole milliseconds, and begins a term with one."""


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
    unacknowledged: bool = False
    """It went to a consumer that never acknowledges: when it is settled only the broker knows."""
    nacks: int = 0
    nacks_confirmed: int = 0
    rejected: set[str] = field(default_factory=set)
    """Where it was refused never to be delivered again."""
    rejection_confirmed: set[str] = field(default_factory=set)
    within: Transaction | None = None
    delay: int = 0
    due: int = 0
    """When it may come at the earliest; 0: at once."""
    owed: tuple[str, ...] = ()
    """Subscriptions of its topic that take it; of a queue: none, the address stands for it."""

    replies: str = ""
    """Where its sender wants the reply, by the name that others know."""
    colour: str = ""
    repeated: bool = False
    """Sent again, as it was in doubt: its place is that of one sending or of the other."""
    client_id: str = ""
    """Its sender's."""
    said: int = 0
    """To an ordinary topic: the moment when it was sent."""
    confirmed_at: int = 0
    by_sql: bool = False
    """Sent by a session of the database, to which nobody can say no."""
    refused: str = ""
    """Why it can never come: its sender was told that it was refused, or has not sent all of it."""
    may_return: set[str] = field(default_factory=set)
    """Addresses where it may have been on its way to somebody who left and has not seen it: it may come later than its turn, without the flag."""
    unkept: bool = False
    """It wishes to be discarded when it dies."""
    dead_of: str = ""
    """The reason why it ended otherwise than at a consumer's will: EXPIRED, OLDEST or LOW_PRIORITY. Of a topic it ends so once."""
    let_go: bool = False
    """An operator has taken it back from its consumer, who may not know: what this one says of it comes too late, and is confirmed all the same."""
    group: str = ""
    """Of messages that stay together; others of its session may come before it or behind it."""

    @property
    def removed(self) -> bool:
        """It is dead to make room for others."""
        return self.dead_of in REMOVED

    @property
    def places(self) -> tuple[str, ...]:
        """Where it must come."""
        return self.owed or (ANY_OF_HELD if self.is_held else self.address,)

    @property
    def is_held(self) -> bool:
        return self.address in HELD

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
    durable: str = ""
    """The subscription's name, on a topic."""
    selector: str = ""
    takes: Callable[[Known], bool] = lambda _message: True
    """What the selector means."""
    interest: Interest | None = None
    """Of an ordinary topic: which of its subscriptions."""
    open: bool = True
    outstanding: dict[str, Known] = field(default_factory=dict)
    unflagged: set[str] = field(default_factory=set)
    """Of what came, that which came without the flag when it came last."""
    orders: dict[tuple[object, ...], int] = field(default_factory=dict)

    @property
    def auto(self) -> bool:
        return self.mode == "auto"

    @property
    def place(self) -> str:
        """What a message is acknowledged to: a queue, or a subscription of a topic."""
        if self.address in HELD:
            return ANY_OF_HELD
        return self.interest.place if self.interest is not None else self.durable or self.address


class Auditor:
    def __init__(self, transaction_ms: int, counts: Counter[str], settings: Settings, *, changing: bool) -> None:
        """`settings`: of destinations; `changing`: until operators give them other limits and behaviors."""
        self.removes = changing or settings.limit_behavior in REMOVING
        self.drops = changing or (settings.bounds_depth and not self.removes)
        """Non-persistent messages without a receipt, where a destination is full."""
        self._maximum = settings.redelivery_max
        self._counts = self.counts = counts
        self.known: dict[str, Known] = {}
        self._holders: dict[tuple[str, str], Subscription] = {}
        self.transactions = Transactions(self._require, DEAD, transaction_ms - CLOCK_LAG_MS, counts, self._confirm)
        self.interests = Interests(self._require)
        self._over: set[str] = set()
        """Temporary destinations whose connection ends, or has ended."""

    def _require(self, holds: bool, sentence: str) -> None:
        if not holds:
            raise Broken(sentence)

    # -- sending --------------------------------------------------------------------------------------------------------------------------
    def sends(self, message: Known) -> None:
        self.known[message.uid] = message
        self.interests.sends(message)
        if message.address in self._over:
            message.excused = "whoever waited for it was gone"

    def refused(self, message: Known, why: str) -> None:
        """Its sender knows that it was not sent."""
        self._require(not message.seen, f"{message.uid} has come, and {why}")
        message.refused = why

    def confirmed(self, uid: str) -> None:
        self._confirm(self.known[uid])

    def _confirm(self, message: Known) -> None:
        message.confirmed = True
        message.confirmed_at = message.confirmed_at or self.interests.moment()

    # -- receiving ------------------------------------------------------------------------------------------------------------------------
    def delivered(
        self, at: Subscription, uid: str, body: bytes, redelivered: bool, headers: dict[str, str], now: int, count: int | None = None
    ) -> Known:  # fmt: skip
        """`count`: of deliveries before that have failed, where its consumer is told."""
        message = self.known.get(uid)
        if message is None:
            raise Broken(f"{uid} was delivered from {at.address} and never sent")
        self._require(body == message.body, f"{uid} came with another body than it was sent with")
        self._require(not message.refused, f"{uid} came from {at.address}, and {message.refused}")
        dead = at.address == DEAD
        if dead:
            message = self._copy_of(message, headers)
            uid = message.uid
        self._require(not (dead and message.unkept), f"{uid} was kept when it died, and wished otherwise")
        if at.interest is not None:
            self.interests.sees(at.interest, message)
        else:
            here = at.address == message.address or (message.is_held and at.address in HELD)
            self._require(dead or here, f"{uid} was sent to {message.address} and came from {at.address}")
            self._require(dead or at.place in message.places, f"{uid} is not for {at.place}, it is for {message.places}")
        refused = dead and message.by_sql  # at once, whatever its delay
        self._require(refused or now >= message.due - CLOCK_LAG_MS, f"{uid} came {message.due - now} ms before it was due")
        self._require(at.takes(message), f"{uid}, {message.colour} with priority {message.priority}, came to {at.name}, which wants {at.selector}")
        self.transactions.sees_send(message)
        self.transactions.sees_again(message, at.place, now)
        if dead:
            self.transactions.dies(message, now)
        if not message.excused:
            self._check_history(message, at, redelivered, headers, now)
            if count is not None and not dead:
                self._check_count(message, count)
        came_before = at.place in message.seen | message.may_return
        message.seen.add(at.place)
        if not message.let_go:  # else an ACK of the delivery that was taken back may count for this one: in STOMP 1.1 both have the same name
            message.acked.discard(at.place)
        if not redelivered:
            message.first_seen.add(at.place)
            at.unflagged.add(uid)
        else:
            at.unflagged.discard(uid)
        if not (redelivered or dead or came_before or message.is_held):
            self._check_order(message, at)
        self._hold(message, at)
        return message

    def _copy_of(self, message: Known, headers: dict[str, str]) -> Known:
        """What is in the dead message queue. A message of a topic that was removed there and refused by a subscriber has died twice: of those that
        were removed the copy is a message of its own, which comes once and has to be acknowledged as any other."""
        reason = headers.get(REASON, "")
        if reason not in ("EXPIRED", *REMOVED):
            return message
        self._require(message.dead_of in ("", reason) or bool(message.excused), f"{message.uid} died of {message.dead_of} and of {reason}")
        message.dead_of = reason
        if not (message.owed and message.removed):
            return message
        uid = f"{message.uid}, removed"
        if uid not in self.known:
            self.known[uid] = Known(
                uid, message.body, message.address, message.session, message.order, message.level, message.priority, message.expires,
                confirmed=message.confirmed, excused=message.excused, within=message.within, delay=message.delay, due=message.due,
                colour=message.colour, repeated=message.repeated, by_sql=message.by_sql, unkept=message.unkept, dead_of=reason,
            )  # fmt: skip
        return self.known[uid]

    def _check_history(self, message: Known, at: Subscription, redelivered: bool, headers: dict[str, str], now: int) -> None:
        uid, address = message.uid, at.place
        if message.is_held:
            over = message.ack_confirmed & {DEAD, ANY_OF_HELD}
            self._require(not over, f"{uid} came to {at.address}, though it was acknowledged at {over}")
            return
        self._require(redelivered or address not in message.first_seen, f"{uid} came from {address} a second time without its flag")
        if message.let_go:
            return
        self._require(address not in message.ack_confirmed, f"{uid} came back to {address}, its acknowledgement was confirmed")
        if address == DEAD:
            self._check_dead(message, headers, now)
            return
        self._require(address not in message.rejection_confirmed, f"{uid} came back to {address}, its rejection was confirmed")
        self._require(DEAD not in message.seen or bool(message.owed), f"{uid} came from {address} after it had died")
        self._require(message.nacks_confirmed <= self._maximum, f"{uid} failed {message.nacks_confirmed} times and came again from {address}")

    def _check_count(self, message: Known, count: int) -> None:
        """Failures, at least one if it may have been seen (R9). Those of a topic's message belong to any of its subscriptions."""
        least = 0 if message.owed else message.nacks_confirmed
        self._require(least <= count, f"{message.uid} came with delivery-count {count}, it has failed {message.nacks_confirmed} times")
        self._require(count <= max(message.nacks, 1), f"{message.uid} came with delivery-count {count}, it was refused {message.nacks} times")

    def _check_dead(self, message: Known, headers: dict[str, str], now: int) -> None:
        uid, reason = message.uid, headers.get(REASON)
        self._require(headers.get("original-destination") == message.address, f"{uid} died in {headers.get('original-destination')!r}")
        if reason == "EXPIRED":
            self._require(0 < message.expires <= now, f"{uid} is said to have expired at {now}, it expires at {message.expires}")
        elif reason == "UNDELIVERABLE":
            count = int(headers["JMS_SUN_DMQ_DELIVERY_COUNT"])
            if message.by_sql and not count and "paused" in headers["JMS_SUN_DMQ_UNDELIVERED_COMMENT"]:
                self._counts["refused to outsiders"] += 1
                return
            of_failures = count == self._maximum + 1
            rejected = bool(message.rejected) and count <= self._maximum
            self._require(of_failures or rejected, f"{uid} died after {count} failures, it was rejected at {message.rejected}")
            self._require(message.nacks >= count, f"{uid} died after {count} failures, it was refused {message.nacks} times")
        elif reason in REMOVED:
            self._require(self.removes, f"{uid} was removed from {message.address}, which has no limit")
        else:
            raise Broken(f"{uid} is dead for the reason {reason!r}")
        self._require(message.address not in message.ack_confirmed, f"{uid} was acknowledged and is dead all the same")

    def _check_order(self, message: Known, at: Subscription) -> None:
        if message.repeated or message.group == CLOSED:
            return
        key = (message.session, message.address, message.priority, message.stored, message.delay, message.group)
        before = at.orders.get(key, -1)
        self._require(before < message.order, f"{message.uid} overtook send {before} of {message.session} on {at.name}")
        at.orders[key] = message.order

    def _hold(self, message: Known, at: Subscription) -> None:
        place = (at.place, message.uid)
        holder = self._holders.get(place)
        held = holder is not None and holder.open and message.uid in holder.outstanding
        excused = bool(message.excused) or message.let_go
        self._require(not held or excused, f"{message.uid} is outstanding on {holder and holder.name} and came to {at.name}")
        if at.auto:
            message.acked.add(at.place)
            message.unacknowledged = True
            return
        at.outstanding.pop(message.uid, None)  # as a later delivery: cumulative acknowledgements go by their order
        at.outstanding[message.uid] = message
        self._holders[place] = at
        holds = sum([not each.let_go for each in at.outstanding.values()])
        self._require(holds <= at.prefetch, f"{at.name} holds {holds}, it asked for {at.prefetch}")

    def missed(self, at: Subscription, uid: str, headers: dict[str, str]) -> None:
        """It was written for a link that is gone; without acknowledgements that was its delivery."""
        if at.auto:
            message = self.known[uid] if at.address != DEAD else self._copy_of(self.known[uid], headers)
            message.acked.add(at.place)
            message.unacknowledged = True
            self.transactions.sees_again(message, at.place, None)

    # -- settling -------------------------------------------------------------------------------------------------------------------------
    def acks(self, at: Subscription, messages: Iterable[Known]) -> None:
        for message in messages:
            message.acked.add(at.place)
            at.outstanding.pop(message.uid, None)

    def nacks(self, at: Subscription, messages: Iterable[Known]) -> None:
        for message in messages:
            message.nacks += at.address != DEAD
            at.outstanding.pop(message.uid, None)

    def rejects(self, at: Subscription, messages: Iterable[Known]) -> None:
        """It is dead at once; nothing dies twice, so that a dead one is over."""
        for message in messages:
            (message.acked if at.address == DEAD else message.rejected).add(at.place)
            at.outstanding.pop(message.uid, None)

    def rejection_confirmed(self, at: Subscription, messages: Iterable[Known]) -> None:
        for message in messages:
            (message.ack_confirmed if at.address == DEAD else message.rejection_confirmed).add(at.place)

    def settlement_confirmed(self, at: Subscription, messages: Iterable[Known], *, accepted: bool) -> None:
        for message in messages:
            if accepted:
                message.ack_confirmed.add(at.place)
            elif at.address != DEAD:
                message.nacks_confirmed += 1

    def releases(self, at: Subscription, messages: Iterable[Known]) -> None:
        """Its consumer says that nobody has looked at it: it comes back as if it had never left."""
        for message in messages:
            at.outstanding.pop(message.uid, None)
            if message.uid in at.unflagged:
                message.first_seen.discard(at.place)

    def returns_unseen(self, at: Subscription) -> None:
        """The consumer goes, and what is on its way to it has not been looked at."""
        for message in self.known.values():
            if at.place in message.places or at.interest is not None:
                message.may_return.add(at.place)

    # -- what takes promises away ---------------------------------------------------------------------------------------------------------
    def excuse(self, why: str, *, address: str | None = None, below: int = ASSURED + 1) -> None:
        """From now on the messages known so far, of this address, of lower levels than `below`, may be lost or come again. Of the dead
        message queue: those that may have died."""
        for message in self.known.values():
            died = message.expires or message.rejected or message.nacks > self._maximum or message.by_sql or self.removes
            here = address in (None, message.address) or (address == DEAD and died)
            if message.level < below and here:
                message.excused = message.excused or why

    def lets_go(self, address: str) -> None:
        """An operator takes back what a consumer of this queue holds; which one of them clients do not know. It comes again, flagged."""
        for message in self.known.values():
            if message.address == address and not (message.ack_confirmed or message.rejection_confirmed):
                message.let_go = True

    def purges(self, addresses: Iterable[str]) -> None:
        """An operator discards what waits there, and will undo it: what is stored comes back, and nothing else."""
        for address in addresses:
            self.excuse("it was purged, and was in memory only", address=address, below=RELIABLE)

    def missing(self, address: str) -> list[str]:
        """What was promised to come to this temporary destination and has not been consumed."""
        return [
            message.uid
            for message in self.known.values()
            if message.address == address and message.confirmed and not message.excused and message.level != BEST_EFFORT and not message.acked
        ]

    def is_over(self, address: str) -> None:
        """The connection that made the temporary destination ends: what it holds, and what is sent there from now on, is for nobody."""
        self._over.add(address)
        self.excuse("its connection ended", address=address)

    # -- the end --------------------------------------------------------------------------------------------------------------------------
    def check_end(self) -> None:
        """Everything was drained: what was promised has come to somebody."""
        self.transactions.check_end()
        for message in self.known.values():
            promised = message.confirmed or (message.stored and bool(message.seen or message.removed))
            if not promised or message.excused or message.level == BEST_EFFORT or message.said:
                continue
            if message.unkept and (message.seen or message.expires):  # it may have died
                self._counts["discarded as they wished"] += bool(message.nacks or message.rejected) and not message.acked
                continue
            dead = DEAD in message.seen | message.acked
            rejected = message.rejection_confirmed and not message.let_go
            self._require(dead or not rejected, f"{message.uid} was rejected at {message.rejection_confirmed} and is not dead")
            if message.owed:
                died = message.removed or (dead and message.expires > 0)
                missing = [place for place in message.owed if not (place in message.acked or died or (dead and place in message.rejected))]
                self._require(not missing, f"{message.uid} (level {message.level}) never came to {missing}")
                continue
            ended = bool(message.acked)
            self._require(ended, f"{message.uid} (level {message.level}, to {message.address}, expires {message.expires}) is lost")
            if message.places[0] not in message.acked:
                self._require(dead, f"{message.uid} ended nowhere")
