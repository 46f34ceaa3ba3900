"""Kinds of things that operators name and set up, a row each: how one is read, what its form has, and how it is made, changed and deleted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from broker_core import administered, control
from broker_core.foreign import definition
from console.selectors import names
from console.services import destinations, foreign, objects, policies
from console.services.audit import Actor
from console.services.requests import Outcome

from .attribute_form import Attribute
from .settings_form import WORDS

Told = Outcome | list[str] | None
"""The node's answer, or warnings for the operator."""
SENTENCES = (control.InvalidRequest, objects.InvalidObject, foreign.InvalidLink)
"""What making and changing may raise, with a sentence for the operator."""
LINK_WORDS = {
    "host": "Of the other broker.",
    "tls": "The far certificate is checked, by its host's name.",
    "certificates": "PEM: the authorities that may have signed it; empty: those that the operating system trusts.",
    "passcode": "Goes in and comes out nowhere. Empty: it keeps the one it has.",
    "virtual_host": "Of a RabbitMQ.",
    "heart_beat_ms": "0: none.",
    "kind": "Where brokers say things differently.",
    "persistent_reliability": "What persistent messages from there stand for here.",
    "nonpersistent_reliability": "What non-persistent messages from there stand for here.",
    "takes": "What is taken from there: a line each, the far address, a blank, and the destination here, as in queue/orders.",
}


@dataclass(slots=True, frozen=True)
class Kind:
    plural: str
    """In the address of its pages."""
    one: str
    title: str
    words: str
    name: str
    """What its name is called."""
    read: names.Kind[Any]
    attributes: Callable[[str], Sequence[Attribute]]
    """Of the variant."""
    shown: Callable[[Any], Mapping[str, Any]]
    """What one says, as its form has it."""
    create: Callable[[Actor, str, str, dict[str, Any]], Told]
    """By name and variant."""
    update: Callable[[Actor, Any, dict[str, Any]], Told]
    delete: Callable[[Actor, str], Told]
    loss: str
    """What deleting one means."""
    variants: tuple[str, ...] = ("",)
    variant_of: Callable[[Any], str] = lambda it: ""

    def key(self, it: Any) -> str:
        return str(getattr(it, {"policies": "pattern", "aliases": "address"}.get(self.plural, "name")))


def _setting(name: str) -> Attribute:
    words = WORDS.get(name, ("", ""))[1]
    if name in control.CHOICES:
        return Attribute(name, words, choices=control.CHOICES[name])
    if name in control.QUEUES or name in control.TEXTS:
        return Attribute(name, words)
    kind, low, high = control.SETTINGS[name]
    return Attribute(name, words, kind, low, high)


def _object_attribute(name: str, *, required: bool) -> Attribute:
    if name in administered.WORDS:
        return Attribute(name, choices=administered.WORDS[name])
    if name in administered.NUMBERS:
        return Attribute(name, "", *administered.NUMBERS[name])
    return Attribute(name, required=required)


def _object_attributes(variant: str) -> list[Attribute]:
    known = administered.OF_FACTORIES if variant == administered.FACTORY else administered.OF_DESTINATIONS
    read_only = Attribute("read_only", "Clients cannot change what it says.", bool)
    return [*(_object_attribute(name, required=name == "destination") for name in known), read_only]


def _link_attributes(_: str) -> list[Attribute]:
    plain = {
        "tls": Attribute("tls", LINK_WORDS["tls"], bool), "port": Attribute("port", "", int, 1, 65_535),
        "heart_beat_ms": Attribute("heart_beat_ms", LINK_WORDS["heart_beat_ms"], int, 0, definition.HEART_BEAT_MS_MAX),
        "kind": Attribute("kind", LINK_WORDS["kind"], choices=definition.KINDS), "host": Attribute("host", LINK_WORDS["host"], required=True),
        "passcode": Attribute("passcode", LINK_WORDS["passcode"], secret=True),
        "certificates": Attribute("certificates", LINK_WORDS["certificates"], long=True), "takes": Attribute("takes", LINK_WORDS["takes"], long=True),
        **{name: Attribute(name, LINK_WORDS[name], choices=control.ASKED) for name in ("persistent_reliability", "nonpersistent_reliability")},
    }  # fmt: skip
    return [plain.get(name, Attribute(name, LINK_WORDS.get(name, ""))) for name in definition.NAMES]


def _as_lines(it: names.Link) -> dict[str, Any]:
    takes = it.attributes.get("takes", {})
    return {**it.attributes, "takes": "\n".join(f"{far} {here}" for far, here in takes.items())}


def _from_lines(said: dict[str, Any]) -> dict[str, Any]:
    """Raises InvalidLink."""
    if "takes" not in said:
        return said
    pairs = [line.split() for line in said["takes"].splitlines() if line.strip()]
    if any(len(pair) != 2 for pair in pairs):
        raise foreign.InvalidLink("Each line of takes has a far address, a blank, and a destination here.")
    return {**said, "takes": {pair[0]: pair[1] for pair in pairs}}


def _object_said(said: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    return {name: value for name, value in said.items() if name != "read_only"}, bool(said.get("read_only"))


def _create_object(actor: Actor, name: str, variant: str, said: dict[str, Any]) -> Told:
    attributes, read_only = _object_said(said)
    return objects.create(actor, name, variant, attributes, read_only=read_only)


def _update_object(actor: Actor, it: names.AdministeredObject, said: dict[str, Any]) -> Told:
    attributes, read_only = _object_said(said)
    return objects.update(actor, it.name, attributes, read_only=read_only)


ALIAS = (
    Attribute("target", "The destination that it stands for, as in queue/orders, or another alias.", required=True),
    Attribute("default_reliability", "inherit: as its target has it.", choices=("inherit", *control.CHOICES["default_reliability"])),
    Attribute("maximum_reliability", "inherit: as its target has it.", choices=("inherit", *control.CHOICES["maximum_reliability"])),
    Attribute("reliability_override", "Producers choose the reliability.", bool),
)

KINDS = {
    kind.plural: kind
    for kind in (
        Kind(
            "policies", "policy", "Settings by name", "What destinations that clients create from now on begin with, by pattern of their names.", "Pattern",
            names.POLICIES, lambda _: [_setting(name) for name in control.NAMES], lambda it: it.settings,
            lambda actor, name, _, said: policies.put(actor, name, said), lambda actor, it, said: policies.put(actor, it.pattern, said), policies.drop,
            "Destinations that exist keep their settings.",
        ),
        Kind(
            "aliases", "alias", "Aliases", "Names that stand for other destinations, with levels of reliability of their own.", "Address",
            names.ALIASES, lambda _: ALIAS, lambda it: {each.name: getattr(it, each.name) for each in ALIAS},
            lambda actor, name, _, said: destinations.create_alias(actor, name, said.pop("target"), said),
            lambda actor, it, said: destinations.update_alias(actor, it.address, said), destinations.delete_alias,
            "What it stood for stays; clients that say this name make a destination of it.",
        ),
        Kind(
            "objects", "administered object", "Administered objects", "Connection factories and destinations that clients look up by name.", "Name",
            names.OBJECTS, _object_attributes, lambda it: {**it.attributes, "read_only": it.read_only}, _create_object, _update_object, objects.delete,
            "Who has looked it up keeps it; nobody finds it any more.", administered.KINDS, lambda it: str(it.kind),
        ),
        Kind(
            "links", "link", "Links to other brokers", "Queues are forwarded over them, and messages taken from there.", "Name",
            names.LINKS, _link_attributes, _as_lines, lambda actor, name, _, said: foreign.create(actor, name, _from_lines(said)),
            lambda actor, it, said: foreign.update(actor, it.name, _from_lines(said)), foreign.delete,
            "What is forwarded over it waits until there is one of this name again.",
        ),
    )
}  # fmt: skip
