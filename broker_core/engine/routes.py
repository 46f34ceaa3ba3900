"""A topic's subscriptions by what they take: a message finds those that take it without asking each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .properties import Properties, takes
from .selector import constants_of

if TYPE_CHECKING:
    from .properties import Value
    from .subscription import Filter, Subscription


OCTETS_PER_EFFORT = 32
"""Of a selector's text: it takes a microsecond for so many."""


class Group:
    """The subscriptions of a topic that have the same filter."""

    __slots__ = ("active", "durables", "members", "taken", "wanted")

    def __init__(self, wanted: Filter) -> None:
        self.wanted = wanted
        self.members: dict[int, Subscription] = {}
        """By number."""
        self.active: dict[int, Subscription] = {}
        """Those of them that have consumers."""
        self.durables = 0
        """How many of them are durable."""
        self.taken: dict[int, list[int]] = {}
        """By lane, what the filter has let through since Batch.published began; of a group with one."""


class Shelf(dict["Filter", Group]):
    """Groups that are asked together."""

    __slots__ = ("effort",)

    def __init__(self) -> None:
        super().__init__()
        self.effort = 0
        """Of asking them, about, in microseconds: it grows with what they say."""


def _effort(wanted: Filter) -> int:
    if not wanted:
        return 0
    return 1 + len(wanted.selector.text) // OCTETS_PER_EFFORT if wanted.selector is not None else 1


class Routes:
    """Of one topic. Groups whose selector is true only of messages with a certain value are found by it; the others are asked, each once a message."""

    __slots__ = ("_asked", "_by_value", "active", "effort", "filtered", "groups")

    def __init__(self) -> None:
        self.groups: dict[Filter, Group] = {}
        self.filtered: dict[Filter, Group] = {}
        """Those that leave something out."""
        self.active = 0
        """Subscriptions with consumers."""
        self.effort = 0
        """What the last `takers` cost, about, in microseconds."""
        self._asked = Shelf()
        """Whatever the values of a message."""
        self._by_value: dict[str, dict[Value, Shelf]] = {}
        """Identifier -> constant -> groups."""

    def takers(self, properties: Properties) -> list[Group]:
        """The groups that take the message."""
        asked = self._asked
        self.effort = asked.effort
        found = [group for wanted, group in asked.items() if not wanted or takes(wanted, properties)]
        for name, by_constant in self._by_value.items():
            for constant in constants_of(properties[name], coerce=properties.are_text):
                asked = by_constant.get(constant, _NONE)
                self.effort += asked.effort
                found += [group for wanted, group in asked.items() if takes(wanted, properties)]
        return found

    def asks_more(self, wanted: Filter) -> bool:
        """Whether this filter would be one more to ask of every message."""
        return bool(wanted) and wanted not in self.groups and (wanted.selector is None or wanted.selector.equality is None)

    @property
    def asked(self) -> int:
        """Filters that are asked of every message."""
        return len(self._asked)

    def join(self, subscription: Subscription) -> None:
        wanted = subscription.wanted
        group = self.groups.get(wanted)
        if group is None:
            group = self.groups[wanted] = Group(wanted)
            if wanted:
                self.filtered[wanted] = group
            shelf = self._shelf(wanted)
            shelf[wanted] = group
            shelf.effort += _effort(wanted)
        group.members[subscription.number] = subscription
        group.durables += subscription.durable

    def leave(self, subscription: Subscription) -> None:
        """It has no consumers any more."""
        wanted = subscription.wanted
        group = self.groups[wanted]
        del group.members[subscription.number]
        group.durables -= subscription.durable
        if group.members:
            return
        shelf = self._shelf(wanted)
        del self.groups[wanted], shelf[wanted]
        shelf.effort -= _effort(wanted)
        self.filtered.pop(wanted, None)
        selector = wanted.selector
        if selector is not None and selector.equality is not None:
            name, constant = selector.equality
            if not self._by_value[name][constant]:
                del self._by_value[name][constant]
            if not self._by_value[name]:
                del self._by_value[name]

    def _shelf(self, wanted: Filter) -> Shelf:
        """Where a group with this filter is found."""
        selector = wanted.selector
        if selector is None or selector.equality is None:
            return self._asked
        name, constant = selector.equality
        return self._by_value.setdefault(name, {}).setdefault(constant, Shelf())

    def activate(self, subscription: Subscription) -> None:
        """It has its first consumer."""
        self.groups[subscription.wanted].active[subscription.number] = subscription
        self.active += 1

    def deactivate(self, subscription: Subscription) -> None:
        """It has lost its last one."""
        del self.groups[subscription.wanted].active[subscription.number]
        self.active -= 1


_NONE = Shelf()
