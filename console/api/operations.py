"""Operations on many messages: begun on a destination, watched, cancelled."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from broker_core.control import DEPTH_MAX, OPERATION_VERBS, SELECTED_MAX
from console.instants import milliseconds
from console.selectors import operations
from console.selectors.operations import INSTANTS, STATES, Operation
from console.services import operations as service

from . import shapes
from .destinations import OfDestination
from .documented import DRY_RUN, says
from .fields import Address, Body, Choice, Text, Whole
from .problems import Problem
from .view import View, idempotent, page, told

OPEN = OpenApiParameter("open", OpenApiTypes.BOOL, description="Only those that wait or run.")
KEY = "^1?[0-9]-[0-9]{1,18}$"


class FilterBody(Body):
    """Conditions, as a list of messages has them; all of them must hold."""

    selector = Text(required=False)
    text = Text(required=False)
    json_path = Text(required=False)
    json_value = serializers.JSONField(required=False)
    age_min_ms = Whole(required=False)
    age_max_ms = Whole(required=False)
    accepted_from = serializers.DateTimeField(required=False)
    accepted_to = serializers.DateTimeField(required=False, help_text="Before this instant.")
    attempts_min = Whole(required=False)
    attempts_max = Whole(required=False)
    reason = Text(required=False)
    origin = Text(required=False)
    message_id = Text(required=False)
    group = Text(required=False)


class OperationBody(Body):
    verb = Choice(choices=list(OPERATION_VERBS))
    destination = Address(required=False, help_text="Of move and copy: where to.")
    priority = Whole(min_value=0, max_value=9, required=False, help_text="Of reprioritize.")
    filter = FilterBody(required=False)
    messages = serializers.ListField(
        child=serializers.RegexField(KEY, help_text="A message's key."), min_length=1, max_length=SELECTED_MAX, required=False,
        help_text="These alone, of those that the filter lets through.",
    )  # fmt: skip
    limit = Whole(min_value=1, max_value=DEPTH_MAX, required=False, help_text="No more than so many.")
    subscription = Whole(min_value=1, max_value=DEPTH_MAX, required=False, help_text="Of a topic: the durable subscription whose messages these are.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "messages" in attrs:
            attrs["messages"] = [[int(part) for part in key.split("-")] for key in attrs["messages"]]
        if "filter" in attrs:
            attrs["filter"] = {name: milliseconds(value) if name in INSTANTS else value for name, value in attrs["filter"].items()}
        if ("destination" in attrs) != (attrs["verb"] in ("copy", "move")):
            raise ValidationError({"destination": ["copy and move need it, the others have none."]})
        return attrs


class Shown(shapes.Shape):
    """An operation and how far it is."""

    number = shapes.Integer(help_text="That of the request that asked for it.")
    verb = serializers.ChoiceField(OPERATION_VERBS)
    address = shapes.String()
    arguments = serializers.DictField(source="as_asked")
    requested_by = shapes.String()
    dry_run = shapes.Boolean(help_text="It only counts.")
    state = serializers.ChoiceField(STATES)
    looked_at = shapes.Integer()
    done = shapes.Integer()
    skipped = shapes.Integer(help_text="Left alone: with a consumer, reserved by a transaction, or about to expire.")
    failed = shapes.Integer(help_text="Left where they are, as they could not be dealt with: `error` tells of the first.")
    total = shapes.Integer(allow_null=True, help_text="How many it may come to. Null: nobody knows.")
    error = shapes.String()
    started_at = shapes.Instant(allow_null=True)
    ended_at = shapes.Instant(allow_null=True)


Shown.__name__ = "Operation"


class OneResult(shapes.Shape):
    """What became of one message."""

    message = shapes.String(source="key", help_text="Its key where it was.")
    result = serializers.ChoiceField(service.RESULTS)
    why = shapes.String(allow_blank=True)


OneResult.__name__ = "OperationResult"


class WithResults(Shown):
    results = OneResult(
        many=True, allow_null=True,
        help_text="Of each message that it names; of one that names none: the first 100 that failed. Empty also if an earlier version, which only counted, "
        "has met them. Null: for who may not browse there.",
    )  # fmt: skip


WithResults.__name__ = "WholeOperation"


class OfOperation(View):
    def found(self, number: str) -> Operation:
        """Raises Problem."""
        it = operations.by_number(int(number), self.sight)
        if it is None:
            raise Problem("not-found")
        return it


class Begin(OfDestination):
    @says("Begin an operation on messages; with dry_run it only counts", Shown, status=201, asks=True, body=OperationBody, once=True, parameters=[DRY_RUN])
    @idempotent
    def post(self, request: Request, number: str) -> Response:
        it = self.found(number)
        arguments = self.body(OperationBody)
        if self.flag("dry_run"):
            arguments["dry_run"] = True
        outcome = service.begin(self.actor, it.address, arguments)
        begun = operations.by_number(outcome.request) if outcome.done else None
        if begun is None:
            return told(outcome)
        return Response(Shown(begun).data, 201, headers={"Location": f"/api/v1/operations/{begun.number}"})


class Operations(View):
    @says("List operations on messages, the newest first", Shown, paged=True, parameters=[OPEN])
    def get(self, request: Request) -> Response:
        return page(Shown, operations.page(self.number_after(), self.limit(), open_only=self.flag("open"), within=self.sight))


class OneOperation(OfOperation):
    @says("Query an operation: how far it is, and what became of single messages", WithResults)
    def get(self, request: Request, number: str) -> Response:
        it = self.found(number)
        results = service.results(self.actor, it)
        return Response({**Shown(it).data, "results": None if results is None else OneResult(results, many=True).data})


class Cancel(OfOperation):
    @says("Cancel an operation; what it has done stays done", shapes.ControlRequest, asks=True, once=True)
    @idempotent
    def post(self, request: Request, number: str) -> Response:
        return told(service.cancel(self.actor, self.found(number)))
