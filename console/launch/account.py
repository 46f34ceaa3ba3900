"""The system account that runs PostgreSQL. PostgreSQL refuses to run as root, so root hands it to an unprivileged account."""

from __future__ import annotations

import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path

from .refusal import CannotStart

UNPRIVILEGED = ("surety", "postgres", "nobody")
"""Tried in this order: an account made for us, the one Debian makes for PostgreSQL, and the one that every Unix has."""


@dataclass(frozen=True, slots=True)
class Account:
    name: str
    user: int
    group: int

    @property
    def switches(self) -> bool:
        """True: a process must be started under this account, because we are root and it is not."""
        return self.user != os.geteuid()


def own_account() -> Account:
    try:
        entry = pwd.getpwuid(os.geteuid())
    except KeyError:
        raise CannotStart(
            f"The user id {os.geteuid()} has no name on this system, and PostgreSQL needs one: add it to /etc/passwd or set DATABASE_URL."
        ) from None
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


def database_account(data: Path) -> Account:
    """Who runs PostgreSQL on `data`: its owner if it exists, else we ourselves, or for root the first unprivileged account there is."""
    own = own_account()
    if data.exists():
        owner = data.stat().st_uid
        if own.user in (owner, 0):
            entry = pwd.getpwuid(owner)
            return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)
        raise CannotStart(f"{data} belongs to another user; start the service as that user, or choose another SURETY_HOME.")
    if own.user != 0:
        return own
    for name in UNPRIVILEGED:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)
    raise CannotStart("PostgreSQL refuses to run as root and there is no account for it: add a system user named surety.")


def can_enter(account: Account, folder: Path) -> bool:
    """True if `account` may pass through every folder on the way to `folder`, and through itself. Group rights do not count."""
    for step in (folder, *folder.parents):
        status = step.stat()
        if not status.st_mode & (stat.S_IXUSR if status.st_uid == account.user else stat.S_IXOTH):
            return False
    return True
