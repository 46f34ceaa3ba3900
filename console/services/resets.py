"""Resets of totals, as operators see them: what they are now is remembered, and what is shown since begins at zero. Nothing is asked of the node."""

from django.db import connection, transaction

from broker_core.control import InvalidRequest
from console.permissions import MANAGE, MANAGE_DESTINATION
from console.selectors.destinations import Destination
from console.selectors.resets import ALL, TOTALS

from .audit import Actor, record, require

WHAT = "reset metrics"
_NAMED = ", ".join(TOTALS)
_NOW = ", ".join(f"coalesce(told.{name}, 0)" for name in TOTALS)
# In the order of the key, so that two who reset at once wait for each other and neither fails.
_REMEMBER = f"""
    INSERT INTO console_totalsreset (destination, of_broker, at, {_NAMED})
    SELECT destination, of_broker, statement_timestamp(), {_NOW} FROM {{of}} ORDER BY destination, of_broker
    ON CONFLICT (destination, of_broker) DO UPDATE SET at = EXCLUDED.at, {", ".join(f"{name} = EXCLUDED.{name}" for name in TOTALS)}"""
# What the node told last. It need not be alive: what it counts when it is back is since the reset.
_ONE = _REMEMBER.format(
    of="""(SELECT %(number)s::int AS destination, false AS of_broker) AS wanted
          LEFT JOIN (SELECT * FROM surety.destination_statistics WHERE shard = 0) AS told USING (destination)"""
)
# Those of destroyed destinations, too, which are in the sums.
_EVERY = _REMEMBER.format(
    of="""(SELECT told.*, destroyed_at FROM surety.destination_statistics told JOIN surety.destination USING (shard, destination) WHERE shard = 0) AS told
          JOIN (VALUES (false), (true)) AS scope (of_broker) ON of_broker OR destroyed_at IS NULL"""
)
_WHOLE = f"""
    INSERT INTO console_totalsreset (destination, of_broker, at, {_NAMED}) VALUES ({ALL}, true, statement_timestamp(), {", ".join("0" * len(TOTALS))})
    ON CONFLICT (destination, of_broker) DO UPDATE SET at = EXCLUDED.at"""
_FORGET = f"""
    DELETE FROM console_totalsreset remembered
     WHERE remembered.destination <> {ALL}
       AND NOT EXISTS (SELECT FROM surety.destination it WHERE it.shard = 0 AND it.destination = remembered.destination AND it.destroyed_at IS NULL)
       AND NOT EXISTS (SELECT FROM surety.destination_statistics told WHERE told.shard = 0 AND told.destination = remembered.destination)"""


def reset(actor: Actor, it: Destination) -> None:
    """Of one destination. Raises PermissionDenied, InvalidRequest."""
    require(actor, MANAGE, WHAT, it.address)
    if it.temporary:
        raise InvalidRequest("a temporary destination has its totals since its connection made it, and they are not reset")
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_ONE, {"number": it.number})
        record(actor.name, actor.origin, WHAT, it.address)


def reset_all(actor: Actor) -> None:
    """Of every destination that lasts, and of the sums. Raises PermissionDenied."""
    require(actor, MANAGE_DESTINATION, WHAT)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_WHOLE)
        cursor.execute(_EVERY)
        record(actor.name, actor.origin, WHAT)


def forget() -> int:
    """What is remembered of destinations that are no more and no longer in the sums; the number of rows."""
    with connection.cursor() as cursor:
        cursor.execute(_FORGET)
        return int(cursor.rowcount)
