"""What goes to thousands of consumers goes portion by portion: messages of a topic with many active subscriptions; pages that many wait for
(paging.Shares) take turns with them.

A message is given at once to those who have consumers, as long as that is little work (topics.publish). Otherwise it is put off: it has its place in
its lane and its row, but from `Lane.handed` on nobody gets anything, and nobody reads, until the flushes come by. Each gives a bounded number of
pairs of a message and a subscription, in turn for all topics that have put off something; what is published meanwhile joins the end, so that order stays.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from .accounting import let_go
from .cursor import Cursor
from .destination import Destination, Lane
from .message import BEYOND, Message, Reliability
from .placing import drop, has_room
from .shard import Shard
from .subscription import Subscription

if TYPE_CHECKING:
    from .routes import Group

TOGETHER_MIN = 10
"""Messages that one subscription gets at a time, if there are so many: looking at it costs as much as three."""
SHARE_MIN = 500
"""Steps: less is not worth a turn."""
Work = list[tuple[Lane, Message]]


def put_off(shard: Shard, lane: Lane, groups: list[Group], message: Message) -> None:
    """The message, which is in its lane, goes to those who take it and have consumers with the flushes to come. If it is volatile its lane keeps it."""
    fan_out = lane.destination.fan_out
    if fan_out is None:
        fan_out = lane.destination.fan_out = FanOut(lane.destination)
        shard.handing.append(fan_out)
    if lane not in fan_out.upto:
        fan_out.upto[lane] = -1
        lane.handed = message.position
    message.holders = 1  # the fan-out
    fan_out.add(shard, lane, groups, message)


class FanOut:
    """Of a topic."""

    __slots__ = ("_entries", "_slice", "cut", "destination", "octets", "rest", "turned_away", "upto")

    def __init__(self, destination: Destination) -> None:
        self.destination = destination
        self._entries: deque[tuple[Lane, list[Group], Message]] = deque()
        """In order of publication."""
        self._slice: Work = []
        """The first of them, that go out now."""
        self.rest: deque[tuple[Subscription, Work]] = deque()
        """Who is to get some of these still."""
        self.upto: dict[Lane, int] = {}
        """The last of these in each lane."""
        self.turned_away: dict[Subscription, None] = {}
        """Who wanted to read what these are, and had been passed or came too late: they may when these have gone out."""
        self.octets = 0
        """Of these. A volatile one counts in its lane, too, if that keeps it."""
        self.cut = False
        """There was no room in memory: what came then is on disk only, or in its lane."""

    def add(self, shard: Shard, lane: Lane, groups: list[Group], message: Message) -> None:
        self.cut = self.cut or shard.memory + message.weight > shard.limits.memory_octets
        if not self.cut:
            self.octets += message.weight
            shard.memory += message.weight
            self._entries.append((lane, groups, message))

    def proceed(self, shard: Shard, steps: int) -> int:
        """Do so much. What is left of the steps; 0 or less: they were not enough."""
        if shard.numbered.get(self.destination.number) is not self.destination:
            self._drop(shard)
            return steps
        while steps > 0:
            if not self.rest:
                self._end_slice(shard)
                if not self._begin_slice(shard):
                    self._end(shard)
                    return steps
            while self.rest and steps > 0:
                subscription, work = self.rest.popleft()
                steps -= 1 + len(work)
                if subscription.links:
                    give(shard, subscription, work)
        return steps

    def _begin_slice(self, shard: Shard) -> bool:
        together = max(shard.limits.fan_out // max(self.destination.routes.active, 1), TOGETHER_MIN)
        by_group: dict[Group, Work] = {}
        while self._entries and together > 0:
            lane, groups, message = self._entries.popleft()
            self._slice.append((lane, message))
            self.upto[lane] = message.position
            together -= 1
            for group in groups:
                by_group.setdefault(group, []).append((lane, message))
        for group, work in by_group.items():
            self.rest.extend([(subscription, work) for subscription in group.active.values()])
        return bool(self._slice)

    def _end_slice(self, shard: Shard) -> None:
        for lane, message in self._slice:
            lane.handed = message.position + 1
            self._let_go(shard, lane, message)
        self._slice = []
        turned_away, self.turned_away = self.turned_away, {}
        for subscription in turned_away:
            if subscription.links:
                shard.mark(subscription)

    def _let_go(self, shard: Shard, lane: Lane, message: Message) -> None:
        self.octets -= message.weight
        shard.memory -= message.weight
        if message.holders > 1 or message.position < shard.batch.firsts.get(lane, BEYOND):  # else nobody took it, and its row is still to be written
            let_go(message)

    def _end(self, shard: Shard) -> None:
        """From now on who is behind reads. Those with filters may have been passed over, and if something was cut all were."""
        self._close()
        routes = self.destination.routes
        if groups := (routes.groups if self.cut else routes.filtered):
            shard.handing.append(Reminder([subscription for group in groups.values() for subscription in group.active.values()]))

    def _drop(self, shard: Shard) -> None:
        """Its topic is gone."""
        self.turned_away.clear()
        self._slice += [(lane, message) for lane, _, message in self._entries]
        self._end_slice(shard)
        self._entries.clear()
        self.rest.clear()
        self._close()

    def _close(self) -> None:
        self.destination.fan_out = None
        for lane in self.upto:
            lane.handed = BEYOND

    @property
    def is_over(self) -> bool:
        return self.destination.fan_out is not self

    def turn_away(self, cursor: Cursor) -> None:
        """It may not read what is being handed out. If it was passed it is told when that is over."""
        if cursor.loaded <= self.upto[cursor.lane]:
            self.turned_away[cursor.subscription] = None

    def reaches(self, cursor: Cursor, position: int) -> bool:
        """The cursor will be given what comes there, or told to read it."""
        subscription = cursor.subscription
        coming = position > self.upto[cursor.lane] or self.cut
        return coming or subscription in self.turned_away or any(subscription is waiting for waiting, _ in self.rest)


def give(shard: Shard, subscription: Subscription, work: Work) -> None:
    """As far as it is not behind. It is marked in any case: it may have to read."""
    shard.mark(subscription)
    for lane, message in work:
        cursor, position = subscription.cursors[lane.index], message.position
        assert cursor is not None
        progress = cursor.progress
        if cursor.loaded > position:
            continue  # it began later, or was purged
        if cursor.loaded < position and next(progress.unsettled(cursor.loaded, position - 1), None) is not None:
            if subscription.durable:
                continue
            return  # what it gets of one producer and mode may lie in two lanes: it must not get later ones from the other
        if progress.is_settled(position) or position in cursor.gone:
            pass  # it has expired
        elif has_room(shard, cursor, message):
            if message.header.group is not None:
                subscription.meet_groups()
            cursor.ready.append(message)
            cursor.octets += message.weight
            shard.memory += message.weight
            message.holders += 1
        elif cursor.stored or message.header.reliability != Reliability.BEST_EFFORT:
            if subscription.durable:
                continue
            return
        else:
            drop(shard, cursor, message)
        cursor.loaded = position + 1
        cursor.forget_passed()
    if subscription.wanted:
        _pass_over(subscription)


def _pass_over(subscription: Subscription) -> None:
    """What its filter left out is settled already."""
    for cursor in subscription.order:
        tail = cursor.lane.tail
        if cursor.loaded < tail and not cursor.reading:
            cursor.loaded = next(cursor.progress.unsettled(cursor.loaded, tail - 1), (tail,))[0]
            cursor.forget_passed()


class Reminder:
    """To subscriptions that there may be something to read."""

    __slots__ = ("_rest", "octets")

    def __init__(self, subscriptions: list[Subscription]) -> None:
        self._rest = deque(subscriptions)
        self.octets = 0

    def proceed(self, shard: Shard, steps: int) -> int:
        """Do so much. What is left of the steps; 0 or less: they were not enough."""
        while self._rest and steps > 0:
            subscription = self._rest.popleft()
            steps -= 1
            if subscription.links:
                shard.mark(subscription)
                _pass_over(subscription)
        return steps

    @property
    def is_over(self) -> bool:
        return not self._rest

    def reaches(self, subscription: Subscription) -> bool:
        return subscription in self._rest


def hand_out(shard: Shard) -> None:
    """The portion of this flush, as much as it has room to deliver besides what earlier ones left."""
    steps = max(min(shard.limits.fan_out, shard.batch.room // 2 - len(shard.unserved)), min(SHARE_MIN, shard.limits.fan_out))
    for turns in range(len(shard.handing), 0, -1):
        if steps <= 0:
            return
        handing = shard.handing.popleft()
        share = max(steps // turns, min(SHARE_MIN, steps))
        steps -= share - handing.proceed(shard, share)
        if not handing.is_over:
            shard.handing.append(handing)
