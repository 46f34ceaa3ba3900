"""Messages: browse, view, download, send, export and import; dead ones by reason and origin."""

import json
import re
from collections.abc import Iterator
from typing import Any

from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from broker_core.viewing import REASONS_KNOWN, TEXT_CHARACTERS_MAX, MessageFilter, read_filter
from broker_core.viewing.page import Key, Seen, key_text
from broker_core.viewing.rendering import OCTETS, PLAIN, content_of
from console.instants import milliseconds
from console.selectors.operations import INSTANTS
from console.services import browsing, sending
from console.services.audit import record

from . import message_bodies, message_shapes
from .destinations import OfDestination
from .documented import LIMIT, says
from .message_lines import read_lines
from .message_shapes import page_of_messages, whole_message
from .parsing import Lines
from .problems import Problem
from .streaming import stream
from .view import idempotent

MILLISECONDS_MAX = (1 << 53) - 1
EXPORT_MAX = 1_000_000
LINES = "application/x-ndjson"
FILES = {(200, PLAIN): OpenApiTypes.STR, (200, OCTETS): OpenApiTypes.BINARY}
_KEY = re.compile(r"(1?[0-9])-([0-9]{1,18})")


def _text(name: str, description: str, **schema: Any) -> OpenApiParameter:
    return OpenApiParameter(name, {"type": "string", **schema}, description=description)


def _whole(name: str, description: str) -> OpenApiParameter:
    return OpenApiParameter(name, {"type": "integer", "minimum": 0, "maximum": MILLISECONDS_MAX}, description=description)


SUBSCRIPTION = OpenApiParameter("subscription", OpenApiTypes.INT64, description="Of a topic: whose messages. A queue has none.")
FILTERS = (
    _text("selector", "As consumers give it, with JMSPriority, JMSTimestamp, ...; dead messages have original_destination, too."),
    _text("text", "Found in headers, in bodies up to 256 KiB, or in what the broker added; in the same case.", maxLength=TEXT_CHARACTERS_MAX),
    _text("json_path", "order.items[0].id: a place in a JSON body up to 256 KiB; goes with json_value."),
    _text("json_value", "What stands there, as JSON; what is no JSON is a text."),
    _whole("age_min_ms", "At least so long here."),
    _whole("age_max_ms", "At most so long."),
    _text("accepted_from", "Placed here then or later: an instant such as 2026-11-22T10:00:00Z.", format="date-time"),
    _text("accepted_to", "Before this instant.", format="date-time"),
    _whole("attempts_min", "Deliveries that failed; of a dead message those that it died of."),
    _whole("attempts_max", "At most so many."),
    _text("reason", "Why it died.", enum=list(REASONS_KNOWN)),
    _text("origin", "Where it died: queue/NAME or topic/NAME."),
    _text("message_id", "Its identifier."),
    _text("group", "Its message group."),
)
ORDER = _text("order", "oldest: in the order of delivery, highest priority first; newest: the other way round.", enum=["oldest", "newest"])
AFTER = _text("after", "`next` of the page before, or a message's key: the page begins with it.", pattern="^1?[0-9]-[0-9]{1,18}$")
UP_TO = OpenApiParameter("limit", {"type": "integer", "minimum": 1, "maximum": EXPORT_MAX}, description="At most so many; all there are, unless it is said.")


class OfMessages(OfDestination):
    def key(self, text: str) -> Key:
        """Raises Problem."""
        found = _KEY.fullmatch(text)
        if found is None or int(found[1]) > 19:
            raise Problem("invalid", "A message's key is like 4-123: take it from a list of messages.")
        return int(found[1]), int(found[2])

    def after_key(self) -> Key | None:
        text = self.request.query_params.get("after")
        return None if text is None else self.key(text)

    def subscription(self) -> int | None:
        text = self.request.query_params.get("subscription")
        if text is not None and not re.fullmatch("-?[0-9]{1,18}", text, re.ASCII):
            raise Problem("invalid", "subscription must be a number.")
        return None if text is None else int(text)

    def newest_first(self) -> bool:
        order = self.request.query_params.get("order", "oldest")
        if order not in ("oldest", "newest"):
            raise Problem("invalid", "order must be oldest or newest.")
        return order == "newest"

    def wanted(self) -> MessageFilter:
        """Raises InvalidFilter."""
        given: dict[str, Any] = {}
        for parameter in FILTERS:
            text = self.request.query_params.get(parameter.name)
            if text is None:
                continue
            if parameter.name == "json_value":
                given[parameter.name] = _json(text)
            elif parameter.name in INSTANTS:
                at = self.instant(parameter.name)
                given[parameter.name] = None if at is None else milliseconds(at)
            else:
                given[parameter.name] = text if parameter.type["type"] == "string" else self.whole(parameter.name, 0, 0, MILLISECONDS_MAX)  # type: ignore[index]
        return read_filter(given)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


class Messages(OfMessages):
    @says("Browse messages of a queue or a subscription", message_shapes.MessagesPage, asks_only=True, parameters=[*FILTERS, SUBSCRIPTION, ORDER, AFTER, LIMIT])
    def get(self, request: Request, number: str) -> Response:
        it = self.found(number)
        found = browsing.page(
            self.actor, it.address, self.wanted(), self.limit(), after=self.after_key(), newest_first=self.newest_first(), subscription=self.subscription()
        )
        return Response(page_of_messages(found))  # in its shape already: a serializer would take longer than the search

    @says(
        "Send a message, or one again, perhaps edited; once, or repeatedly", message_shapes.Sent, status=201, asks_only=True, body=message_bodies.SendBody,
        once=True,
    )  # fmt: skip
    @idempotent
    def post(self, request: Request, number: str) -> Response:
        it = self.found(number)
        given = self.body(message_bodies.SendBody)
        reference, asked = given.get("from_message"), message_bodies.repetition_of(given)
        if reference is None:
            sent = sending.send(self.actor, it.address, message_bodies.outgoing_of(given), asked=asked)
        else:
            source = self.found(str(reference["destination"]))
            named = sending.Source(source.address, self.key(reference["message"]), reference.get("subscription"))
            sent = sending.send_again(self.actor, it.address, named, message_bodies.changes_of(given), asked=asked)
        return Response(message_shapes.Sent(message_shapes.all_sent(sent)).data, 201, headers={"Location": f"/api/v1/destinations/{it.number}/messages"})


class OneMessage(OfMessages):
    @says("One message: headers, properties, body", message_shapes.ShownMessage, asks_only=True, parameters=[SUBSCRIPTION])
    def get(self, request: Request, number: str, key: str) -> Response:
        it = self.found(number)
        view = browsing.message(self.actor, it.address, self.key(key), self.subscription())
        return Response(message_shapes.ShownMessage(whole_message(view)).data)


class MessageOctets(OfMessages):
    @says("The whole body of a message, as a file", FILES, asks_only=True, parameters=[SUBSCRIPTION])
    def get(self, request: Request, number: str, key: str) -> HttpResponseBase:
        it = self.found(number)
        named = self.key(key)
        content, octets = browsing.body(self.actor, it.address, named, self.subscription())
        headers = {
            "Content-Length": str(content.size),
            "Content-Disposition": f'attachment; filename="message-{key_text(named)}.{content.ending}"',
            "Content-Security-Policy": "sandbox; default-src 'none'",
            "X-Content-Type-Options": "nosniff",
        }
        return stream(request, octets, content.media_type, headers)


class Export(OfMessages):
    @says("Messages with their bodies, a line of JSON each", {(200, LINES): OpenApiTypes.STR}, asks_only=True, parameters=[*FILTERS, SUBSCRIPTION, UP_TO])
    def get(self, request: Request, number: str) -> HttpResponseBase:
        it = self.found(number)
        limit = self.whole("limit", 0, 1, EXPORT_MAX) or None
        pages = browsing.pages(self.actor, it.address, self.wanted(), limit, subscription=self.subscription())
        first = next(pages, [])  # what cannot be done is said before anything else is
        record(self.actor.name, self.actor.origin, "export", it.address, {"limit": limit} if limit else {})
        name = f"messages-{it.number}.ndjson"
        return stream(request, _lines(first, pages), LINES, {"Content-Disposition": f'attachment; filename="{name}"', "X-Content-Type-Options": "nosniff"})


def _lines(first: list[Seen], pages: Iterator[list[Seen]]) -> Iterator[bytes]:
    yield from _page_lines(first)
    for seen in pages:
        yield from _page_lines(seen)


def _page_lines(page: list[Seen]) -> Iterator[bytes]:
    for seen in page:
        content = content_of(seen.message)
        if content is not None and content.size <= sending.RESENT_OCTETS_MAX:
            yield sending.as_line(seen, content).encode() + b"\n"
        else:
            yield json.dumps({"key": seen.key, "message_id": seen.identity, "left_out": "its body is too large for a line"}).encode() + b"\n"


class Import(OfMessages):
    parser_classes = [Lines]

    @says(
        "Send messages, a line of JSON each as an export has them: all, or none if one cannot be sent", message_shapes.Imported, status=201,
        body={LINES: OpenApiTypes.STR}, once=True,
    )  # fmt: skip
    @idempotent
    def post(self, request: Request, number: str) -> Response:
        it = self.found(number)
        sent = sending.send_all(self.actor, it.address, read_lines(request.data))
        return Response({"sent": sent}, 201, headers={"Location": f"/api/v1/destinations/{it.number}/messages"})


class DeadGroups(OfMessages):
    @says("Dead messages by reason, origin and error", message_shapes.DeadGroups, asks_only=True, parameters=[AFTER])
    def get(self, request: Request, number: str) -> Response:
        it = self.found(number)
        found = browsing.groups(self.actor, it.address, self.after_key())
        told = {
            "items": [{**_group(each)} for each in found.groups], "next": key_text(found.next) if found.next else None, "looked_at": found.looked_at,
            "complete": found.next is None, "depth": found.depth,
        }  # fmt: skip
        return Response(message_shapes.DeadGroups(told).data)


def _group(group: Any) -> dict[str, Any]:
    told = {name: getattr(group, name) for name in ("reason", "origin", "error", "count", "octets")}
    return told | {"first_at": message_shapes.instant(group.first_at), "last_at": message_shapes.instant(group.last_at)}
