"""What clients tried and were refused, on its way to the audit: logins, and uses of destinations that rules of access do not allow. Each is told once a minute,
bounded, as clients must not fill it. All logins are counted in the metrics, and the log has those that were looked at.

PURE: the time comes in as an argument, in seconds of a clock that never goes back.
"""

from __future__ import annotations

from dataclasses import dataclass

from broker_core.engine.refusal import Refusal

PER_MINUTE = 60
"""Rows; what is more is one row that says how many."""
PER_ACCOUNT = 10
"""Of these: a client that tries one destination after the other leaves room for what others are refused."""
MINUTE = 60.0
LOGIN_CHARACTERS = 80
ADDRESS_CHARACTERS = 255
LOGIN, USE = "client login", "client access"
"""What the audit calls them."""


@dataclass(slots=True, frozen=True)
class RefusedTry:
    who: str
    what: str
    address: str
    """The login as the client stated it, or the destination."""
    remote: str
    sentence: str


class RefusedTries:
    def __init__(self, who: str, what: str) -> None:
        """As the row has it that says how many more there were."""
        self._who, self._what = who, what
        self._rows: list[RefusedTry] = []
        self._seen: dict[tuple[str, ...], None] = {}
        """In this minute."""
        self._since = 0.0
        self._more = 0

    def login(self, login: str, remote: str, sentence: str, now: float) -> None:
        shown = _kept(login, LOGIN_CHARACTERS)
        self._note(RefusedTry(self._who, self._what, shown, remote, sentence), (shown, remote), now)

    def use(self, account: str, remote: str, detail: str, now: float) -> None:
        """`detail`: the operation and the destination, as the engine's refusal has them."""
        operation, _, address = detail.partition(" ")
        sentence = f"{operation}: {Refusal.ACCESS_DENIED.value}"
        self._note(RefusedTry(f"client {account}", self._what, _kept(address, ADDRESS_CHARACTERS), remote, sentence), (account, detail), now)

    def _note(self, row: RefusedTry, key: tuple[str, ...], now: float) -> None:
        self._turn(now)
        if key in self._seen or self._is_full(key[0]):
            self._more += 1
            return
        self._seen[key] = None
        self._rows.append(row)

    def _is_full(self, account: str) -> bool:
        if max(len(self._seen), len(self._rows)) >= PER_MINUTE:
            return True
        return sum(who == account for who, *_ in self._seen) >= PER_ACCOUNT

    def take(self, now: float) -> list[RefusedTry]:
        """Those that are to be written now."""
        self._turn(now)
        rows, self._rows = self._rows, []
        return rows

    def _turn(self, now: float) -> None:
        if now - self._since < MINUTE:
            return
        self._since, self._seen = now, {}
        if self._more and len(self._rows) <= PER_MINUTE:  # else nobody takes them, as nothing can be written: they are counted until somebody does
            self._rows.append(RefusedTry(self._who, self._what, "", "", f"{self._more} more before this, of these or of others"))
            self._more = 0


def _kept(text: str, most: int) -> str:
    """Clients may say anything; NUL is the one character that the database cannot keep."""
    return text[:most].replace("\0", "\N{REPLACEMENT CHARACTER}")
