"""What clients send of messages."""

import json
from base64 import b64decode
from binascii import Error as NoBase64
from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from console.services.repeating import COPIES_MAX, CRON_CHARACTERS_MAX, Repetition
from console.services.sending import TTL_MS_MAX, Outgoing, level_of

from .fields import Body, Choice, Flag, Object, Text, Whole

LEVELS = ("best-effort", "express", "reliable-np", "reliable", "assured")
TEXT_MAX = 16_384
CONTENTS = ("text", "json", "base64")


class Properties(Object):
    """Texts, numbers, true and false by name; null takes away one of a message that is sent again."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        found = super().to_internal_value(data)
        for name, value in found.items():
            if value is not None and not isinstance(value, str | int | float | bool):
                raise ValidationError(f"{name[:64]!r} must be a text, a number, true, false or null.")
        return found


class Reference(Body):
    destination = Whole(min_value=-(1 << 31), max_value=(1 << 31) - 1, help_text="Its number.")
    message = Text(max_length=32, help_text="Its key.")
    subscription = Whole(min_value=-(1 << 53), max_value=1 << 53, required=False)


class MessageBody(Body):
    """A message to send. Its content is one of text, json and base64, or there is none."""

    text = Text(required=False, allow_blank=True)
    json = serializers.JSONField(required=False)
    base64 = Text(required=False, allow_blank=True)
    content_type = Text(max_length=255, required=False, allow_blank=True, help_text="Unless it is said: text/plain for text, application/json for json.")
    content_encoding = Text(max_length=255, required=False, allow_blank=True, help_text="Such as gzip: the octets are sent as they are.")
    properties = Properties(required=False)
    persistent = Flag(required=False, help_text="Stands for the reliability assured, or express. Unless it is said: true.")
    reliability = Choice(choices=list(LEVELS), required=False)
    priority = Whole(min_value=0, max_value=9, required=False)
    ttl_ms = Whole(min_value=1, max_value=TTL_MS_MAX, required=False)
    delay_ms = Whole(min_value=0, max_value=TTL_MS_MAX, required=False)
    correlation_id = Text(max_length=TEXT_MAX, required=False)
    reply_to = Text(max_length=512, required=False)
    type = Text(max_length=TEXT_MAX, required=False)
    group_id = Text(max_length=255, required=False)
    group_sequence = Whole(min_value=-(1 << 31), max_value=(1 << 31) - 1, required=False)
    duplicate_id = Text(max_length=255, required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if len(given := [name for name in CONTENTS if name in attrs]) > 1:
            raise ValidationError({given[1]: ["Give one of text, json and base64."]})
        if "base64" in attrs:
            try:
                attrs["body"] = b64decode(attrs["base64"], validate=True)
            except (NoBase64, ValueError) as error:
                raise ValidationError({"base64": ["Must be octets in base64."]}) from error
        return attrs


class SendBody(MessageBody):
    """The same, or one that is there, to be sent again with what is named here in place of what it says."""

    from_message = Reference(required=False, help_text="Left as it is where it is.")
    count = Whole(min_value=1, max_value=COPIES_MAX, required=False, help_text=f"Copies. A call sends {COPIES_MAX:,} messages at the most, all or none.")
    period_ms = Whole(min_value=1, max_value=TTL_MS_MAX, required=False, help_text="Between a message, delayed or not, and the next.")
    repeat = Whole(min_value=0, max_value=COPIES_MAX - 1, required=False, help_text="With period_ms or cron: how many times more.")
    cron = Text(
        max_length=CRON_CHARACTERS_MAX, required=False,
        help_text="minute hour day-of-month month day-of-week, in UTC, such as 0 9 * * mon-fri: its next instants after the delay; a day fits both fields.",
    )  # fmt: skip


def changes_of(given: dict[str, Any]) -> dict[str, Any]:
    """As Outgoing has them."""
    named = (
        "properties", "priority", "ttl_ms", "delay_ms", "correlation_id", "reply_to", "type", "group_id", "group_sequence", "duplicate_id", "content_type",
        "content_encoding",
    )  # fmt: skip
    changes = {name: given[name] for name in named if name in given}
    if level := level_of(given.get("reliability"), given.get("persistent")):
        changes["reliability"] = level
    plain = {"content_encoding": given.get("content_encoding", "")}  # not that of the body which it replaces
    if "text" in given:
        changes |= {"body": given["text"].encode(), "content_type": given.get("content_type", "text/plain;charset=utf-8"), **plain}
    elif "json" in given:
        changes |= {"body": json.dumps(given["json"], ensure_ascii=False).encode(), "content_type": given.get("content_type", "application/json"), **plain}
    elif "base64" in given:
        changes["body"] = given["body"]
    return changes


def repetition_of(given: dict[str, Any]) -> Repetition:
    return Repetition(**{name: given[name] for name in ("count", "period_ms", "repeat", "cron") if name in given})


def outgoing_of(given: dict[str, Any]) -> Outgoing:
    """A message of its own."""
    changes = changes_of(given)
    if "properties" in changes:
        changes["properties"] = {name: value for name, value in changes["properties"].items() if value is not None}
    return Outgoing(**changes)
