"""Refused logins of clients on their way to the audit: of each account and address one a minute, bounded, as strangers must not fill it. All are counted in
the metrics, and the log has those that were looked at.

PURE: the time comes in as an argument, in seconds of a clock that never goes back.
"""

from __future__ import annotations

from dataclasses import dataclass

PER_MINUTE = 60
"""Rows; what is more is one row that says how many."""
MINUTE = 60.0
LOGIN_CHARACTERS = 80


@dataclass(slots=True, frozen=True)
class RefusedLogin:
    login: str
    """As the client stated it."""
    remote: str
    sentence: str


class RefusedLogins:
    def __init__(self) -> None:
        self._rows: list[RefusedLogin] = []
        self._seen: dict[tuple[str, str], None] = {}
        """In this minute."""
        self._since = 0.0
        self._more = 0

    def note(self, login: str, remote: str, sentence: str, now: float) -> None:
        self._turn(now)
        shown = login[:LOGIN_CHARACTERS].replace("\0", "\N{REPLACEMENT CHARACTER}")
        if (shown, remote) in self._seen or max(len(self._seen), len(self._rows)) >= PER_MINUTE:
            self._more += 1
            return
        self._seen[shown, remote] = None
        self._rows.append(RefusedLogin(shown, remote, sentence))

    def take(self, now: float) -> list[RefusedLogin]:
        """Those that are to be written now."""
        self._turn(now)
        rows, self._rows = self._rows, []
        return rows

    def _turn(self, now: float) -> None:
        if now - self._since < MINUTE:
            return
        self._since, self._seen = now, {}
        if self._more and len(self._rows) <= PER_MINUTE:  # else nobody takes them, as nothing can be written: they are counted until somebody does
            self._rows.append(RefusedLogin("", "", f"{self._more} more logins before this, of these accounts or others"))
            self._more = 0
