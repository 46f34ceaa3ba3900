"""What operators do to many messages at a time: an operation goes through a queue, or a durable subscription of a topic, a step at each flush, so that
traffic goes on beside it. It is a row of the store, written by the commits that do its steps: after a crash it goes on where it was. operating.py does it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .message import LANES, PRIORITIES, VOLATILE
from .message_filter import InvalidFilter, MessageFilter, read_filter
from .subscription import EVERYTHING, Filter
from .writes import OperationRow, OperationState

if TYPE_CHECKING:
    from .cursor import Cursor
    from .message import Message
    from .walk import Walk

COPY, MOVE, RETRY, DELETE, PURGE, EXPIRE, REPRIORITIZE = VERBS = ("copy", "move", "retry", "delete", "purge", "expire", "reprioritize")
"""purge is delete by another name, for which operators need another right."""
AIMED = (COPY, MOVE)
"""Those that name a destination."""
OPERATIONS_MAX = 1_000
"""That wait or run."""
SELECTED_MAX = 1_000
"""Messages that one operation names."""
FAILED_MAX = 100
"""Of those that failed where none is named: so many are told one by one."""
DONE, SKIPPED, FAILED = "done", "skipped", "failed"
NUMBER_MAX = (1 << 63) - 1
ARGUMENTS = ("verb", "subscription", "filter", "messages", "limit", "destination", "priority", "dry_run")


class Page:
    """Messages that were read, to be worked off."""

    __slots__ = ("at", "cursor", "end", "messages", "octets", "tail")

    def __init__(self, cursor: Cursor, tail: int, first: int, end: int, messages: list[Message], octets: int) -> None:
        self.cursor = cursor
        self.tail = tail
        self.at = first
        self.end = end
        """The first position behind it."""
        self.messages = deque(messages)
        self.octets = octets
        """Of memory."""


class Operation:
    __slots__ = (
        "address", "arguments", "destination", "done", "ended_at", "error", "failed", "is_of_sections", "limit", "looked_at", "number", "owed", "pages",
        "priority", "reading", "results", "selected", "skipped", "started_at", "state", "subscription", "takes_all", "target", "told_at", "total", "undoes",
        "verb", "verdicts", "walk", "wanted",
    )  # fmt: skip

    def __init__(self, number: int, address: str, arguments: dict[str, Any], destination: int, subscription: int) -> None:
        """`arguments`: checked by `problem`. The numbers are those of what it goes through."""
        self.number = number
        self.address = address
        self.arguments = arguments
        self.verb: str = arguments["verb"]
        self.destination = destination
        self.subscription = subscription
        self.wanted = filter_of(arguments)
        self.takes_all = self.wanted.is_everything
        self.is_of_sections = self.wanted.is_of_sections
        self.verdicts: dict[tuple[bytes, int, str], bool] = {}
        """Of such a filter, by header section and what the broker added: what it says of messages that were looked at."""
        self.selected = _selected(arguments)
        """Positions by lane, ascending; None: all that the filter lets through."""
        self.limit: int = arguments.get("limit") or NUMBER_MAX
        self.target: str = arguments.get("destination", "")
        self.priority: int = arguments.get("priority", 0)
        self.state = OperationState.WAITING
        self.looked_at = self.done = self.skipped = self.failed = 0
        self.total: int | None = None
        self.error = ""
        self.results: dict[tuple[str, str], list[tuple[int, int]]] = {}
        """Places of single messages by what became of them and why."""
        self.started_at = 0
        self.ended_at: int | None = None
        self.told_at = 0
        """When a row of it was last written."""
        self.walk: Walk | None = None
        """What is still to be read."""
        self.pages: deque[Page] = deque()
        self.owed = 0
        """Effort that a step took beyond its share: the next ones do so much less."""
        self.reading = 0
        """The number of the read on its way; 0: none."""
        self.undoes = self.verb in (DELETE, PURGE)
        """What it discards may come back."""

    @property
    def is_dry(self) -> bool:
        """It counts, and changes nothing."""
        return bool(self.arguments.get("dry_run"))

    @property
    def sifts(self) -> Filter | None:
        """What a read of stored messages may leave out; None: bodies are needed, so nothing is."""
        if self.wanted.needs_body:
            return None
        return Filter(self.wanted.selector) if self.wanted.selector is not None else EVERYTHING

    @property
    def is_over(self) -> bool:
        return self.ended_at is not None

    def tell(self, result: str, lane: int, messages: Sequence[Message], why: str = "") -> None:
        """One by one, as far as they are told so."""
        if self.is_dry or (self.selected is None and result != FAILED):
            return
        if self.selected is None:
            messages = messages[: max(FAILED_MAX - sum(map(len, self.results.values())), 0)]
        if messages:
            self.results.setdefault((result, why), []).extend([(lane, message.position) for message in messages])

    @property
    def told_results(self) -> list[Any]:
        return [[result, why, [list(place) for place in places]] for (result, why), places in self.results.items()]

    @property
    def place(self) -> dict[str, Any]:
        """Of stored lanes: what is in memory only is gone when this is read."""
        lanes = [(page.cursor.index, page.tail, page.at) for page in self.pages]
        walk = self.walk
        lanes += [(cursor.index, tail, walk.at if number == 0 else 0) for number, (cursor, tail) in enumerate(walk.lanes)] if walk is not None else []
        firsts: dict[int, tuple[int, int]] = {}
        for index, tail, at in lanes:
            if index < VOLATILE:
                firsts.setdefault(index, (tail, at))
        return {"subscription": self.subscription, "lanes": [[index, tail, at] for index, (tail, at) in firsts.items()]}

    @property
    def row(self) -> OperationRow:
        return OperationRow(
            self.number, self.verb, self.address, self.arguments, self.state, self.looked_at, self.done, self.skipped, self.failed, self.total,
            self.place if self.ended_at is None else {}, self.started_at, self.ended_at, self.error, self.told_results,
        )  # fmt: skip


def filter_of(arguments: Mapping[str, Any]) -> MessageFilter:
    """Raises InvalidFilter."""
    return read_filter(arguments.get("filter") or {})


def _selected(arguments: Mapping[str, Any]) -> dict[int, list[int]] | None:
    named = arguments.get("messages")
    if named is None:
        return None
    lanes: dict[int, list[int]] = {}
    for lane, position in sorted({(lane, position) for lane, position in named}):
        lanes.setdefault(lane, []).append(position)
    return lanes


# -- what an operator may ask -----------------------------------------------------------------------------------------------------------
def problem(arguments: Mapping[str, Any]) -> str:
    """A sentence that says what is wrong with the arguments of a new operation; empty: nothing."""
    if unknown := sorted(set(arguments) - set(ARGUMENTS)):
        return f"there is no argument {unknown[0][:64]}; the arguments are {', '.join(ARGUMENTS)}"
    verb = arguments.get("verb")
    if verb not in VERBS:
        return f"the verb must be one of {', '.join(VERBS)}"
    for name, needed in (("destination", verb in AIMED), ("priority", verb == REPRIORITIZE)):
        if needed != (name in arguments):
            return f"{verb} needs a {name}" if needed else f"{verb} takes no {name}"
    return _wrong_type(arguments) or _wrong_choice(arguments)


def _wrong_type(arguments: Mapping[str, Any]) -> str:
    if not isinstance(arguments.get("destination", ""), str):
        return "destination must be the address of a queue or topic"
    for name, least, most in (("priority", 0, PRIORITIES - 1), ("limit", 1, NUMBER_MAX), ("subscription", 1, NUMBER_MAX)):
        value = arguments.get(name, least)
        if type(value) is not int or not least <= value <= most:
            return f"{name} must be a whole number from {least} to {most}"
    if not isinstance(arguments.get("dry_run", False), bool):
        return "dry_run must be true or false"
    return ""


def _wrong_choice(arguments: Mapping[str, Any]) -> str:
    named = arguments.get("messages")
    if named is not None and not _are_places(named):
        return f"messages must be a list of 1 to {SELECTED_MAX} messages, each as [lane, position]"
    conditions = arguments.get("filter", {})
    if not isinstance(conditions, Mapping):
        return "filter must be an object of conditions and values"
    try:
        read_filter(conditions)
    except InvalidFilter as error:
        return str(error)
    return ""


def _are_places(named: Any) -> bool:
    if not isinstance(named, list | tuple) or not 0 < len(named) <= SELECTED_MAX:
        return False
    for place in named:
        if not isinstance(place, list | tuple) or len(place) != 2 or not all(type(part) is int for part in place):
            return False
        if not (0 <= place[0] < LANES and 0 <= place[1] <= NUMBER_MAX):
            return False
    return True
