"""Durable subscriptions of topics: list, create, query, destroy, purge; which of them are stale, and what they hold."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from console.instants import instant
from console.selectors import operations, subscriptions
from console.services import subscriptions as service

from . import shapes
from .documented import DRY_RUN, says
from .fields import Address, Body, Flag, Text
from .operations import Shown as Operation
from .problems import Problem
from .view import View, idempotent, one, page, told

NAME_MAX = 255
IDLE = OpenApiParameter(
    "idle_seconds",
    {"type": "integer", "minimum": 0, "maximum": subscriptions.IDLE_SECONDS_MAX},
    description="Only those that have had no consumer for so long.",
)
IN_USE = OpenApiParameter("in_use", OpenApiTypes.BOOL, description="Though it has consumers: they are closed, and told why.")
WEEK = 7 * 86_400


class SubscriptionBody(Body):
    address = Address(help_text="topic/NAME")
    name = Text(max_length=NAME_MAX)
    account = Text(max_length=NAME_MAX, help_text="Of the client that is to consume from it.")
    client_id = Text(max_length=NAME_MAX, required=False, help_text="Of the client. Without it the subscription is shared by all clients of the account.")
    shared = Flag(required=False, help_text="Several consumers at a time.")
    selector = Text(required=False)
    no_local = Flag(required=False, help_text="Without what the client itself sends.")


class HeldSubscription(shapes.Subscription):
    """A subscription with what it holds."""

    depth = shapes.counter("Messages.")
    unsettled = shapes.counter("Messages that its consumers hold.")
    consumers = shapes.counter()
    segments = shapes.counter("Tables of messages that stay on the disk for it, and perhaps for others.")
    growth = serializers.FloatField(allow_null=True, help_text="Messages by which its backlog grows a minute. Null: unknown, as in the first minutes.")
    growth_since = shapes.Instant(allow_null=True, help_text="What `growth` is the average since.")


class OfSubscription(View):
    def found(self, number: str) -> subscriptions.Subscription:
        """Raises Problem."""
        it = subscriptions.by_number(int(number), self.sight)
        if it is None:
            raise Problem("not-found")
        return it

    def shown(self, found: list[subscriptions.Subscription]) -> list[dict[str, Any]]:
        """With what the node knows."""
        told = [{**held, "growth_since": instant(held["growth_since"])} for held in service.held(self.actor, found)]
        return [{**shapes.Subscription(it).data, **held} for it, held in zip(found, told, strict=True)]


class Subscriptions(View):
    @says("List durable subscriptions of topics", shapes.Subscription, paged=True, parameters=[IDLE])
    def get(self, request: Request) -> Response:
        idle_seconds = self.whole("idle_seconds", 0, 0, subscriptions.IDLE_SECONDS_MAX)
        return page(shapes.Subscription, subscriptions.page(self.number_after(), self.limit(), idle_seconds, self.sight))

    @says("Create a durable subscription, which begins at the end of its topic", shapes.ControlRequest, status=201, asks=True, body=SubscriptionBody)
    def post(self, request: Request) -> Response:
        given = dict(self.body(SubscriptionBody))
        outcome = service.create(self.actor, given.pop("address"), given)
        number = outcome.answer.result.get("subscription") if outcome.done and outcome.answer is not None else None
        return told(outcome, 201, f"/api/v1/subscriptions/{number}" if number else "")


class Stale(OfSubscription):
    @says("List durable subscriptions that nobody uses, with what they hold", HeldSubscription, paged=True, parameters=[IDLE], asks_only=True)
    def get(self, request: Request) -> Response:
        idle_seconds = self.whole("idle_seconds", WEEK, 0, subscriptions.IDLE_SECONDS_MAX)
        found, following = subscriptions.page(self.number_after(), self.limit(), idle_seconds, self.sight)
        return page(HeldSubscription, (self.shown(found), following))


class OneSubscription(OfSubscription):
    @says("Query a durable subscription, with what it holds", HeldSubscription, asks_only=True)
    def get(self, request: Request, number: str) -> Response:
        return one(HeldSubscription, self.shown([self.found(number)])[0])

    @says(
        "End a durable subscription; what it keeps is discarded; with dry_run, a Preview", shapes.DISCARDED, asks=True, once=True,
        parameters=[DRY_RUN, IN_USE],
    )  # fmt: skip
    @idempotent
    def delete(self, request: Request, number: str) -> Response:
        it, force = self.found(number), self.flag("in_use")
        if self.flag("dry_run"):
            return one(shapes.Preview, service.preview_destroy(self.actor, it))
        return told(service.destroy(self.actor, it, force=force))


class PurgeSubscription(OfSubscription):
    @says(
        "Discard what a durable subscription holds, by an operation, which can be undone; with dry_run, a Preview",
        {200: shapes.Preview, 201: Operation}, asks=True, once=True, parameters=[DRY_RUN],
    )  # fmt: skip
    @idempotent
    def post(self, request: Request, number: str) -> Response:
        it = self.found(number)
        if self.flag("dry_run"):
            return one(shapes.Preview, service.preview_purge(self.actor, it))
        outcome = service.purge(self.actor, it)
        begun = operations.by_number(outcome.request) if outcome.done else None
        if begun is None:
            return told(outcome)
        return Response(Operation(begun).data, 201, headers={"Location": f"/api/v1/operations/{begun.number}"})
