"""`manage.py backup FOLDER`: one instant of the broker and of the console's operators, while the service runs or while it does not."""

import signal
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from broker_core.config import BrokerConfig
from console.launch.backup import back_up
from console.launch.server import database_of
from console.management.audited import audited
from console.management.refusals import refusals_told


class Command(BaseCommand):
    help = "Write a backup into a new folder. The service may run meanwhile; what was confirmed when it began is in it."
    requires_system_checks: list[str] = []  # the database may not be running yet

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, help="a folder that is not there yet")

    def handle(self, folder: Path, **_options: Any) -> None:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # cleaning up on the way, as Ctrl-C does
        try:
            folder = folder.absolute()
            with refusals_told(), database_of(BrokerConfig.from_env(), alone=False), audited("backup", folder) as result:
                manifest = back_up(folder, lambda text: self.stdout.write(f"  {text}"))
                result |= {"at": manifest["at"], "octets": sum(manifest["octets"].values()), **manifest["restores"]}
        except KeyboardInterrupt:
            raise CommandError("Stopped; nothing is left of the backup.", returncode=130) from None
        for what, count in manifest["restores"].items():
            self.stdout.write(f"  {count} {what}")
        self.stdout.write(f"Backed up into {folder}: {sum(manifest['octets'].values()) >> 10} KiB.")
