"""`manage.py restore FOLDER`: a backup becomes the broker of this home or database, all of it or nothing. The service must be stopped."""

import signal
import sys
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from broker_core.config import BrokerConfig
from broker_core.store.migrate import migrations
from console.launch.restore import read_manifest, restore
from console.launch.server import database_of
from console.management.audited import audited
from console.management.refusals import refusals_told


class Command(BaseCommand):
    help = "Restore a backup into this home or database. The service must be stopped; a broker with messages is only replaced with --replace."
    requires_system_checks: list[str] = []  # the database is not running yet

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, help="what `backup` wrote")
        parser.add_argument("--replace", action="store_true", help="throw away the broker that is there, its messages and its operators")

    def handle(self, folder: Path, replace: bool, **_options: Any) -> None:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        folder = folder.absolute()
        try:
            with refusals_told():
                manifest = read_manifest(folder, [name for name, _ in migrations()])
                with database_of(BrokerConfig.from_env(), alone=True), audited("restore", folder) as result:
                    restore(folder, manifest, lambda text: self.stdout.write(f"  {text}"), replace=replace)
                    call_command("migrate", interactive=False, verbosity=0, stdout=self.stdout)
                    result |= {"at": manifest["at"], **manifest["restores"]}
        except KeyboardInterrupt:
            raise CommandError("Stopped; nothing is changed.", returncode=130) from None
        for what, count in manifest["restores"].items():
            self.stdout.write(f"  {count} {what}")
        self.stdout.write(f"Restored the backup of {manifest['at']}.")
