"""Samples of the node's counters, noted again and again, from which charts are drawn. They come from what the node writes anyway: it is asked for nothing.

A span has samples so far apart, and they are deleted when it is over: the table is bounded, whatever there is to note.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection, transaction
from django.utils import timezone

ALL = 0
"""Stands for the sums over all destinations."""
DESTINATIONS_MAX = 1_000
"""In one sample; those that changed last. With three spans of 60 samples each: 180,000 rows at most."""


@dataclass(slots=True, frozen=True)
class Span:
    number: int
    """As the table has it."""
    name: str
    seconds: int
    step_seconds: int
    """Between samples of the sums."""
    destination_step_seconds: int
    """Between those of a destination."""


SPANS = (Span(0, "15 min", 900, 5, 15), Span(1, "3 h", 10_800, 60, 180), Span(2, "24 h", 86_400, 480, 1_440))

# Only what was written under the lease that is held now, by a node that is alive: nothing is noted of what nobody knows.
_HOLDER = """
    WITH holder AS (
        SELECT acquired_at FROM surety.lease
         WHERE shard = 0 AND holder_pid IS NOT NULL AND heartbeat_at >= clock_timestamp() - interval '5 seconds'),
    counted AS (
        SELECT statistics.* FROM holder CROSS JOIN surety.destination_statistics statistics
         WHERE shard = 0 AND destination > 0 AND statistics.at >= acquired_at)
    INSERT INTO console_sample (destination, span, at, depth, unsettled, accepted, settled, dead)
"""
_SUMS = f"""{_HOLDER}
    SELECT {ALL}, %(span)s, %(now)s, coalesce(sum(depth), 0), coalesce(sum(unsettled), 0), coalesce(sum(accepted_total), 0),
           coalesce(sum(settled_total), 0), coalesce(sum(dead_total), 0)
      FROM counted HAVING EXISTS (SELECT FROM holder)
    ON CONFLICT DO NOTHING"""
_CHANGED = f"""{_HOLDER}
    SELECT destination, %(span)s, %(now)s, depth, unsettled, accepted_total, settled_total, dead_total
      FROM counted WHERE at >= %(since)s ORDER BY at DESC LIMIT {DESTINATIONS_MAX}
    ON CONFLICT DO NOTHING"""


def sample(now: datetime | None = None) -> int:
    """Note what is due; the number of samples noted. Some ms."""
    now = now or timezone.now()
    noted = 0
    for span in SPANS:
        with transaction.atomic(), connection.cursor() as cursor:
            for step, statement in ((span.step_seconds, _SUMS), (span.destination_step_seconds, _CHANGED)):
                begun = _begun(now, step)
                if now - begun < timedelta(seconds=SPANS[0].step_seconds):
                    # Twice as far back as the last sample: what came to rest is noted once more, at rest.
                    since = begun - timedelta(seconds=2 * step)
                    cursor.execute(statement, {"span": span.number, "now": begun, "since": since})
                    noted += cursor.rowcount
            if now - _begun(now, span.destination_step_seconds) < timedelta(seconds=SPANS[0].step_seconds):
                # One step longer than is shown, so that the first point of a chart has one before it.
                old = now - timedelta(seconds=span.seconds + 2 * span.destination_step_seconds)
                cursor.execute("DELETE FROM console_sample WHERE span = %(span)s AND at < %(old)s", {"span": span.number, "old": old})
    return noted


def _begun(now: datetime, step_seconds: int) -> datetime:
    """When the present step began: samples of one step are noted once, whoever notes them."""
    return datetime.fromtimestamp(now.timestamp() // step_seconds * step_seconds, now.tzinfo)
