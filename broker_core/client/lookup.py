"""Administered objects: what an operator set up under a name, from the broker's words to settings and destinations."""

from __future__ import annotations

import json
from typing import Any

from .bounds import wrong_client_id
from .destinations import Administered, Queue, Topic
from .exceptions import IllegalStateException, InvalidDestinationException, JMSException
from .settings import PROFILES, DeliveryMode, Profile, Reliability

FACTORY = "factory"


def check_name(name: object) -> str:
    """Raise if no object can be called so."""
    if not name or (wrong := wrong_client_id(name)):
        raise InvalidDestinationException("the administered object's name " + (wrong if name else "is empty: say which one is wanted"))
    return str(name)


class Found:
    """An object as the broker told it."""

    def __init__(self, name: str, told: str) -> None:
        """Raises JMSException if it cannot be understood, as when the broker knows nothing of administered objects."""
        try:
            read = json.loads(told)
            self.kind, self.attributes, self.read_only = str(read["kind"]), dict(read["attributes"]), bool(read["read_only"])
        except (ValueError, TypeError, KeyError):
            raise JMSException(f"the broker did not say what the administered object {name!r} is: it may be another kind of broker") from None
        self.name = name

    def settings(self, given: dict[str, Any]) -> tuple[dict[str, Any], frozenset[str]]:
        """Of the factory, and which of them may not be changed. `given`: the application's own, which count where they may."""
        if self.kind != FACTORY:
            raise InvalidDestinationException(f"the administered object {self.name!r} is a {self.kind}: look it up with lookup_destination()")
        attributes = dict(self.attributes)
        profile = attributes.pop("profile", None)
        values = self._read(attributes)
        fixed = frozenset(values) if self.read_only else frozenset()
        for setting, value in given.items():
            if setting in fixed and value != values[setting]:
                raise read_only(self.name, setting)
        return (PROFILES[Profile(profile)] if profile else {}) | values | given, fixed

    def destination(self) -> Queue | Topic:
        if self.kind == FACTORY:
            raise InvalidDestinationException(f"the administered object {self.name!r} is a connection factory: look it up with ConnectionFactory.lookup()")
        attributes = dict(self.attributes)
        name = attributes.pop("destination", "")
        administered = Administered(self.name, **self._read(attributes))
        return Queue(name, administered=administered) if self.kind == "queue" else Topic(name, administered=administered)

    def _read(self, attributes: dict[str, Any]) -> dict[str, Any]:
        try:
            return {name: _KINDS[name](value) if name in _KINDS else value for name, value in attributes.items()}
        except (ValueError, KeyError) as error:
            raise JMSException(f"an attribute of the administered object {self.name!r} cannot be understood: {error}") from None


_KINDS: dict[str, Any] = {
    "persistent_reliability": Reliability,
    "nonpersistent_reliability": Reliability,
    "override_delivery_mode": lambda mode: DeliveryMode[mode],
    "delivery_mode": lambda mode: DeliveryMode[mode],
}


def read_only(name: str, setting: str) -> JMSException:
    return IllegalStateException(f"{setting} of the administered object {name!r} is set by its operator and read-only: leave it as it is")
