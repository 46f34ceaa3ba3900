"""What the console itself owns. The broker's tables live in schema `surety` and belong to the broker: selectors read them,
services write control requests; no model here touches them."""

from django.db import models


class Operation(models.Model):  # noqa: DJ008  # it has no rows that could be shown
    """Carries the permissions; it has no table. A person who is logged in and has none of them is a viewer."""

    class Meta:
        managed = False
        default_permissions = ()
        permissions = [
            ("manage_destination", "Create, change, pause and resume destinations"),
            ("discard_message", "Purge and destroy destinations: discard messages"),
            ("manage_account", "Create, change and delete client accounts"),
        ]


class LoginAttempt(models.Model):
    """A login that failed or is being checked; the throttle counts those of the last minutes. A success deletes its own."""

    name = models.CharField(max_length=150)
    address = models.CharField(max_length=45, help_text="The peer's IP address; IPv6 takes up to 45 characters.")
    at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(fields=["address", "at"], name="login_attempt_address"),
            models.Index(fields=["at"], name="login_attempt_at"),
        ]

    def __str__(self) -> str:
        return f"{self.name} from {self.address} at {self.at:%Y-%m-%d %H:%M:%S}"
