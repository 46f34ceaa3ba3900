"""The Celery app of the tasks worker and of beat: Django loaded, one queue, a fixed schedule. The logic is in console.services.scheduled.

A task message that is lost, or comes twice, does no harm (R22): the next one comes soon, and each run looks at what there is to do.
"""

import os

from celery import Celery

from broker_core.config import BrokerConfig
from broker_core.transport import TASKS_QUEUE, create_app

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")

EXPIRE_SECONDS = 10
"""A stored message that no consumer reaches leaves at most this long after its expiration (consumers never see it at all)."""
REAP_SECONDS = 30
"""A quarter of the shortest wait that an unused destination has by default."""
RETAIN_SECONDS = LEDGER_SECONDS = PURGE_SECONDS = 60
"""Days are counted in minutes: once a minute is often enough."""
FORGET_SECONDS = 3600
"""A table is scanned for it (services.scheduled.forget)."""
SCHEDULE = {
    "expire": EXPIRE_SECONDS,
    "reap": REAP_SECONDS,
    "retain": RETAIN_SECONDS,
    "ledger": LEDGER_SECONDS,
    "purge_spent": PURGE_SECONDS,
    "forget": FORGET_SECONDS,
}

app: Celery = create_app(BrokerConfig.from_env(), "console", TASKS_QUEUE, fixups=["celery.fixups.django:fixup"])
app.conf.beat_schedule = {
    # A message that waited longer than its interval is superseded by the next one.
    name: {"task": f"console.{name}", "schedule": seconds, "options": {"expires": seconds}}
    for name, seconds in SCHEDULE.items()
}


@app.task(name="console.expire")
def expire() -> None:
    from console.services import scheduled

    scheduled.file_request("expire")


@app.task(name="console.reap")
def reap() -> None:
    from console.services import scheduled

    scheduled.file_request("reap")


@app.task(name="console.retain")
def retain() -> None:
    from console.services import scheduled

    scheduled.file_request("retain")


@app.task(name="console.ledger")
def ledger() -> None:
    from console.services import scheduled

    scheduled.file_request("ledger")


@app.task(name="console.purge_spent")
def purge_spent() -> None:
    from console.services import scheduled

    scheduled.purge_spent()


@app.task(name="console.forget")
def forget() -> None:
    from django.conf import settings

    from console.services import scheduled

    scheduled.forget(settings.BROKER.audit_retention_days)
