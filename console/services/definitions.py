"""The definitions of the broker as one document: exported, compared with what is there, applied.

First everything is checked, what the database keeps by doing it in a transaction that is rolled back; if anything cannot be, nothing is applied. Then
entry by entry: what fails is told, and the rest goes on. So applying again does what is left, and after that nothing.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import transaction

from console.permissions import MANAGE_OPERATOR

from .audit import Actor, record, require
from .definition_kinds import KINDS, REFUSALS, Fields, Found, Key, Kind, Required, Unanswered
from .definition_text import Document, InvalidDefinitions, Path, written

VERSION = 1
ENTRIES_MAX = 20_000
ERRORS_MAX = 100
SECONDS_MAX = 50
"""For trying, and for applying: what is left is done by applying again."""
CREATE, CHANGE, REMOVE = ACTIONS = ("create", "change", "remove")
PLANNED, DONE, REFUSED, UNANSWERED, LEFT = STATES = ("planned", "done", "refused", "unanswered", "left")


@dataclass(slots=True)
class Step:
    """One entry that is not as the document has it."""

    kind: str
    name: str
    action: str
    changes: dict[str, dict[str, Any]]
    """Of a change: `from` and `to` by field; null: it was not there, or will not be."""
    path: Path
    of_node: bool
    do: Callable[[Actor], list[str]]
    state: str = PLANNED
    problem: str = ""
    """Why it is not done; empty: it is, or it is planned."""
    warnings: list[str] = field(default_factory=list)


@dataclass(slots=True, frozen=True)
class Plan:
    steps: list[Step]
    unchanged: int
    """Entries of the document that are as it has them."""
    dry_run: bool

    def count(self, state: str) -> int:
        return sum(step.state == state for step in self.steps)


def export(actor: Actor) -> str:
    """The document of what is there; secrets are never in it. For administrators. Raises PermissionDenied."""
    require(actor, MANAGE_OPERATOR, "definitions export", reads=True)
    sections = {kind.name: _section(kind, kind.read(actor)) for kind in KINDS.values()}
    return written({"version": VERSION, **sections})


def apply(actor: Actor, text: str, *, dry_run: bool, prune: bool) -> Plan:
    """What is not as the document says is made so; a dry run only tells it. Kinds that the document does not name stay as they are; of those that it
    does name, `prune` removes what is not in it. For administrators. Raises PermissionDenied, InvalidDefinitions."""
    require(actor, MANAGE_OPERATOR, "definitions apply", reads=dry_run)
    document = Document(text)
    steps, unchanged = _planned(replace(actor, read_only=False), document, prune=prune)
    _try(replace(actor, read_only=False), document, steps)
    if not dry_run:
        counts = {action: sum(step.action == action for step in steps) for action in ACTIONS}
        record(actor.name, actor.origin, "definitions apply", "", {**counts, "prune": prune})
        _perform(actor, steps)
    return Plan(steps, unchanged, dry_run)


# -- the document of what is there ------------------------------------------------------------------------------------------------------
def _section(kind: Kind, there: Mapping[Key, Found]) -> Any:
    defined = sorted((key, found) for key, found in there.items() if not found.automatic)
    if kind.key:
        return [_entry(kind, found.fields) for _, found in defined]
    return {key[0]: _entry(kind, found.fields) for key, found in defined}


def _entry(kind: Kind, fields: Fields) -> Fields:
    if not kind.defaults:
        return _sorted(fields)
    return {name: _sorted(fields[name]) for name, default in kind.defaults.items() if fields[name] != default}


def _sorted(value: Any) -> Any:
    return {name: _sorted(value[name]) for name in sorted(value)} if isinstance(value, dict) else value


# -- what the document says -------------------------------------------------------------------------------------------------------------
Wanted = dict[Key, tuple[Path, Fields]]


def _wanted(document: Document) -> dict[str, Wanted]:
    """By kind. Raises InvalidDefinitions."""
    value = document.value
    if not isinstance(value, dict):
        raise InvalidDefinitions([("", f"The document must be an object of {', '.join(KINDS)}.")])
    if unknown := [name for name in value if name not in KINDS and name != "version"]:
        raise InvalidDefinitions([document.error((unknown[0],), f"there is no such kind of definition; these are {', '.join(KINDS)}.")])
    if type(value.get("version", VERSION)) is not int or value.get("version", VERSION) != VERSION:
        raise InvalidDefinitions([document.error(("version",), f"the version must be {VERSION}.")])
    if sum(len(section) for section in value.values() if isinstance(section, dict | list)) > ENTRIES_MAX:
        raise InvalidDefinitions([("", f"A document has at most {ENTRIES_MAX} entries: send it in parts, a kind or more in each.")])
    errors: list[tuple[str, str]] = []
    wanted = {name: _read_section(document, kind, value[name], errors) for name, kind in KINDS.items() if name in value}
    twice = wanted.get("aliases", {}).keys() & wanted.get("destinations", {}).keys()
    errors += [document.error(("aliases", *key), "a destination of this name is in the document, too.") for key in sorted(twice)]
    if errors:
        raise InvalidDefinitions(errors[:ERRORS_MAX])
    return wanted


def _read_section(document: Document, kind: Kind, section: Any, errors: list[tuple[str, str]]) -> Wanted:
    found: Wanted = {}
    if section is None:
        section = [] if kind.key else {}
    if not isinstance(section, list if kind.key else dict):
        errors.append(document.error((kind.name,), f"must be {'a list' if kind.key else 'an object of entries by name'}."))
        return found
    for name, entry in enumerate(section) if kind.key else section.items():
        path: Path = (kind.name, name)
        wrong = list(_problems(kind, {} if entry is None else entry))
        if wrong:
            errors += [document.error((*path, *inner), sentence) for inner, sentence in wrong]
            continue
        fields = kind.normal({**_copied(kind.defaults), **_typed(kind, entry or {})})
        key = tuple(fields[each] for each in kind.key) or (name,)
        if key in found:
            errors.append(document.error(path, "the same is there twice."))
        elif kind.problem is not None and (sentence := kind.problem(key, fields)):
            errors.append(document.error(path, _sentence(sentence)))
        found[key] = (path, fields)
    return found


def _problems(kind: Kind, entry: Any) -> Iterator[tuple[Path, str]]:
    """Of its form."""
    if not isinstance(entry, dict):
        yield (), "must be an object."
        return
    if not kind.defaults:
        return
    for name, value in entry.items():
        if name not in kind.defaults:
            yield (name,), f"there is no such member; the members are {', '.join(kind.defaults)}."
        elif wrong := _mistyped(kind.defaults[name], value):
            yield (name,), f"must be {wrong}."
    for name, default in kind.defaults.items():
        if isinstance(default, Required) and name not in entry:
            yield (), f"{name} must be given."


def _mistyped(default: Any, value: Any) -> str:
    """What it must be; empty: it is."""
    if isinstance(default, Required):
        return _mistyped(default.like, value)
    if isinstance(default, bool):
        return "" if isinstance(value, bool) else "true or false"
    if isinstance(default, int):
        return "" if type(value) is int else "a whole number"
    if isinstance(default, float):
        return "" if type(value) in (int, float) else "a number"
    if isinstance(default, list):
        return "" if isinstance(value, list) and all(isinstance(each, str) for each in value) else "a list of texts"
    if isinstance(default, dict):
        return "" if isinstance(value, dict) else "an object"
    return "" if isinstance(value, str) else "a text"


def _typed(kind: Kind, entry: Fields) -> Fields:
    return {name: float(value) if isinstance(kind.defaults.get(name), float) else value for name, value in entry.items()}


def _copied(defaults: Mapping[str, Any]) -> Fields:
    return {name: type(value)(value) if isinstance(value, list | dict) else value for name, value in defaults.items()}


# -- the plan ---------------------------------------------------------------------------------------------------------------------------
def _planned(actor: Actor, document: Document, *, prune: bool) -> tuple[list[Step], int]:
    """In the order in which it is done. Raises InvalidDefinitions."""
    first: list[Step] = []
    middle: list[Step] = []
    last: list[Step] = []
    errors: list[tuple[str, str]] = []
    unchanged = 0
    for name, wanted in _wanted(document).items():
        kind = KINDS[name]
        there = kind.read(actor)
        for key, (path, fields) in wanted.items():
            step = _step(kind, key, path, fields, there.get(key))
            if step is None:
                unchanged += 1
                continue
            middle.append(step)
            errors += [document.error((*path, each), "it cannot be changed: remove it, and create it anew.") for each in kind.fixed if each in step.changes]
        gone = [key for key, found in there.items() if prune and key not in wanted and not found.automatic and not found.stays]
        (first if kind.removed_first else last).extend(_removal(kind, key, there[key]) for key in sorted(gone))
    if errors:
        raise InvalidDefinitions(errors[:ERRORS_MAX])
    return [*reversed(first), *middle, *reversed(last)], unchanged


def _step(kind: Kind, key: Key, path: Path, fields: Fields, found: Found | None) -> Step | None:
    """None: it is so."""
    name = _shown(key)
    if found is None:
        return Step(kind.name, name, CREATE, {}, path, kind.of_node, lambda actor: kind.create(actor, key, fields))
    told = {each: {"from": found.fields.get(each), "to": fields.get(each)} for each in {**found.fields, **fields} if _differs(found.fields, fields, each)}
    if found.automatic:
        told["automatic"] = {"from": True, "to": False}
    return Step(kind.name, name, CHANGE, told, path, kind.of_node, lambda actor: kind.change(actor, key, found, fields)) if told else None


def _differs(now: Fields, wanted: Fields, name: str) -> bool:
    return name not in now or name not in wanted or now[name] != wanted[name]


def _removal(kind: Kind, key: Key, found: Found) -> Step:
    return Step(kind.name, _shown(key), REMOVE, {}, (kind.name,), kind.of_node, lambda actor: kind.remove(actor, key, found))


def _shown(key: Key) -> str:
    return " ".join(str(part).lower() if isinstance(part, bool) else part for part in key if part != "")


# -- doing it ---------------------------------------------------------------------------------------------------------------------------
def _try(actor: Actor, document: Document, steps: list[Step]) -> None:
    """What the database keeps, for nothing. Raises InvalidDefinitions."""
    errors = []
    ends = time.monotonic() + SECONDS_MAX
    with transaction.atomic():
        for step in steps:
            if step.of_node:
                continue
            if time.monotonic() >= ends:
                raise InvalidDefinitions([("", "So many entries take too long at once: send the document in parts, a kind or more in each.")])
            try:
                with transaction.atomic():
                    step.warnings = step.do(actor)
            except REFUSALS as error:
                errors.append(document.error(step.path, _sentence(str(error) if step.action != REMOVE else f"{step.name}: {error}")))
        transaction.set_rollback(True)
    if errors:
        raise InvalidDefinitions(errors[:ERRORS_MAX])


def _perform(actor: Actor, steps: list[Step]) -> None:
    ends = time.monotonic() + SECONDS_MAX
    silent = False
    for step in steps:
        if time.monotonic() >= ends or (silent and step.of_node):
            step.state, step.problem = LEFT, "The node is silent." if silent else "There was no time for it: apply again."
            continue
        try:
            step.warnings = step.do(actor)
        except Unanswered as error:
            silent = True
            step.state, step.problem = UNANSWERED, str(error)
        except (*REFUSALS, PermissionDenied) as error:
            step.state, step.problem = REFUSED, _sentence(str(error))
        else:
            step.state = DONE


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."
