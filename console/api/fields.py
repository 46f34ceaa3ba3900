"""Strict fields: a value of another JSON type is refused, not converted, so that the document that describes the API is true of it."""

from typing import Any

from django.core.validators import RegexValidator
from rest_framework import serializers
from rest_framework.exceptions import ValidationError


class Body(serializers.Serializer):
    """What a client sends; members that it does not know are refused."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict) and (unknown := sorted(set(data) - set(self.fields))):
            raise ValidationError({unknown[0]: [f"There is no such member; the members are {', '.join(self.fields)}."]})
        return super().to_internal_value(data)


ADDRESS = r"^(queue|topic)/[^\x00-\x20\x7f/*>][^\x00-\x1f\x7f*>]*$"
"""As engine/address.py has it, less temporary ones, which clients make."""


class Text(serializers.CharField):
    def __init__(self, **options: Any) -> None:
        super().__init__(**{"trim_whitespace": False, **options})

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            raise ValidationError("Must be a text.")
        return data


class Address(Text):
    """Of a queue or topic."""

    def __init__(self, **options: Any) -> None:
        sentence = "Give queue/NAME or topic/NAME, without control characters, * and >."
        super().__init__(**{"max_length": 261, "validators": [RegexValidator(ADDRESS, sentence)], **options})


class Choice(serializers.ChoiceField):
    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            raise ValidationError("Must be a text.")
        return super().to_internal_value(data)


class Whole(serializers.IntegerField):
    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, float) and data.is_integer():
            data = int(data)
        if type(data) is not int:
            raise ValidationError("Must be a whole number.")
        return data


class Number(serializers.FloatField):
    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool) or not isinstance(data, int | float):
            raise ValidationError("Must be a number.")
        return super().to_internal_value(data)


class Flag(serializers.BooleanField):
    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            raise ValidationError("Must be true or false.")
        return data


class Object(serializers.DictField):
    """Of any members, which the service checks."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            raise ValidationError("Must be an object.")
        return data
