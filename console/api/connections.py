"""Connections, producers, consumers, and what they hold: list, give back, close."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from console.instants import instant
from console.selectors import destinations
from console.services import connections as service

from . import shapes
from .documented import says
from .fields import Body, Whole
from .problems import Problem
from .shapes import Boolean, Instant, Integer, Shape, String
from .view import View, idempotent, one, page, told

NUMBER_MAX = (1 << 53) - 1
REASON_MAX = 255
DELIVERIES_MAX = 1_000
DESTINATION = OpenApiParameter("destination", OpenApiTypes.INT, description="Only those of the destination of this number.")
CONNECTION = OpenApiParameter("connection", {"type": "integer", "minimum": 1, "maximum": NUMBER_MAX}, description="Only those of this connection.")
ACCOUNT = OpenApiParameter("account", OpenApiTypes.STR, description="Only those of this account.")
CLIENT_ID = OpenApiParameter("client_id", OpenApiTypes.STR, description="Only those with this client identifier.")
REASON = OpenApiParameter("reason", {"type": "string", "minLength": 1, "maxLength": REASON_MAX}, description="What the client is told; needed.")


class Connection(Shape):
    connection = Integer()
    account = String()
    client_id = String(allow_blank=True)
    protocol = serializers.ChoiceField(("stomp", "amqp"), allow_null=True)
    address = String(allow_null=True, allow_blank=True, help_text="Where it comes from.")
    since = Instant(help_text="Of its login.")
    producers = Integer(allow_null=True, help_text="Destinations that it sends to, as far as that is known (see producers).")
    consumers = Integer()
    browsers = Integer()
    unsettled = Integer(help_text="Messages that it holds.")
    oldest_since = Instant(allow_null=True, help_text="Since when it has held the first of a consumer, to a second.")
    transactions = Integer()
    temporary_destinations = Integer()
    blocked_by = serializers.ListField(child=String(), help_text="Full destinations for which its sends wait.")
    forwards = Boolean(help_text="The broker's own, to or from another broker.")
    stopped = Boolean(help_text="It reads nothing: its socket is full.")


class Consumer(Shape):
    consumer = Integer()
    kind = serializers.ChoiceField(("consumer", "browser"))
    connection = Integer()
    account = String()
    client_id = String(allow_blank=True)
    destination = String(allow_null=True, help_text="Or a pattern of topics. Null: of a browser.")
    subscription = Integer(allow_null=True)
    subscription_name = String(allow_null=True, allow_blank=True)
    durable = Boolean(allow_null=True)
    selector = String(allow_null=True, allow_blank=True)
    credit = Integer(allow_null=True, help_text="Messages that it may be sent now.")
    delivered = Integer(help_text="Since it began.")
    unsettled = Integer(allow_null=True)
    unsettled_octets = Integer(allow_null=True)
    oldest_since = Instant(allow_null=True)
    presettled = Boolean(allow_null=True, help_text="Nothing is to be acknowledged.")
    exclusive = Boolean(allow_null=True)
    closable = Boolean(help_text="It can be closed by itself. Else it ends with its connection only: STOMP has no word for it.")
    priority = Integer(allow_null=True)


class Producer(Shape):
    """Of AMQP a link; of STOMP, and of AMQP's anonymous relay, a destination that a connection has sent to: 256 of each connection, no temporary ones."""

    producer = Integer()
    connection = Integer()
    account = String()
    client_id = String(allow_blank=True)
    destination = String()
    alias = String(allow_null=True, help_text="What it calls the destination, if that is another name.")
    link = String(allow_null=True, allow_blank=True, help_text="Its name. Null: it has none.")
    since = Instant(help_text="Of its link, or of its first message.")
    sent = Integer(allow_null=True, help_text="Messages that came by its link. Null: nobody counts them.")
    waiting = Integer(help_text="Of its connection's sends and commits, those that wait because the destination is full.")
    held_up = Boolean(help_text="Its connection is not read from, for now: too much of it is not confirmed, or the broker is busy or has no disk space.")


class OpenTransaction(Shape):
    """One that a connection has begun, and that is neither ended nor prepared. What it sends is nowhere yet, what it acknowledges is reserved for it."""

    connection = Integer()
    account = String()
    client_id = String(allow_blank=True)
    name = String(help_text="As its client calls it; of AMQP in hexadecimal.")
    xid = String(allow_null=True, help_text="Of a branch of a distributed transaction. Null: it is local.")
    state = serializers.ChoiceField(("active", "suspended", "ended", "failed"), help_text="Only a branch is other than active.")
    ends_at = Instant(help_text="When it is rolled back if nobody has ended it.")
    sends = Integer()
    octets = Integer(help_text="Of what it sends.")
    acknowledgements = Integer()
    destinations = serializers.ListField(child=String(), help_text="Where it sends to and consumes from: the first ten.")
    refused = String(allow_null=True, help_text="Why it cannot be committed any more.")


class HeldDelivery(Shape):
    """A message that a consumer holds."""

    delivery = Integer()
    since = Instant(help_text="To a second.")
    message_id = String()
    destination = String(allow_blank=True)
    key = String(help_text="Of the message.")
    accepted_at = Instant()
    size = Integer()
    priority = Integer()
    redelivered = Boolean()
    attempts = Integer(help_text="That failed before.")


class ReleaseBody(Body):
    deliveries = serializers.ListField(
        child=Whole(min_value=1, max_value=NUMBER_MAX), min_length=1, max_length=DELIVERIES_MAX, required=False, help_text="Without it: all, up to 1,000."
    )


def _connection(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"since": instant(row["since"]), "oldest_since": instant(row["oldest_since"])}


def _consumer(row: dict[str, Any]) -> dict[str, Any]:
    blank = dict.fromkeys(Consumer().fields)
    return blank | row | {"oldest_since": instant(row.get("oldest_since"))}


def _producer(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"since": instant(row["since"])}


def _delivery(row: dict[str, Any]) -> dict[str, Any]:
    seen = {"since": instant(row["since"]), "accepted_at": instant(row["accepted_at"]), "attempts": row["failures"]}
    return row | seen | {"key": f"{row['lane']}-{row['position']}"}


class Connections(View):
    @says("List connections with what they hold", Connection, paged=True, asks_only=True, parameters=[ACCOUNT, CLIENT_ID])
    def get(self, request: Request) -> Response:
        query = self.request.query_params
        of = {name: query[name] for name in ("account", "client_id") if name in query}
        found = service.connections(self.actor, self.number_after(), self.limit(), **of)
        return page(Connection, ([_connection(row) for row in found["connections"]], found["next"]))


class OneConnection(View):
    @says("Query a connection", Connection, asks_only=True)
    def get(self, request: Request, number: str) -> Response:
        found = service.connections(self.actor, 0, 1, only=int(number))["connections"]
        return one(Connection, _connection(found[0]) if found else None)

    @says("Close a connection; its client is told why", shapes.ControlRequest, asks=True, once=True, parameters=[REASON])
    @idempotent
    def delete(self, request: Request, number: str) -> Response:
        return told(service.disconnect(self.actor, int(number), self.request.query_params.get("reason", "")))


class _Narrowed(View):
    """Lists of one destination or one connection, if that is said."""

    def _connection(self) -> int | None:
        return self.whole("connection", 0, 1, NUMBER_MAX) or None

    def _destination(self) -> str:
        text = self.request.query_params.get("destination")
        if text is None:
            return ""
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 10):
            raise Problem("invalid", "destination must be a number.")
        it = destinations.by_number(int(text), self.sight)
        if it is None:
            raise Problem("not-found")
        return it.address


class Transactions(_Narrowed):
    @says("List open transactions, all of a connection on one page", OpenTransaction, paged=True, asks_only=True, parameters=[CONNECTION])
    def get(self, request: Request) -> Response:
        found = service.transactions(self.actor, self.number_after(), self.limit(), connection=self._connection())
        return page(OpenTransaction, ([row | {"ends_at": instant(row["ends_at"])} for row in found["transactions"]], found["next"]))


class Producers(_Narrowed):
    @says("List who produces to which destination", Producer, paged=True, asks_only=True, parameters=[DESTINATION, CONNECTION])
    def get(self, request: Request) -> Response:
        found = service.producers(self.actor, self.number_after(), self.limit(), destination=self._destination(), connection=self._connection())
        return page(Producer, ([_producer(row) for row in found["producers"]], found["next"]))


class OneProducer(View):
    @says("Query a producer", Producer, asks_only=True)
    def get(self, request: Request, number: str) -> Response:
        return one(Producer, _producer(service.producer(self.actor, int(number))))


class Consumers(_Narrowed):
    @says("List consumers and browsers", Consumer, paged=True, asks_only=True, parameters=[DESTINATION, CONNECTION])
    def get(self, request: Request) -> Response:
        found = service.consumers(self.actor, self.number_after(), self.limit(), destination=self._destination(), connection=self._connection())
        return page(Consumer, ([_consumer(row) for row in found["consumers"]], found["next"]))


class OneConsumer(View):
    @says("Close a consumer, not its connection; its client is told why", shapes.ControlRequest, asks=True, once=True, parameters=[REASON])
    @idempotent
    def delete(self, request: Request, number: str) -> Response:
        return told(service.detach(self.actor, int(number), self.request.query_params.get("reason", "")))


class Deliveries(View):
    @says("What a consumer holds, and since when", HeldDelivery, paged=True, asks_only=True)
    def get(self, request: Request, number: str) -> Response:
        found = service.unsettled(self.actor, int(number), self.number_after(), self.limit())
        return page(HeldDelivery, ([_delivery(row) for row in found["deliveries"]], found["next"]))


class Release(View):
    @says("Give back what a consumer holds, for others or for itself", shapes.ControlRequest, asks=True, asks_only=True, body=ReleaseBody, once=True)
    @idempotent
    def post(self, request: Request, number: str) -> Response:
        return told(service.release(self.actor, int(number), self.body(ReleaseBody).get("deliveries")))
