"""How long operators wait for a page of a deep queue: `python -m tests.bench.deep_queue [rows]`, five millions unless it is said.

Fills the store's tables as a node would have left them (the rows by generate_series), starts a node over them and calls the REST API as its clients do.
Prints the median and the 95th percentile of each kind of page, and how far a filtered one looked."""

from __future__ import annotations

import os
import sys
import time
from random import Random
from statistics import median, quantiles
from unittest.mock import patch

import django
from django.conf import settings

ROWS, SEGMENT_ROWS, CALLS = 5_000_000, 500_000, 60
FILL = """
INSERT INTO surety.message_0_{segment} (sequence, position, accepted_at, expiration, destination, size, priority, reliability, encoding, headers, body)
SELECT n + 10, n, {now} - ({rows} - n), 0, {destination}, octet_length(headers) + octet_length(body), 4, 4, 0, headers, body
FROM (SELECT n,
             convert_to(E'destination:/queue/deep\\ncontent-type:application/json\\ncolour:c' || n % 1000 || E'\\ncustomer:' || n % 50000, 'UTF8') AS headers,
             convert_to('{{"order": {{"id": ' || n || ', "customer": "customer ' || n % 50000 || '"}}, "text": "' || repeat('lorem ipsum ', 12) || '"}}',
                        'UTF8') AS body
      FROM generate_series({first}::int8, {last}::int8) AS n) AS made
"""
PAGES = {
    "first page": "limit=100", "newest first": "limit=100&order=newest", "from anywhere": "limit=100&after=4-{anywhere}",
    "by selector, 1 in 1000": "selector=colour%3D'c7'", "by selector, from anywhere": "selector=colour%3D'c7'&after=4-{anywhere}",
    "the last ones by selector": "selector=colour%3D'c7'&order=newest", "by selector, none": "selector=colour%3D'none'",
    "by number, none": "selector=customer%20%3E%20999999", "by text, none": "text=nothing%20says%20this",
    "by JSON path, none": "json_path=order.customer&json_value=nobody",
}  # fmt: skip


def main(rows: int) -> None:
    from tests.support.postgres import Server

    server = Server()
    server.start()
    try:
        _measure(server, rows)
    finally:
        server.stop()


def _measure(server: object, rows: int) -> None:
    from django.contrib.auth.models import User
    from django.core.management import call_command
    from django.db import connection
    from django.test import Client
    from dataclasses import replace

    from broker_core.engine import commands as c
    from tests.console.store_node import StoreNode

    server.execute("CREATE DATABASE deep")  # type: ignore[attr-defined]
    connection.settings_dict |= {"NAME": "deep", "USER": "postgres", "HOST": str(server.sockets), "PORT": "", "OPTIONS": {}}  # type: ignore[attr-defined]
    settings.BROKER = replace(settings.BROKER, database_url=f"postgresql://postgres@/deep?host={server.sockets}")  # type: ignore[attr-defined]
    settings.ADMIN_USER, settings.ADMIN_PASSWORD = "olga", "correct horse 9"
    call_command("migrate", interactive=False, verbosity=0)
    dsn = server.dsn("deep")  # type: ignore[attr-defined]
    with StoreNode(dsn, clears=False) as node:
        node.does(c.Control(1, "create", "queue/deep"))
        number, now = node.number("queue/deep"), node.now
        node.passes(2000)
    began = time.monotonic()
    _fill(dsn, rows, number, now)
    print(f"{rows} rows in {time.monotonic() - began:.0f} s", flush=True)
    client, chance = Client(), Random(1)
    client.force_login(User.objects.get(username="olga"))
    with StoreNode(dsn, clears=False) as node:
        assert node.depth("queue/deep") == rows, node.depth("queue/deep")
        for name, query in PAGES.items():
            took, looked, found = [], [], []
            for _ in range(CALLS):
                path = f"/api/v1/destinations/{number}/messages?{query.format(anywhere=chance.randrange(rows))}"
                began = time.perf_counter()
                response = client.get(path)
                took.append((time.perf_counter() - began) * 1000)
                assert response.status_code == 200, response.content
                looked.append(response.json()["looked_at"])
                found.append(len(response.json()["items"]))
            waited = f"median {median(took):6.1f} ms   p95 {quantiles(took, n=20)[-1]:6.1f} ms"
            print(f"{name:28} {waited}   looked at {median(looked):9.0f}   found {median(found):4.0f}", flush=True)


def _fill(dsn: str, rows: int, destination: int, now: int) -> None:
    import psycopg

    from broker_core.store.segments import _create, message_table

    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SET synchronous_commit = off; SET max_parallel_workers_per_gather = 0")
        first = 0
        segment = 1
        connection.execute("DELETE FROM surety.segment WHERE segment > 1")
        made = connection.execute("SELECT oid::regclass::text FROM pg_class WHERE relname ~ '^message_0_([2-9]|1[0-9])$' AND relkind = 'r'").fetchall()
        for (table,) in made:  # by the node, ahead of need
            connection.execute(f"DROP TABLE {table}")
        while first < rows:
            last = min(first + SEGMENT_ROWS, rows) - 1
            if segment > 1:
                connection.execute(_create(message_table(0, segment), False))
                connection.execute("INSERT INTO surety.segment (shard, segment) VALUES (0, %s)", [segment])
            connection.execute(FILL.format(segment=segment, now=now, rows=rows, destination=destination, first=first, last=last))
            connection.execute(f"VACUUM (FREEZE, INDEX_CLEANUP off) {message_table(0, segment)}")
            connection.execute(
                "UPDATE surety.segment SET last_sequence = %s, destinations = %s, lanes = '{4}', firsts = %s, lasts = %s, closed_at = now() WHERE segment = %s",
                [last + 10, [destination], [first], [last], segment],
            )
            first, segment = last + 1, segment + 1
        connection.execute(_create(message_table(0, segment), False))
        connection.execute("INSERT INTO surety.segment (shard, segment) VALUES (0, %s)", [segment])
        connection.execute("INSERT INTO surety.lane VALUES (0, %s, 4, %s, NULL, NULL)", [destination, rows])
        connection.execute("UPDATE surety.checkpoint SET sequence = %s, segment = %s, segment_rows = 0, segment_octets = 0", [rows + 10, segment])
        connection.execute("CHECKPOINT")


if __name__ == "__main__":
    with patch.dict(os.environ, {"DJANGO_SETTINGS_MODULE": "console.settings", "SURETY_SECRET_KEY": "only for this", "DATABASE_URL": "postgresql://nobody@/none"}):
        django.setup()
    settings.ALLOWED_HOSTS = ["testserver"]
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS)
