"""`manage.py run`: the whole service in the foreground."""

from typing import Any

from django.core.management.base import BaseCommand

from broker_core.config import BrokerConfig
from console.launch.supervisor import run
from console.management.refusals import refusals_told


class Command(BaseCommand):
    help = "Run the whole service in the foreground: database, node, tasks, schedule and web. Ctrl-C drains and stops."
    requires_system_checks: list[str] = []  # the database is not running yet

    def handle(self, **_options: Any) -> None:
        with refusals_told():
            code = run(BrokerConfig.from_env())
        if code:
            raise SystemExit(code)
