"""`manage.py run`: the whole service in the foreground."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from broker_core.config import BrokerConfig, ConfigError
from console.launch.refusal import CannotStart
from console.launch.supervisor import run


class Command(BaseCommand):
    help = "Run the whole service in the foreground: database, node, tasks, schedule and web. Ctrl-C drains and stops."
    requires_system_checks: list[str] = []  # the database is not running yet

    def handle(self, **_options: Any) -> None:
        try:
            code = run(BrokerConfig.from_env())
        except (CannotStart, ConfigError) as refusal:
            raise CommandError(str(refusal), returncode=1) from refusal
        if code:
            raise SystemExit(code)
