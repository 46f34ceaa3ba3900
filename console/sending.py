"""Sending with Django: a message that leaves with the transaction of the models it belongs to, or not at all (docs/semantics.md, "Sending from SQL").

    from django.db import transaction
    from console.sending import send

    with transaction.atomic(using="surety"):
        order.save(using="surety")
        send("/queue/orders", json.dumps({"order": order.pk}), using="surety")

It needs nothing of the console: any project may use it that has the broker's database among its DATABASES. With tables elsewhere there is no common
transaction, and a message sent here is one of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.db import connections


def send(
    address: str,
    body: str | bytes = "",
    headers: Mapping[str, str | int | float | bool] | None = None,
    *,
    priority: int = 4,
    reliability: str = "assured",
    time_to_live: timedelta | None = None,
    delay: timedelta | None = None,
    correlation_id: str | None = None,
    reply_to: str | None = None,
    type: str | None = None,  # noqa: A002 - as the header and the function in SQL are called
    group_id: str | None = None,
    group_sequence: int | None = None,
    duplicate_id: str | None = None,
    using: str = "default",
) -> str:
    """Send as part of the transaction that is open on the connection `using`; in autocommit mode at once. Returns the message's identifier.

    A text says in `content-type` that it is one. `reliability`: best-effort, express, reliable-np, reliable or assured; `group_sequence` -1 ends the group.
    Raises django.db.DataError for what is wrong with an argument, OperationalError for what is too large, ProgrammingError for who may not send.
    """
    named: dict[str, Any] = {
        "priority": priority, "reliability": reliability, "time_to_live": time_to_live, "delay": delay, "correlation_id": correlation_id,
        "reply_to": reply_to, "type": type, "group_id": group_id, "group_sequence": group_sequence, "duplicate_id": duplicate_id,
    }  # fmt: skip
    given = {name: value for name, value in named.items() if value is not None}
    form = "bytea" if isinstance(body, bytes) else "text"
    arguments = ", ".join(["%s", f"%s::{form}", "%s::jsonb", *(f"{name} => %s" for name in given)])
    with connections[using].cursor() as cursor:
        cursor.execute(f"SELECT surety.send({arguments})", [address, body, json.dumps(dict(headers or {})), *given.values()])
        (identifier,) = cursor.fetchone()
    return str(identifier)
