"""What the API answers with of messages."""

from collections.abc import Sequence
from typing import Any

from rest_framework import serializers

from broker_core.viewing import LEVEL_NAMES, REASONS_KNOWN, STORED, rendering
from broker_core.viewing.page import STATES, Page, Seen, key_text
from console.instants import instant
from console.services.browsing import View
from console.services.sending import REASON
from console.services.sending import Sent as SentMessage

from .shapes import Boolean, Instant, Integer, Shape, String



class Delivery(Shape):
    """Who has a message, and since when."""

    consumer = Integer(help_text="The consumer's number.")
    connection = Integer(allow_null=True)
    account = String(allow_null=True)
    client_id = String(allow_null=True)
    since = Instant(help_text="To a second.")


class Reservation(Shape):
    """What has acknowledged a message and has not ended."""

    kind = serializers.ChoiceField(("branch", "transaction"))
    number = Integer(help_text="Of the branch, or of the connection whose transaction it is.")
    xid = String(allow_blank=True)


class Dead(Shape):
    """Why a message died."""

    reason = serializers.ChoiceField(REASONS_KNOWN)
    origin = String(allow_null=True, help_text="Where it died: retry sends it back there.")
    at = Instant(allow_null=True)
    comment = String(allow_null=True)
    deliveries = Integer(allow_null=True, help_text="That failed.")


class ListedMessage(Shape):
    key = String(help_text="Names the message in this destination, as long as it is there.")
    message_id = String()
    state = serializers.ChoiceField(STATES)
    priority = Integer()
    persistent = Boolean()
    reliability = serializers.ChoiceField(LEVEL_NAMES)
    protocol = serializers.ChoiceField(("stomp", "amqp"), help_text="By which it was sent.")
    size = Integer(help_text="Octets of headers and body.")
    accepted_at = Instant()
    expires_at = Instant(allow_null=True)
    attempts = Integer(help_text="Deliveries that failed, or 1 if it may have been delivered.")
    redelivered = Boolean()
    delivery = Delivery(allow_null=True)
    due_at = Instant(allow_null=True, help_text="When it may be delivered again.")
    reservation = Reservation(allow_null=True)
    dead = Dead(allow_null=True)


class MessagesPage(Shape):
    """Messages that were found, and how far they were looked for."""

    items = ListedMessage(many=True)
    next = String(allow_null=True, help_text="`after` of the next page. Null: everything was looked at.")
    looked_at = Integer(help_text="Messages that this page has looked at.")
    complete = Boolean(help_text="Everything from `after` on was looked at.")
    depth = Integer(help_text="How many there are.")


class MessageBody(Shape):
    kind = serializers.ChoiceField(rendering.KINDS, help_text="A JSON object is a map. unknown: it is gone.")
    content_type = String(allow_blank=True, help_text="As its sender stated it, or as its conversion makes it.")
    size = Integer()
    text = String(allow_null=True, allow_blank=True)
    value = serializers.JSONField(allow_null=True, help_text="What JSON says, if all of it is shown.")
    hex = String(allow_null=True, help_text="The first octets of what is no text.")
    truncated = Boolean(help_text="There is more: get it from .../body.")


class ShownMessage(ListedMessage):
    headers = serializers.DictField(child=String(allow_blank=True), help_text="By STOMP's names.")
    properties = serializers.DictField(help_text="Of the application, with their types.")
    added = serializers.DictField(help_text="By the broker.")
    body = MessageBody(allow_null=True, help_text="Null: you may not read bodies here.")


class DeadGroup(Shape):
    reason = String(allow_blank=True, help_text="Empty: it was sent here and did not die.")
    origin = String(allow_blank=True)
    error = String(allow_blank=True, help_text="The sentence that says why, or its first 200 characters.")
    count = Integer()
    octets = Integer()
    first_at = Instant(help_text="When the first of them died.")
    last_at = Instant()


class DeadGroups(Shape):
    """Of as many as one look goes through: `next` goes on, and the counts are to be added."""

    items = DeadGroup(many=True)
    next = String(allow_null=True)
    looked_at = Integer()
    complete = Boolean()
    depth = Integer()


class Sent(Shape):
    message_id = String(help_text="Of the first.")
    message_ids = serializers.ListField(child=String(), help_text="Of all that were sent, in the order in which they are due.")
    first_due_at = Instant(allow_null=True, help_text="Null: at once.")
    last_due_at = Instant(allow_null=True)


class Imported(Shape):
    sent = Integer()


# -- from what services answer ------------------------------------------------------------------------------------------------------------
def all_sent(sent: Sequence[SentMessage]) -> dict[str, Any]:
    identifiers = [each.message_id for each in sent]
    return {"message_id": identifiers[0], "message_ids": identifiers, "first_due_at": instant(sent[0].due_at), "last_due_at": instant(sent[-1].due_at)}


def listed(seen: Seen, added: dict[str, Any]) -> dict[str, Any]:
    message, header, holder = seen.message, seen.message.header, seen.holder or {}
    reserved = seen.reserved_by
    return {
        "key": seen.key, "message_id": seen.identity, "state": seen.state, "priority": int(header.priority), "persistent": header.reliability >= STORED,
        "reliability": LEVEL_NAMES[header.reliability], "protocol": "amqp" if header.encoding else "stomp", "size": message.size,
        "accepted_at": instant(message.accepted_at), "expires_at": instant(header.expiration or None), "attempts": seen.attempts,
        "redelivered": message.redelivered, "due_at": instant(seen.due_at),
        "delivery": None if seen.link is None else {
            "consumer": seen.link, "connection": holder.get("peer"), "account": holder.get("account"), "client_id": holder.get("client_id"),
            "since": instant(seen.since),
        },
        "reservation": None if reserved is None else {"kind": reserved[0], "number": reserved[1], "xid": reserved[2]},
        "dead": _dead(added),
    }  # fmt: skip


def _dead(added: dict[str, Any]) -> dict[str, Any] | None:
    reason = added.get(REASON)
    if reason not in REASONS_KNOWN:
        return None
    return {
        "reason": reason, "origin": added.get("original-destination"), "at": instant(added.get("JMS_SUN_DMQ_UNDELIVERED_TIMESTAMP")),
        "comment": added.get("JMS_SUN_DMQ_UNDELIVERED_COMMENT"), "deliveries": added.get("JMS_SUN_DMQ_DELIVERY_COUNT"),
    }  # fmt: skip


def page_of_messages(found: Page) -> dict[str, Any]:
    return {
        "items": [listed(seen, rendering.added_of(seen.message)) for seen in found.seen], "next": key_text(found.next) if found.next else None,
        "looked_at": found.looked_at, "complete": found.complete, "depth": found.depth,
    }  # fmt: skip


def whole_message(view: View) -> dict[str, Any]:
    return {**listed(view.seen, dict(view.added)), "headers": view.headers, "properties": view.properties, "added": view.added, "body": view.body}
