"""What is looked for among messages, as the address of a page says it: conditions, order and place."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.http import HttpRequest

from broker_core.viewing import InvalidFilter, MessageFilter, read_filter
from broker_core.viewing.page import Key
from console.instants import milliseconds

from .asked import Asked, asked

OLDEST, NEWEST = ORDERS = ("oldest", "newest")
TEXTS = ("selector", "text", "json_path", "json_value", "reason", "origin", "message_id", "group")
AGES, COUNTS, INSTANTS = ("age_min", "age_max"), ("attempts_min", "attempts_max"), ("accepted_from", "accepted_to")
CONDITIONS = (*TEXTS, *AGES, *COUNTS, *INSTANTS)
UNITS_MS = {"s": 1000, "min": 60_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_AGE = re.compile(r"([0-9]{1,9}) ?(s|min|m|h|d)?")
_KEY = re.compile(r"(1?[0-9])-([0-9]{1,18})")
_SUBSCRIPTION = re.compile(r"-?[0-9]{1,10}")


class WrongKey(ValueError):
    """No key of a message."""


@dataclass(slots=True, frozen=True)
class Search:
    asked: Asked
    conditions: dict[str, Any]
    """As read_filter has them."""
    wanted: MessageFilter
    problems: dict[str, str]
    """Sentences by the name of the field; nothing is looked for unless it is empty."""

    @property
    def after(self) -> Key | None:
        return key_of(self.asked["after"]) if self.asked["after"] else None

    @property
    def newest_first(self) -> bool:
        return self.asked["order"] == NEWEST

    @property
    def subscription(self) -> int | None:
        return int(self.asked["subscription"]) if self.asked["subscription"] else None

    @property
    def stated(self) -> list[tuple[str, str]]:
        """Conditions that are given, as they were typed."""
        return [(name, self.asked[name]) for name in CONDITIONS if self.asked[name]]


def search_of(request: HttpRequest) -> Search:
    """Never raises: what is wrong is in `problems`."""
    given = asked(request, choices={"order": ORDERS}, texts=(*CONDITIONS, "subscription", "jump"))
    if given["jump"]:
        given.values["after"], given.values["jump"] = given["jump"], ""
    problems: dict[str, str] = {}
    if given["after"] and not _KEY.fullmatch(given["after"]):
        problems["jump"] = "A message's key is like 4-123: its priority and its position."
        given.values["after"] = ""
    if given["subscription"] and not _SUBSCRIPTION.fullmatch(given["subscription"]):
        problems["subscription"] = "A subscription has a number."
        given.values["subscription"] = ""
    conditions = _conditions(given, problems)
    wanted = MessageFilter()
    if not problems:
        try:
            wanted = read_filter(conditions)
        except InvalidFilter as error:
            problems[error.field.removesuffix("_ms")] = error.sentence
    return Search(given, conditions, wanted, problems)


def _conditions(given: Asked, problems: dict[str, str]) -> dict[str, Any]:
    conditions: dict[str, Any] = {name: given[name] for name in TEXTS if given[name] and name != "json_value"}
    if given["json_value"] or given["json_path"]:
        conditions["json_value"] = _json(given["json_value"])
    for name in AGES:
        if given[name]:
            age = milliseconds_of(given[name])
            if age is None:
                problems[name] = "An age is like 90 s, 5 min, 2 h or 3 d."
            else:
                conditions[f"{name}_ms"] = age
    for name in COUNTS:
        if given[name]:
            if given[name].isascii() and given[name].isdigit() and len(given[name]) < 10:
                conditions[name] = int(given[name])
            else:
                problems[name] = "A number of deliveries is a whole number."
    for name in INSTANTS:
        if given[name]:
            at = instant_of(given[name])
            if at is None:
                problems[name] = "An instant is like 2026-11-22T08:30 (UTC)."
            else:
                conditions[name] = milliseconds(at)
    return conditions


def standing(conditions: dict[str, Any], now: int) -> dict[str, Any]:
    """The same, with the instants that ages mean now (in ms): what was counted stays what is meant, whenever it is done."""
    told = dict(conditions)
    for age, name, nearer, beyond in (("age_max_ms", "accepted_from", max, 0), ("age_min_ms", "accepted_to", min, 1)):
        if age in told:
            at = max(now - told.pop(age) + beyond, 0)
            told[name] = nearer(at, told.get(name, at))
    return told


def milliseconds_of(text: str) -> int | None:
    """90 s, 5 min, 2 h, 3 d, or seconds without a unit; None: it is no such thing."""
    found = _AGE.fullmatch(text.strip())
    return int(found[1]) * UNITS_MS[found[2] or "s"] if found else None


def instant_of(text: str) -> datetime | None:
    """As a browser's field for date and time has it, in UTC unless it says otherwise."""
    try:
        found = datetime.fromisoformat(text)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def key_of(text: str) -> Key:
    """Raises WrongKey."""
    found = _KEY.fullmatch(text)
    if found is None or int(found[1]) > 19:
        raise WrongKey(text)
    return int(found[1]), int(found[2])
