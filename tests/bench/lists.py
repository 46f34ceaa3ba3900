"""How long operators wait for lists of 10,000 destinations: `python -m tests.bench.lists [destinations]`.

Fills the tables as a node would have left them and calls the REST API as its clients do, login and JSON included. Prints the median and the 95th percentile of
each list, and the processor time of the console's process in it.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from statistics import median, quantiles
from unittest.mock import patch

import django
from django.conf import settings

DESTINATIONS, CALLS = 10_000, 60
LISTS = (
    "destinations?limit=1000", "destinations?limit=1000&sort=depth", "destinations?limit=1000&search=orders.77", "destinations", "subscriptions?limit=1000",
    "totals", "nodes",
)  # fmt: skip
FILL = (
    """INSERT INTO surety.destination (shard, destination, address, created_at, automatic, state, settings)
       SELECT 0, n, CASE WHEN n %% 4 = 0 THEN 'topic/' ELSE 'queue/' END || 'shop.orders.' || n, 0, n %% 3 = 0, 0,
              '{"max_messages": 100000, "limit_behavior": "REJECT_NEWEST", "redelivery_max": 5}' FROM generate_series(100, 99 + %(count)s) AS n""",
    """INSERT INTO surety.destination_statistics (shard, destination, address, depth, octets, consumers, unsettled, accepted_total, settled_total, dead_total,
              expired_total, redelivered_total, scheduled, scheduled_octets, oldest_at, state, at)
       SELECT 0, destination, address, destination * 7919 % 5000, 100000, 3, 17, 1000000, 900000, 12, 34, 56, 0, 0, 1700000000000, 0, clock_timestamp()
         FROM surety.destination WHERE destination >= 100""",
    """INSERT INTO surety.subscription (shard, subscription, destination, name, client_id, shared, selector, no_local, account)
       SELECT 0, destination + 20000, destination, 'prices', 'client' || destination, false, '', false, 'guest'
         FROM surety.destination WHERE address LIKE 'topic/%' AND destination >= 100""",
    "ANALYZE",
)


def main(count: int) -> None:
    from tests.support.postgres import Server

    server = Server()
    server.start()
    try:
        _measure(server, count)
    finally:
        server.stop()


def _measure(server: object, count: int) -> None:
    import psycopg
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from django.db import connection
    from django.test import Client

    from tests.console import facts

    server.execute("CREATE DATABASE lists")  # type: ignore[attr-defined]
    connection.settings_dict |= {"NAME": "lists", "USER": "postgres", "HOST": str(server.sockets), "PORT": "", "OPTIONS": {}}  # type: ignore[attr-defined]
    dsn = server.dsn("lists")  # type: ignore[attr-defined]
    settings.BROKER = replace(settings.BROKER, database_url=f"postgresql://postgres@/lists?host={server.sockets}")  # type: ignore[attr-defined]
    settings.ADMIN_USER, settings.ADMIN_PASSWORD = "olga", "correct horse 9"
    call_command("migrate", interactive=False, verbosity=0)
    facts.lease(dsn, heartbeat_seconds=-3600)
    facts.status(dsn, seconds=-3600)
    with psycopg.connect(dsn, autocommit=True) as session:
        for statement in FILL:
            session.execute(statement.encode(), {"count": count} if "%(count)s" in statement else None)
    import console.asgi  # noqa: F401 - what the web process does at its start

    client = Client()
    client.force_login(User.objects.get(username="olga"))
    for path in LISTS:
        took, used, found = [], [], 0
        for _ in range(CALLS):
            began, worked = time.perf_counter(), time.process_time()
            response = client.get(f"/api/v1/{path}")
            took.append((time.perf_counter() - began) * 1000)
            used.append((time.process_time() - worked) * 1000)
            assert response.status_code == 200, response.content
            document = response.json()
            found = len(document["items"] if isinstance(document, dict) and "items" in document else document)
        waited = f"median {median(took):6.1f} ms   p95 {quantiles(took, n=20)[-1]:6.1f} ms"
        print(f"{path:44} {waited}   of the processor {median(used):6.1f} ms   {found} rows", flush=True)
    facts.release()


if __name__ == "__main__":
    with patch.dict(os.environ, {"DJANGO_SETTINGS_MODULE": "console.settings", "SURETY_SECRET_KEY": "only for this", "DATABASE_URL": "postgresql://nobody@/none"}):
        django.setup()
    settings.ALLOWED_HOSTS = ["testserver"]
    main(int(sys.argv[1]) if len(sys.argv) > 1 else DESTINATIONS)
