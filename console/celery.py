"""The Celery app of the tasks worker and of beat: Django loaded, one queue. The schedule is in the database, where administrators change it
(console.services.schedule); beat reads it there, by django-celery-beat.

A task message that is lost, or comes twice, does no harm (R22): the next one comes soon, and each run looks at what there is to do.
"""

import os

from celery import Celery
from celery.fixups.django import DjangoFixup

from broker_core.config import BrokerConfig
from broker_core.transport import TASKS_QUEUE, create_app

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")

NAMES = ("expire", "reap", "retain", "ledger", "sample", "alerts", "purge_spent", "forget", "pipeline")
"""As console.services.schedule has them, which needs Django; Celery must know its tasks before that is there."""


class Unchecked(DjangoFixup):  # type: ignore[misc]  # celery has no types
    """Django's checks import every page and call of the console, two fifths of what a worker imports by time; `manage.py migrate` has made them before."""

    def on_import_modules(self, **_signal: object) -> None:
        self.worker_fixup.django_setup()


def fixup(app: Celery) -> DjangoFixup:
    return Unchecked(app).install()


app: Celery = create_app(BrokerConfig.from_env(), "console", TASKS_QUEUE, fixups=["console.celery:fixup"])


def _add(name: str) -> None:
    def run() -> None:
        from console.services import schedule

        schedule.run(name)

    app.task(run, name=f"console.{name}")


for _name in NAMES:
    _add(_name)
