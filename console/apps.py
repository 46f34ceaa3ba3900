"""The console as a Django application."""

from django.apps import AppConfig

from .rates import Rates


class ConsoleConfig(AppConfig):
    name = "console"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        self.rates = Rates()
        """What this process remembers of counters."""
