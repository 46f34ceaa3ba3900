"""Messages of the archive that operators have sent again: asked for with the audit's row in one transaction, done by a process of the data pipeline."""

from dataclasses import asdict
from pathlib import Path

from django.conf import settings
from django.db import connection, transaction

from broker_core.pipeline import replays
from broker_core.pipeline.replays import InvalidReplay, Wanted
from console.launch import spark
from console.permissions import BROWSE_BODIES, SEND
from console.selectors import pipeline

from .audit import Actor, record, require


def ask(actor: Actor, wanted: Wanted) -> int:
    """Have it begun; its number. The same as one that was asked for and is not over goes on. Raises PermissionDenied, InvalidReplay."""
    replays.check(wanted)
    into = wanted.into or wanted.address
    require(actor, BROWSE_BODIES, "replay", wanted.address)
    require(actor, SEND, "replay", wanted.address, over=into)
    if problem := pipeline.problem():
        raise InvalidReplay("", problem)
    with transaction.atomic(), connection.cursor() as cursor:
        number = replays.ask(cursor, wanted, actor.name)
        told = {name: value for name, value in asdict(wanted).items() if value} | {"into": into, "replay": number}
        told |= {name: told[name].isoformat() for name in ("accepted_from", "accepted_to") if name in told}
        record(actor.name, actor.origin, "replay", wanted.address, told)
    spark.begin_replay(_log(), number, actor.name)
    return number


def cancel(actor: Actor, replay: pipeline.Replay) -> bool:
    """It sends nothing more; what it has sent stays. False: it is over. Raises PermissionDenied."""
    require(actor, SEND, "cancel a replay", replay.address, over=replay.into)
    with transaction.atomic(), connection.cursor() as cursor:
        done = replays.cancel(cursor, replay.number, is_dead=replay.state == replays.FAILED)
        record(actor.name, actor.origin, "cancel a replay", replay.address, {"replay": replay.number}, result={"cancelled": done})
    return done


def _log() -> Path:
    return Path(settings.BROKER.home) / "log" / "pipeline.log"
