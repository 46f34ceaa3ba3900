"""`manage.py migrate`: the broker's tables first, then the console's, then what a first start needs."""

from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.commands import migrate as console_migrate

from broker_core.store.migrate import migrate as migrate_store
from console.launch.database import check_database
from console.management.refusals import refusals_told


class Command(console_migrate.Command):
    help = "Bring the broker's and the console's tables up to date; at the first start, make the operator."

    def check(self, *args: Any, **options: Any) -> None:
        """Of a constraint Django asks the server whether it can do such a thing: first whether it answers at all."""
        _ask_server()
        super().check(*args, **options)

    def handle(self, *args: Any, **options: Any) -> None:
        if options["app_label"] or options["plan"] or options["check_unapplied"]:
            # One application's tables, or a look at what would be done: neither is a start.
            super().handle(*args, **options)
            return
        if options["skip_checks"]:  # else it has answered
            _ask_server()
        for name in migrate_store(settings.BROKER.database_url):
            if options["verbosity"]:
                self.stdout.write(f"  Applied {name} to schema surety")
        super().handle(*args, **options)
        call_command("bootstrap", stdout=self.stdout)


def _ask_server() -> None:
    with refusals_told():
        check_database(settings.BROKER)
