"""What the schedule does. Like an operator it asks the node through control requests (R22); only what no node keeps it removes itself.

Everything here may be lost, repeated or run twice at once without harm.
"""

from django.db import connection, transaction

from broker_core import control

SCHEDULER = "scheduler"
"""Who asks, in the request's row."""
REQUESTS_KEPT = "1 day"
"""Answered requests of the schedule are of no interest afterwards; about 15,000 rows. Those of operators stay."""


def file_request(verb: str) -> int | None:
    """Ask the node for `verb`; the request's number. None: an earlier one still waits, so that none pile up while no node serves."""
    with transaction.atomic(), connection.cursor() as cursor:
        if control.pending(cursor, verb):
            return None
        return control.request(cursor, verb, requested_by=SCHEDULER)


def purge_spent() -> int:
    """Delete what Celery's transport has delivered (it only marks rows invisible) and old requests of the schedule; the number of rows."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM kombu_message WHERE NOT visible")
        spent = cursor.rowcount
        cursor.execute(
            "DELETE FROM surety.control_request WHERE requested_by = %(scheduler)s AND created_at < clock_timestamp() - %(kept)s::interval"
            " AND (answered_at IS NOT NULL OR deadline < extract(epoch FROM clock_timestamp()) * 1000)",
            {"scheduler": SCHEDULER, "kept": REQUESTS_KEPT},
        )
        return int(spent + cursor.rowcount)
