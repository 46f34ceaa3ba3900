"""The Celery app of the tasks worker and of beat: Django loaded, one queue. The schedule is in the database, where administrators change it
(console.services.schedule); beat reads it there, by django-celery-beat.

A task message that is lost, or comes twice, does no harm (R22): the next one comes soon, and each run looks at what there is to do.
"""

import os

from celery import Celery

from broker_core.config import BrokerConfig
from broker_core.transport import TASKS_QUEUE, create_app

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")
# Django's checks import every page and call of the console, which is half of what a worker takes to start; `manage.py migrate` has made them just before.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

NAMES = ("expire", "reap", "retain", "ledger", "sample", "alerts", "purge_spent", "forget", "pipeline")
"""As console.services.schedule has them, which needs Django; Celery must know its tasks before that is there."""

app: Celery = create_app(BrokerConfig.from_env(), "console", TASKS_QUEUE, fixups=["celery.fixups.django:fixup"])


def _add(name: str) -> None:
    def run() -> None:
        from console.services import schedule

        schedule.run(name)

    app.task(run, name=f"console.{name}")


for _name in NAMES:
    _add(_name)
