"""Throttling of logins. An attempt is counted before its password is looked at, so that a thousand at once are no way around."""

import ipaddress
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Count, Min, Q
from django.utils import timezone

from console.models import LoginAttempt

from .audit import record

NAME_CHARACTERS_MAX = 150
"""Django's longest user name; a longer one cannot exist and is counted by its beginning."""


@dataclass(eq=False)
class Throttled(Exception):
    """Too many failures: nothing was looked at. Not frozen: Python itself writes an exception's traceback."""

    retry_seconds: int


def admit(name: str, address: str) -> LoginAttempt:
    """Count an attempt; the caller withdraws it with `succeeded`. Raises Throttled: the audit has one row for a place and window, whatever comes."""
    name = name[:NAME_CHARACTERS_MAX].replace("\x00", "\N{REPLACEMENT CHARACTER}")
    origin = network(address)
    now = timezone.now()
    window = timedelta(seconds=settings.LOGIN_WINDOW_SECONDS)
    with transaction.atomic():
        with connection.cursor() as cursor:  # one attempt at a time from one place, or many at once would each see the others missing
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%(origin)s, 0))", {"origin": f"login {origin}"})
        recent = LoginAttempt.objects.filter(address=origin, at__gt=now - window)
        seen = recent.aggregate(
            total=Count("id"), same=Count("id", filter=Q(name=name)), oldest=Min("at"), oldest_same=Min("at", filter=Q(name=name)),
            told=Count("id", filter=Q(told=True)),
        )  # fmt: skip
        if seen["same"] >= settings.LOGIN_ATTEMPTS_MAX:
            until = seen["oldest_same"] + window
        elif seen["total"] >= settings.LOGIN_ATTEMPTS_MAX_ADDRESS:
            until = seen["oldest"] + window
        else:
            return LoginAttempt.objects.create(name=name, address=origin, at=now)
        if not seen["told"]:
            LoginAttempt.objects.filter(pk=recent.latest("at").pk).update(told=True)
            sentence = f"too many have failed from there: not looked at. Of more like it within {settings.LOGIN_WINDOW_SECONDS} s nothing is said"
            record("a stranger", address, "login", name, result={"refused": sentence})
    raise Throttled(_seconds(until - now))


def succeeded(attempt: LoginAttempt) -> None:
    """Forget this attempt, the name's failures from the same place, and everything that is too old to matter."""
    expired = timezone.now() - timedelta(seconds=settings.LOGIN_WINDOW_SECONDS)
    LoginAttempt.objects.filter(Q(name=attempt.name, address=attempt.address) | Q(at__lt=expired)).delete()


def network(address: str) -> str:
    """Whom to count: an IPv4 address, or the /64 of an IPv6 one, since whoever has one IPv6 address has 2^64 of them."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return "local"  # a Unix socket has no address
    if isinstance(ip, ipaddress.IPv6Address):
        ip = ip.ipv4_mapped or ip
    return str(ip) if ip.version == 4 else str(ipaddress.ip_network((ip, 64), strict=False).network_address)


def _seconds(wait: timedelta) -> int:
    return max(1, int(wait.total_seconds()) + 1)
