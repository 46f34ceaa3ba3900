"""Guessing passwords costs time: who fails too often is refused without a look at his password, each time for longer.

PURE: the time comes in as an argument, in seconds of a clock that never goes back.
"""

from __future__ import annotations

import ipaddress
import math
from collections import OrderedDict
from dataclasses import dataclass

PAIR_FAILURES = 5
"""Of one account from one address within WINDOW_SECONDS: a person mistypes a few times, a misconfigured client tries for ever."""
ADDRESS_FAILURES = 100
"""Of one address, whatever the accounts: more than a host's clients mistype together; to hash so many takes half a second of one core."""
WINDOW_SECONDS = 60.0
"""So many failures are forgotten in such a time, evenly: a guesser is left with five guesses a minute."""
REFUSE_SECONDS = 1.0
"""After the first failure too many; doubles with each further one."""
REFUSE_SECONDS_MAX = 60.0
"""A client whose password was put right gets in at its first attempt after the refusal, which lasts no longer than that. If others go on
failing under its name from its address, it may have to try several times: to the broker they are one."""
KEPT_MAX = 10_000
"""Addresses and pairs remembered, the latest: about 0.5 KiB each, 5 MiB. To push one out takes 10,000 failures elsewhere, 50 s of hashing."""
NAME_CHARACTERS = 64
"""Of an account's name that count here: a name as long as a header may be must not fill the memory."""
NETWORK_BITS = 64
"""IPv6: one subscriber has a whole /64 to choose addresses from."""

Key = tuple[str, str]


@dataclass(slots=True)
class _Failures:
    count: float
    """As of `last`; less by what has been forgotten since."""
    last: float
    refused_until: float


class Throttle:
    def __init__(self) -> None:
        self._failures: OrderedDict[Key, _Failures] = OrderedDict()

    def __len__(self) -> int:
        return len(self._failures)

    def refused_seconds(self, remote: str, login: str, now: float) -> int:
        """How long this login is refused from there, in whole seconds; 0: it may be tried."""
        until = max(self._refused_until(key, most, now) for key, most in _keys(remote, login))
        return max(math.ceil(until - now), 0)

    def failed(self, remote: str, login: str, now: float) -> None:
        """The password was wrong, or whatever else has the login refused."""
        for key, most in _keys(remote, login):
            failures = self._failures.pop(key, None) or _Failures(0.0, now, 0.0)
            failures.count, failures.last = _left(failures, most, now) + 1, now
            if failures.count > most - 1:
                failures.refused_until = now + min(REFUSE_SECONDS * 2 ** (failures.count - most), REFUSE_SECONDS_MAX)
            self._failures[key] = failures
        while len(self._failures) > KEPT_MAX:
            self._failures.popitem(last=False)

    def succeeded(self, remote: str, login: str) -> None:
        """Whoever knows the password did not guess it. The address keeps its failures: one good account must not pay for guesses at others."""
        self._failures.pop(_keys(remote, login)[0][0], None)

    def _refused_until(self, key: Key, most: int, now: float) -> float:
        failures = self._failures.get(key)
        if failures is None:
            return 0.0
        if now >= failures.refused_until and not _left(failures, most, now):
            del self._failures[key]
        return failures.refused_until


def _left(failures: _Failures, most: int, now: float) -> float:
    """What is not forgotten yet."""
    return max(failures.count - (now - failures.last) * most / WINDOW_SECONDS, 0.0)


def _keys(remote: str, login: str) -> tuple[tuple[Key, int], tuple[Key, int]]:
    """The pair and the address, each with the failures that it may have."""
    network = _network(remote)
    return ((network, "=" + login[:NAME_CHARACTERS]), PAIR_FAILURES), ((network, ""), ADDRESS_FAILURES)


def _network(remote: str) -> str:
    try:
        address = ipaddress.ip_address(remote.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    return str(address.ipv4_mapped or ipaddress.IPv6Network((address, NETWORK_BITS), strict=False))
