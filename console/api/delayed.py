"""Delayed messages: list, cancel, deliver now, move to another time."""

import re
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from broker_core.viewing import LEVEL_NAMES
from console.instants import YEAR_9999_MS, instant, milliseconds
from console.services import delayed as service

from . import shapes
from .destinations import OfDestination
from .documented import says
from .fields import Body
from .problems import Problem
from .shapes import Boolean, Instant, Integer, Shape, String
from .view import idempotent, page, told

_KEY = re.compile(r"([0-9]{1,18})-([0-9]{1,18})")


class DelayedMessage(Shape):
    number = Integer(help_text="Names it in the schedule; it has another when it is moved to another time.")
    due_at = Instant()
    message_id = String(allow_null=True, help_text="Null: it gets one when it is due.")
    size = Integer()
    priority = Integer()
    persistent = Boolean()
    reliability = serializers.ChoiceField(LEVEL_NAMES)
    protocol = serializers.ChoiceField(("stomp", "amqp"))
    expires_at = Instant(allow_null=True)


class RescheduleBody(Body):
    due_at = serializers.DateTimeField(help_text="What is past means now.")


def _row(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "due_at": instant(row["due_at"]), "expires_at": instant(row["expiration"])}


class Delayed(OfDestination):
    @says("List delayed messages, the next to be due first", DelayedMessage, paged=True)
    def get(self, request: Request, number: str) -> Response:
        it = self.found(number)
        text = self.after() or "0-0"
        key = _KEY.fullmatch(text)
        if key is None:
            raise Problem("invalid", "after must be the `next` of another page.")
        found, following = service.page(self.actor, it.number, it.address, (int(key[1]), int(key[2])), self.limit())
        return page(DelayedMessage, ([_row(dict(row)) for row in found], following))


class CancelDelayed(OfDestination):
    @says("Cancel a delayed message", shapes.ControlRequest, asks=True, once=True)
    @idempotent
    def post(self, request: Request, number: str, delayed: str) -> Response:
        it = self.found(number)
        return told(service.change(self.actor, it.number, it.address, int(delayed), service.CANCEL))


class DeliverDelayed(OfDestination):
    @says("Deliver a delayed message now", shapes.ControlRequest, asks=True, once=True)
    @idempotent
    def post(self, request: Request, number: str, delayed: str) -> Response:
        it = self.found(number)
        return told(service.change(self.actor, it.number, it.address, int(delayed), service.DELIVER))


class Reschedule(OfDestination):
    @says("Move a delayed message to another time", shapes.ControlRequest, asks=True, body=RescheduleBody, once=True)
    @idempotent
    def post(self, request: Request, number: str, delayed: str) -> Response:
        it = self.found(number)
        at = min(max(milliseconds(self.body(RescheduleBody)["due_at"]), 1), YEAR_9999_MS)
        return told(service.change(self.actor, it.number, it.address, int(delayed), service.RESCHEDULE, at))
