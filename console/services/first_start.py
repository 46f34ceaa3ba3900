"""What a new installation begins with: one operator and the client account guest. Run at every start; later ones find all done."""

import secrets
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import connection, transaction

from . import accounts
from .audit import record

GUEST = "guest"
LOCK = 0x5355_5245_5459_0001
"""Key of the advisory lock that makes concurrent starts queue: "SURETY" in ASCII, and a number of its own."""
SYSTEM = "first start"


@dataclass(slots=True, frozen=True)
class FirstStart:
    operator: str
    created: bool
    generated_password: str
    """Empty: none was generated. It is kept nowhere; whoever gets it must show it."""


def first_start(operator: str, password: str = "") -> FirstStart:
    """Make sure that `operator` exists. A given password holds from now on, so that a lost one can be replaced by configuration; without
    one, the first start generates it. The account guest is made together with the very first operator only: deleted, it stays deleted.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%(lock)s)", {"lock": LOCK})
        first = not User.objects.filter(is_superuser=True).exists()
        if first:
            accounts.insert(GUEST, GUEST, loopback_only=True)
            record(SYSTEM, "", "account create", GUEST, {"loopback_only": True})
        user = User.objects.filter(username=operator).first()
        if user is None and (first or password):
            generated = "" if password else secrets.token_urlsafe(18)
            User.objects.create_superuser(operator, password=password or generated)
            record(SYSTEM, "", "operator create", operator)
            return FirstStart(operator, True, generated)
        if user is not None and password and not (user.is_superuser and user.is_active and user.check_password(password)):
            user.set_password(password)
            user.is_superuser = user.is_staff = user.is_active = True
            user.save()
            record(SYSTEM, "", "operator password", operator)
    return FirstStart(operator, False, "")
