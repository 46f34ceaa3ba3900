"""A form of things that may be said or left out: what is empty is not said. Services have the rules; this knows what is a number, a word or a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms

UNSAID = ("", "as usual")
TRUTHS = {"true": True, "false": False}
TEXT_CHARACTERS_MAX = 70_000
"""The certificates of a link."""


@dataclass(slots=True, frozen=True)
class Attribute:
    name: str
    words: str = ""
    kind: type = str
    low: float | None = None
    high: float | None = None
    choices: Sequence[str] = ()
    required: bool = False
    secret: bool = False
    long: bool = False

    @property
    def label(self) -> str:
        return self.name.replace("_", " ").capitalize()


class AttributeForm(forms.Form):
    def __init__(self, attributes: Sequence[Attribute], current: Mapping[str, Any] | None = None, data: Any = None) -> None:
        super().__init__(data)
        self._attributes = {each.name: each for each in attributes}
        for each in attributes:
            self.fields[each.name] = _field(each, (current or {}).get(each.name))

    @property
    def said(self) -> dict[str, Any]:
        """What was filled in; after is_valid()."""
        values = {name: self.cleaned_data[name] for name in self._attributes}
        return {name: _value(self._attributes[name], value) for name, value in values.items() if value not in (None, "")}


def _field(it: Attribute, current: Any) -> forms.Field:
    shown: dict[str, Any] = {"label": it.label, "help_text": it.words, "required": it.required, "initial": current}
    if it.kind is bool:
        initial = "" if current is None else str(current).lower()
        return forms.ChoiceField(choices=[UNSAID, ("true", "yes"), ("false", "no")], **{**shown, "initial": initial})
    if it.choices:
        return forms.ChoiceField(choices=[*([] if it.required else [UNSAID]), *((choice, choice) for choice in it.choices)], **shown)
    if it.kind is str:
        widget = forms.PasswordInput(attrs={"autocomplete": "new-password"}) if it.secret else forms.Textarea if it.long else forms.TextInput
        return forms.CharField(max_length=TEXT_CHARACTERS_MAX, empty_value="", widget=widget, **shown)
    bounds = {"min_value": it.low, "max_value": it.high}
    return forms.IntegerField(**bounds, **shown) if it.kind is int else forms.FloatField(**bounds, **shown)


def _value(it: Attribute, value: Any) -> Any:
    return TRUTHS[value] if it.kind is bool else value
