"""Messages that operators send: into the inbox of the broker, in one transaction with the audit (R17). So they are sent once, or not at all."""

import json
import time
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from django.db import DataError, OperationalError, transaction

from broker_core.viewing import LEVEL_NAMES, STORED, StoredBody, rendering
from broker_core.viewing.page import Key
from console.permissions import BROWSE_BODIES, SEND
from console.selectors.rows import rows
from console.sending import send as send_by_sql

from . import browsing
from .audit import Actor, record, require
from .repeating import ONCE, Repetition, lags

RESENT_OCTETS_MAX = 8 << 20
"""Of a body that is sent again: it goes through the console's memory. The operation `copy` has no such bound."""
LINES_MAX = 10_000
LINES_OCTETS_MAX = 8 << 20
COPIES_OCTETS_MAX = LINES_OCTETS_MAX
"""Of all copies that one call sends, as of all lines: it is one transaction."""
ERRORS_MAX = 100
TYPES = "property-types"
NAMED = {"correlation-id": "correlation_id", "reply-to": "reply_to", "type": "type", "JMSXGroupID": "group_id"}
"""Headers of a message, and what they are called here."""
REASON, ITS_EXPIRATION = "JMS_SUN_DMQ_UNDELIVERED_REASON", "original-expiration"
"""What the broker has added to a dead message, the latter if its sender gave it an end."""
TTL_MS_MAX = 10 * 365 * 86_400_000
"""Ten years."""
TOO_LARGE = "54000"


class InvalidMessage(ValueError):
    """It cannot be sent like this; the message is a sentence that says why."""


class InvalidLines(InvalidMessage):
    """Of what was to be imported. Nothing of it was sent."""

    def __init__(self, errors: Sequence[tuple[int, str]]) -> None:
        super().__init__(f"{len(errors)} lines cannot be sent, and so none was: line {errors[0][0]}: {errors[0][1]}")
        self.errors = errors


@dataclass(slots=True, frozen=True)
class Outgoing:
    body: bytes = b""
    properties: Mapping[str, Any] = field(default_factory=dict)
    """With their types: strings, numbers, booleans."""
    content_type: str = ""
    content_encoding: str = ""
    priority: int = 4
    reliability: str = "assured"
    ttl_ms: int | None = None
    delay_ms: int | None = None
    correlation_id: str | None = None
    reply_to: str | None = None
    type: str | None = None
    group_id: str | None = None
    group_sequence: int | None = None
    duplicate_id: str | None = None


@dataclass(slots=True, frozen=True)
class Sent:
    message_id: str
    due_at: int | None
    """In ms, by the database's clock; None: it is not delayed."""


def send(actor: Actor, address: str, outgoing: Outgoing, *, again: str = "", asked: Repetition = ONCE) -> list[Sent]:
    """One message, or all that are asked for in the order in which they are due: all of them, or none. `again`: identifier of the message that it is a copy of.
    Raises PermissionDenied, InvalidMessage, InvalidRepetition."""
    require(actor, SEND, "send", address)
    with transaction.atomic():
        sent = _send_copies(address, outgoing, asked)
        told = {"message": sent[0].message_id} | ({"from": again} if again else {}) | asked.told
        record(actor.name, actor.origin, "send", address, told, result={"sent": len(sent)} if len(sent) > 1 else None)
    return sent


def _send_copies(address: str, outgoing: Outgoing, asked: Repetition) -> list[Sent]:
    """Instants count from the beginning of the call, however long it takes to send the ones before."""
    delay, ttl = outgoing.delay_ms or 0, outgoing.ttl_ms
    (clock,) = rows("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8 AS ms")
    began, now = time.monotonic(), clock["ms"]
    waits = lags(asked, delay, now)
    _check_copies(outgoing, len(waits) * asked.count)
    sent = []
    for lag in waits:
        wait = delay + lag
        for _ in range(asked.count):
            left = max(wait - int((time.monotonic() - began) * 1000), 0)
            copy = replace(outgoing, delay_ms=left or None, ttl_ms=None if ttl is None else ttl + lag)
            sent.append(Sent(_send(address, copy), now + wait if wait else None))
    return sent


def _check_copies(outgoing: Outgoing, count: int) -> None:
    """Raises InvalidMessage."""
    if count == 1:
        return
    if outgoing.duplicate_id is not None:
        raise InvalidMessage("of messages with one duplicate_id all but the first are dropped: leave it out to send several")
    texts = [outgoing.content_type, outgoing.content_encoding, *(getattr(outgoing, name) for name in NAMED.values()), json.dumps(dict(outgoing.properties))]
    octets = len(outgoing.body) + sum(len(text.encode()) for text in texts if text)
    if count * octets > COPIES_OCTETS_MAX:
        raise InvalidMessage(f"{count:,} messages of {octets:,} octets each are more than the {COPIES_OCTETS_MAX:,} octets that one call sends")


def _send(address: str, outgoing: Outgoing) -> str:
    headers: dict[str, Any] = {**outgoing.properties}
    if types := _types(outgoing.properties):
        headers[TYPES] = types
    if outgoing.content_type:
        headers["content-type"] = outgoing.content_type
    if outgoing.content_encoding:
        headers["content-encoding"] = outgoing.content_encoding
    try:
        with transaction.atomic():
            return send_by_sql(
                f"/{address}", outgoing.body, headers, priority=outgoing.priority, reliability=outgoing.reliability,
                time_to_live=_ms(outgoing.ttl_ms), delay=_ms(outgoing.delay_ms), correlation_id=outgoing.correlation_id, reply_to=outgoing.reply_to,
                type=outgoing.type, group_id=outgoing.group_id, group_sequence=outgoing.group_sequence, duplicate_id=outgoing.duplicate_id,
            )  # fmt: skip
    except DataError as error:
        raise InvalidMessage(_first_line(error)) from error
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", "") != TOO_LARGE:
            raise
        raise InvalidMessage(_first_line(error)) from error


def _types(properties: Mapping[str, Any]) -> str:
    """What consumers need to have numbers and booleans as such: `count=int,urgent=bool`."""
    kinds = {bool: "bool", int: "int", float: "float"}
    told = [f"{name}={kinds[value.__class__]}" for name, value in properties.items() if value.__class__ in kinds and not any(mark in name for mark in ",=")]
    return ",".join(told)


def _ms(milliseconds: int | None) -> timedelta | None:
    return None if milliseconds is None else timedelta(milliseconds=milliseconds)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


# -- again --------------------------------------------------------------------------------------------------------------------------------
@dataclass(slots=True, frozen=True)
class Source:
    """A message that is there."""

    address: str
    key: Key
    subscription: int | None = None


def send_again(actor: Actor, address: str, source: Source, changes: Mapping[str, Any], *, asked: Repetition = ONCE) -> list[Sent]:
    """A message once more, or as often as it is asked for, with these changes; it stays where it is. Raises PermissionDenied, browsing.NoMessage,
    InvalidMessage, InvalidRepetition, NodeSilent, Declined."""
    require(actor, SEND, "send", address)
    require(actor, BROWSE_BODIES, "send", source.address)
    outgoing, identifier = _copied(actor, source)
    return send(actor, address, _changed(outgoing, changes), again=identifier, asked=asked)


def _copied(actor: Actor, source: Source) -> tuple[Outgoing, str]:
    seen = browsing.found(actor, source.address, source.key, source.subscription)
    content = rendering.content_of(seen.message)
    if content is None:
        raise browsing.NoMessage("The message has no body any more.")
    if content.size > RESENT_OCTETS_MAX:
        raise InvalidMessage(f"the body has {content.size} octets: copy the message instead, {RESENT_OCTETS_MAX} can be sent again")
    return outgoing_of(seen, content), seen.identity


def outgoing_of(seen: Any, content: rendering.Content) -> Outgoing:
    headers, properties, _ = rendering.headers_of(seen.message)
    header = seen.message.header
    octets = content.beginning + (b"".join(browsing.chunks(content.body)) if isinstance(content.body, StoredBody) else content.body)
    given = {ours: headers[name] for name, ours in NAMED.items() if headers.get(name)}
    sequence = headers.get("JMSXGroupSeq", "")
    return Outgoing(
        octets, {name: value for name, value in properties.items() if value is not None}, content.content_type, priority=int(header.priority),
        reliability=LEVEL_NAMES[header.reliability], content_encoding=headers.get("content-encoding", ""), ttl_ms=ttl_left(seen.message),
        group_sequence=int(sequence) if sequence.lstrip("-").isdigit() and "group_id" in given else None, **given,
    )  # fmt: skip


def ttl_left(message: Any) -> int | None:
    """In ms; None: it never expires. A dead message has what its sender gave it, if that has not passed, and not what the dead message queue did."""
    added = rendering.added_of(message)
    ends = added.get(ITS_EXPIRATION, 0) if REASON in added else message.header.expiration
    left = ends - time.time_ns() // 1_000_000
    if not ends or (REASON in added and left <= 0):
        return None
    return min(max(left, 1), TTL_MS_MAX)


def _changed(outgoing: Outgoing, changes: Mapping[str, Any]) -> Outgoing:
    """What is named is in place of what was; properties are changed one by one, None takes one away."""
    given = dict(changes)
    if "properties" in given:
        merged = {**outgoing.properties, **given["properties"]}
        given["properties"] = {name: value for name, value in merged.items() if value is not None}
    return replace(outgoing, **given)


# -- many -------------------------------------------------------------------------------------------------------------------------------
def send_all(actor: Actor, address: str, lines: Iterable[tuple[int, Outgoing]]) -> int:
    """All of them or, if one cannot be sent, none. `lines`: with their numbers. Raises PermissionDenied, InvalidLines."""
    require(actor, SEND, "import", address)
    sent, errors = 0, []
    with transaction.atomic():
        for number, outgoing in lines:
            try:
                _send(address, outgoing)
                sent += 1
            except InvalidMessage as error:
                errors.append((number, str(error)))
                if len(errors) >= ERRORS_MAX:
                    break
        if errors:
            transaction.set_rollback(True)
        else:
            record(actor.name, actor.origin, "import", address, result={"sent": sent})
    if errors:
        raise InvalidLines(errors)
    return sent


def level_of(reliability: str | None, persistent: bool | None) -> str | None:
    """What is asked for; persistent means assured (R23)."""
    if reliability:
        return reliability
    return None if persistent is None else "assured" if persistent else "express"


def is_persistent(reliability: str) -> bool:
    return LEVEL_NAMES.index(reliability) >= STORED


def as_line(view: Any, content: rendering.Content) -> str:
    """A message as one line of JSON, from which it can be imported."""
    outgoing = outgoing_of(view, content)
    told: dict[str, Any] = {
        "key": view.key, "message_id": view.identity, "accepted_at": view.message.accepted_at, "priority": outgoing.priority,
        "reliability": outgoing.reliability, "properties": dict(outgoing.properties), "content_type": outgoing.content_type,
    }  # fmt: skip
    if outgoing.content_encoding:
        told["content_encoding"] = outgoing.content_encoding
    for name in (*NAMED.values(), "group_sequence", "ttl_ms"):
        if (value := getattr(outgoing, name)) is not None:
            told[name] = value
    if view.message.header.annotations:
        told["added"] = json.loads(view.message.header.annotations)
    return json.dumps(told | _body(outgoing.body), ensure_ascii=False)


def _body(octets: bytes) -> dict[str, str]:
    try:
        return {"text": octets.decode()}
    except UnicodeDecodeError:
        return {"base64": b64encode(octets).decode()}
