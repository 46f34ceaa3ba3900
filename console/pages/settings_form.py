"""The settings of a destination as a form. Bounds and types are the broker's own; this adds only words."""

from typing import Any

from django import forms

from broker_core.control import CHOICES, NAMES, SETTINGS

WORDS = {
    "redelivery_max": ("Redeliveries at most", "Of a message that fails; one failure more and it is dead. 0: the first kills it; -1: never."),
    "redelivery_delay_ms": ("First redelivery after (ms)", "The wait before a message that failed is delivered again."),
    "redelivery_multiplier": ("Multiplied by", "How much longer each further wait is."),
    "redelivery_delay_max_ms": ("Wait at most (ms)", "The wait grows no further."),
    "use_dead": ("Keep dead messages", "On the dead message queue; otherwise they are discarded."),
    "duplicate_window_ms": (
        "Detect duplicates for (ms)",
        "A message with a duplicate-id that was accepted in this time is confirmed and dropped. 0: never.",
    ),
    "default_reliability": (
        "Default reliability",
        "Of messages whose producers leave it to the destination. none: that of their delivery mode.",
    ),
    "maximum_reliability": ("Maximum reliability", "What is sent with a higher one is refused."),
    "reliability_override": ("Producers choose the reliability", "Otherwise every message is reset to the default, also a persistent one."),
}
_FIELDS = {int: forms.IntegerField, float: forms.FloatField, bool: forms.BooleanField}


class SettingsForm(forms.Form):
    def __init__(self, current: dict[str, Any], data: Any = None) -> None:
        super().__init__(data)
        for name in NAMES:
            label, words = WORDS.get(name, (name.replace("_", " ").capitalize(), ""))
            shown = {"label": label, "help_text": words, "initial": current.get(name)}
            if name in CHOICES:
                self.fields[name] = forms.ChoiceField(choices=[(choice, choice) for choice in CHOICES[name]], **shown)
                continue
            kind, low, high = SETTINGS[name]
            bounds = {} if kind is bool else {"min_value": kind(low), "max_value": kind(high)}
            self.fields[name] = _FIELDS[kind](required=kind is not bool, **shown, **bounds)

    @property
    def changed(self) -> dict[str, Any]:
        """What differs from the settings shown; after is_valid()."""
        return {name: self.cleaned_data[name] for name in self.changed_data}
