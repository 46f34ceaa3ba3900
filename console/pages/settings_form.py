"""The settings of a destination as a form. Bounds and types are the broker's own; this adds only words."""

from typing import Any

from django import forms
from django.urls import reverse

from broker_core.control import CHOICES, NAMES, QUEUES, QUEUES_ONLY, SETTINGS, TEXTS

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
    "archive_ms": ("Archive bodies for (ms)", "The data pipeline keeps them in its lake, from where they can be replayed. 0: it does not."),
    "default_reliability": (
        "Default reliability",
        "Of messages whose producers leave it to the destination. none: that of their delivery mode.",
    ),
    "maximum_reliability": ("Maximum reliability", "What is sent with a higher one is refused."),
    "reliability_override": ("Producers choose the reliability", "Otherwise every message is reset to the default, also a persistent one."),
    "dead_queue": ("Dead messages go to", "A queue, as in queue/orders.dead; empty: the dead message queue of all."),
    "max_messages": ("Messages at most", "Held at a time; of a topic by the subscription that holds most. -1: unlimited."),
    "max_octets": ("Octets at most", "Of all messages together. -1: unlimited."),
    "max_message_octets": ("Octets of a message at most", "A larger one is refused. -1: unlimited."),
    "max_active_consumers": ("Active consumers at most", "Of a queue: those that are served. -1: unlimited."),
    "max_backup_consumers": ("Backup consumers at most", "Of a queue: those that stand by and take over. -1: unlimited."),
    "consumer_flow_limit": ("Prefetch at most", "Deliveries of a consumer that are not acknowledged. -1: as it asks."),
    "max_producers": ("Producers at most", "Connections that have sent to it and are open. -1: unlimited."),
    "time_to_live_ms": ("Time to live (ms)", "Of messages that state none. -1: for ever."),
    "time_to_live_max_ms": ("Time to live at most (ms)", "Of all, whatever they state. -1: unlimited."),
    "undo_ms": ("A purge can be undone for (ms)", "Meanwhile the disk keeps what it discarded. -1: SURETY_UNDO_SECONDS, 0: not at all."),
    "foreign_link": ("Forwarded over link", "To another broker; nobody consumes here. Empty: it is not forwarded."),
    "foreign_address": ("Its address there", "As the other broker calls it; empty: as here."),
    "limit_behavior": ("When it is full", "FLOW_CONTROL lets producers wait, REJECT_NEWEST refuses what comes, the others remove messages."),
}
GROUPS = (
    ("How much it holds", ("max_messages", "max_octets", "max_message_octets", "limit_behavior")),
    ("Producers", ("max_producers", "time_to_live_ms", "time_to_live_max_ms", "duplicate_window_ms")),
    ("Consumers and flow", ("max_active_consumers", "max_backup_consumers", "consumer_flow_limit")),
    ("Failures", ("redelivery_max", "redelivery_delay_ms", "redelivery_multiplier", "redelivery_delay_max_ms", "use_dead", "dead_queue")),
    ("Reliability", ("default_reliability", "maximum_reliability", "reliability_override")),
    ("Archive", ("archive_ms",)),
    ("Other brokers", ("foreign_link", "foreign_address")),
)
"""What belongs together, in the order of the page; what is in none of them comes last."""
_FIELDS = {int: forms.IntegerField, float: forms.FloatField, bool: forms.BooleanField}


class SettingsForm(forms.Form):
    def __init__(self, current: dict[str, Any], data: Any = None, *, of_topic: bool = False) -> None:
        super().__init__(data)
        for name in NAMES:
            if of_topic and name in QUEUES_ONLY:
                continue
            label, words = WORDS.get(name, (name.replace("_", " ").capitalize(), ""))
            shown = {"label": label, "help_text": words, "initial": current.get(name)}
            if name in CHOICES:
                self.fields[name] = forms.ChoiceField(choices=[(choice, choice) for choice in CHOICES[name]], **shown)
                continue
            if name in QUEUES or name in TEXTS:
                self.fields[name] = forms.CharField(required=False, empty_value="", **shown)
                continue
            kind, low, high = SETTINGS[name]
            bounds = {} if kind is bool else {"min_value": kind(low), "max_value": kind(high)}
            self.fields[name] = _FIELDS[kind](required=kind is not bool, **shown, **bounds)

        for name, field in self.fields.items():
            field.widget.attrs |= {"aria-describedby": f"about-{name} wrong-{name}", "hx-post": reverse("destination_check"), "hx-target": f"#wrong-{name}"}
            field.widget.attrs |= {"hx-trigger": "input changed delay:300ms"}

    @property
    def groups(self) -> list[tuple[str, list[Any]]]:
        """Titles with their fields."""
        placed = {name for _, names in GROUPS for name in names}
        groups = [*GROUPS, ("More", tuple(name for name in self.fields if name not in placed))]
        return [(title, [self[name] for name in names if name in self.fields]) for title, names in groups if any(name in self.fields for name in names)]

    @property
    def changed(self) -> dict[str, Any]:
        """What differs from the settings shown; after is_valid()."""
        return {name: self.cleaned_data[name] for name in self.changed_data}
