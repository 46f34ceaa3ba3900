"""`manage.py bootstrap`: the operator and the client account guest, at the first start; afterwards it finds all done and says nothing."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from console.services.first_start import first_start
from console.services.schedule import establish


class Command(BaseCommand):
    help = "Make the operator (SURETY_ADMIN_USER, SURETY_ADMIN_PASSWORD; else admin with a password printed once) and the account guest."

    def handle(self, *args: Any, **options: Any) -> None:
        establish()
        done = first_start(settings.ADMIN_USER, settings.ADMIN_PASSWORD)
        if done.generated_password:
            self.stdout.write(f"Operator {done.operator}, password {done.generated_password}")
            self.stdout.write("Keep it: it is shown this once and kept nowhere.")
        elif done.created:
            self.stdout.write(f"Operator {done.operator}, password as in SURETY_ADMIN_PASSWORD.")
