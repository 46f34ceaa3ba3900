"""The settings of this installation as they are in force here: the broker's (broker_core.config) and the console's own. No secret is among them: of these it
is told only whether there is one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from broker_core.config import Described, described
from console.quantities import milliseconds, octets

SECRET_SET, SECRET_UNSET, NOTHING = "set", "not set", "none"
UNITS = (("_octets_max", "octets"), ("_octets", "octets"), ("_min_octets", "octets"), ("_ms_max", "ms"), ("_ms", "ms"), ("_seconds", "s"),
         ("_days_max", "days"), ("_days", "days"), ("_mib", "MiB"))  # fmt: skip


@dataclass(slots=True, frozen=True)
class Setting:
    section: str
    variable: str
    value: str
    """In force, as people read it; of a secret SECRET_SET or SECRET_UNSET."""
    exact: str
    """As one would write it; empty: as `value` has it, or it is a secret."""
    default: str
    unit: str
    bounds: str
    reason: str
    changed: bool
    """It is another than the default."""


@dataclass(slots=True, frozen=True)
class _Own:
    """A setting of the console; docs/console.md has it too."""

    section: str
    variable: str
    read: Callable[[], Any]
    reason: str
    default: Any = ""
    secret: bool = False


def _oidc(name: str) -> Callable[[], Any]:
    return lambda: getattr(settings.OIDC, name) if settings.OIDC is not None else ""


def _groups(role: str) -> Callable[[], Any]:
    return lambda: sorted(dict(settings.OIDC.roles).get(role, ())) if settings.OIDC is not None else []


CONSOLE, SIGN_ON = "console", "single sign-on"
OWN = (
    _Own(CONSOLE, "SURETY_ADMIN_USER", lambda: settings.ADMIN_USER, "The operator of the first start.", "admin"),
    _Own(CONSOLE, "SURETY_ADMIN_PASSWORD", lambda: settings.ADMIN_PASSWORD,
         "His password; it replaces a lost one at every start, so unset it once it did.", secret=True),
    _Own(CONSOLE, "SURETY_SECRET_KEY", lambda: settings.SECRET_KEY, "Signs sessions. If none is given, one is made and kept under the home folder.",
         secret=True),
    _Own(CONSOLE, "SURETY_ALLOWED_HOSTS", lambda: settings.ALLOWED_HOSTS, "Names by which browsers reach the console; this machine's are among them."),
    _Own(CONSOLE, "SURETY_TRUSTED_ORIGINS", lambda: settings.CSRF_TRUSTED_ORIGINS, "Origins whose pages may send forms, behind a proxy that changes them."),
    _Own(CONSOLE, "SURETY_HTTPS", lambda: settings.HTTPS, "A TLS proxy stands before the console: secure cookies and HSTS.", False),
    _Own(CONSOLE, "SURETY_TRUSTED_PROXIES", lambda: settings.TRUSTED_PROXIES, "Whose X-Forwarded headers are believed, with SURETY_HTTPS."),
    _Own(CONSOLE, "SURETY_METRICS_TOKEN", lambda: settings.METRICS_TOKEN, "Who shows it may read /metrics from elsewhere.", secret=True),
    _Own(CONSOLE, "SURETY_URL", lambda: settings.COMMAND_URL, "The console that manage.py mq asks; empty: this installation."),
    _Own(CONSOLE, "SURETY_TOKEN", lambda: settings.COMMAND_TOKEN, "What manage.py mq shows it.", secret=True),
    _Own(SIGN_ON, "SURETY_OIDC_ISSUER", _oidc("issuer"), "The provider of OpenID Connect; empty: nobody logs in by single sign-on."),
    _Own(SIGN_ON, "SURETY_OIDC_CLIENT_ID", _oidc("client_id"), "What this console is called there."),
    _Own(SIGN_ON, "SURETY_OIDC_CLIENT_SECRET", _oidc("client_secret"), "How it proves that.", secret=True),
    _Own(SIGN_ON, "SURETY_OIDC_ADMINISTRATORS", _groups("administrator"), "Groups of the provider whose members are administrators."),
    _Own(SIGN_ON, "SURETY_OIDC_OPERATORS", _groups("operator"), "Groups whose members are operators."),
    _Own(SIGN_ON, "SURETY_OIDC_VIEWERS", _groups("viewer"), "Groups whose members are viewers."),
    _Own(SIGN_ON, "SURETY_OIDC_RESTRICTED", _groups("restricted"), "Groups whose members may what is granted to them by name."),
    _Own(SIGN_ON, "SURETY_OIDC_NAME_CLAIM", _oidc("name_claim"), "The claim that holds the name.", "preferred_username"),
    _Own(SIGN_ON, "SURETY_OIDC_GROUPS_CLAIM", _oidc("groups_claim"), "The claim that holds the groups.", "groups"),
)  # fmt: skip


def in_force() -> list[Setting]:
    """All of them, by sections; what this process read when it started."""
    return [*map(_broker, described()), *map(_own, OWN)]


def _broker(it: Described) -> Setting:
    value, default, unit = getattr(settings.BROKER, it.name), it.default, unit_of(it.name)
    if it.variable == "DATABASE_URL":
        value = "" if settings.BROKER.embedded else without_password(value)
    elif it.variable == "SURETY_HOME":
        value, default = str(value), str(default)
    if it.name.endswith("_port"):  # a name, and no quantity
        value, default = str(value), str(default)
    bounds = "" if it.low is None or it.high is None else f"{it.low:,} to {it.high:,}"
    exact = f"{value:,}" if unit in ("octets", "ms", "s") and type(value) is int else ""
    changed = value != default and it.variable != "SURETY_HOME"
    return Setting(it.section, it.variable, _shown(value, unit), exact, _shown(default, unit), unit, bounds, it.reason, changed)


def _own(it: _Own) -> Setting:
    value = it.read()
    if it.secret:
        told = SECRET_SET if value else SECRET_UNSET
        return Setting(it.section, it.variable, told, "", SECRET_UNSET, "", "", it.reason, False)
    value = ", ".join(value) if isinstance(value, (list, tuple)) else value
    return Setting(it.section, it.variable, _shown(value, ""), "", _shown(it.default, ""), "", "", it.reason, value not in (it.default, ""))


def unit_of(name: str) -> str:
    return next((unit for end, unit in UNITS if name.endswith(end)), "")


def without_password(url: str) -> str:
    """A libpq URI as anybody may see it: what may be a secret in its query, too, is left out."""
    try:
        parts = urlsplit(url)
        host, user = parts.netloc.rpartition("@")[2], parts.netloc.rpartition("@")[0].partition(":")[0]
    except ValueError:
        return SECRET_SET
    return f"{parts.scheme}://{user}{'@' if user else ''}{host}{parts.path}"


def _shown(value: Any, unit: str) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int):
        return str(value) or NOTHING
    if unit == "octets" and value >= 1024:
        return octets(value)
    if unit == "ms" and value >= 1000:
        return milliseconds(value)
    if unit == "s" and value >= 60:
        return milliseconds(value * 1000)
    return f"{value:,} {unit}".strip() if unit != "octets" else f"{value:,}"
