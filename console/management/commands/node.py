"""`manage.py node`: one more node in the foreground, which stands by until the lease is free."""

import os
from typing import Any

from django.core.management.base import BaseCommand

from broker_core.config import BrokerConfig
from console.launch.database import check_database
from console.launch.supervisor import NODE_COMMAND
from console.management.refusals import refusals_told


class Command(BaseCommand):
    help = "Run one more node in the foreground. It stands by and takes over when the node that serves is gone."
    requires_system_checks: list[str] = []

    def handle(self, **_options: Any) -> None:
        with refusals_told():
            check_database(BrokerConfig.from_env())
        os.execv(NODE_COMMAND[0], NODE_COMMAND)  # Celery handles the signals from here on
