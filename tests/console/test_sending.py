"""console.sending: a message leaves with the transaction of the models it belongs to; any project with the broker's database may use it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import DataError, connection, transaction

from console.sending import send

REPOSITORY = Path(__file__).resolve().parents[2]
ELSEWHERE = """
import django
from django.conf import settings
settings.configure(DATABASES={{"default": {{"ENGINE": "django.db.backends.sqlite3"}}, "surety": {{"ENGINE": "django.db.backends.postgresql", **{place}}}}})
django.setup()
from console.sending import send
print(send("/queue/elsewhere", "m", using="surety"))
"""


def sent(columns: str = "body") -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {columns} FROM surety.inbox ORDER BY entry")
        return list(cursor.fetchall())


@pytest.fixture(autouse=True)
def empty_inbox(database: str) -> Iterator[None]:
    yield
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM surety.inbox")


def test_what_is_wrong_is_an_error_of_djangos_and_sends_nothing() -> None:
    with pytest.raises(DataError, match="is not valid"):
        send("/queue/a*", "m")
    with pytest.raises(DataError, match="JSON array"):
        send("/queue/a", "m", {"a": [1]})  # type: ignore[dict-item]
    assert sent() == []


def test_it_leaves_with_the_transaction_or_not_at_all() -> None:
    with transaction.atomic():
        send("/queue/a", "rolled back")
        transaction.set_rollback(True)
    with transaction.atomic():
        send("/queue/a", "kept")
    identifier = send("/queue/a", b"\0at once")
    assert [bytes(body) for (body,) in sent()] == [b"kept", b"\0at once"]
    assert sent("message_id")[-1] == (identifier,)


def test_all_arguments_arrive() -> None:
    how = {"priority": 9, "reliability": "reliable", "correlation_id": "c", "reply_to": "/queue/r", "type": "t", "group_id": "g", "group_sequence": -1}
    send("topic", "m", {"colour": "red", "n": 1}, **how, time_to_live=timedelta(hours=1), delay=timedelta(seconds=1.5), duplicate_id="d")
    ((address, priority, reliability, delay, lasts, name, headers),) = sent(
        "address, priority, reliability, delay, expiration - sent_at, duplicate_id, convert_from(headers, 'UTF8')"
    )
    assert (address, priority, reliability, delay, lasts, name) == ("queue/topic", 9, 3, 1500, 3_600_000, "d")
    lines = set(str(headers).split("\n"))
    assert {"correlation-id:c", "reply-to:/queue/r", "type:t", "JMSXGroupID:g", "JMSXGroupSeq:-1", "colour:red", "n:1"} <= lines


def test_a_project_that_is_not_the_console_needs_only_the_database() -> None:
    place = {name: connection.settings_dict[name] for name in ("NAME", "USER", "HOST", "PORT")}
    done = subprocess.run([sys.executable, "-c", ELSEWHERE.format(place=place)], cwd=REPOSITORY, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert sent("message_id") == [(done.stdout.strip(),)]
