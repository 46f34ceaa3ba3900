"""What a connection factory is told, and what it makes of that for a connection of either colour."""

from __future__ import annotations

import random
import ssl
import sys
import warnings
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from .bounds import is_delivery_mode, wrong_client_id, wrong_in_connect, wrong_number
from .exceptions import InvalidClientIDException, JMSException, JMSSecurityException
from .lookup import Found, read_only
from .machine import Address, Addresses, ConnectionMachine, options_in
from .settings import PROFILES, AddressListBehavior, DeliveryMode, Profile, Reliability, Settings


FOR_EVER = ("address_list_iterations", "reconnect_attempts")
NUMBERS = (
    *FOR_EVER, "reconnect_interval", "socket_connect_timeout", "ping_interval", "ack_timeout", "async_send_completion_wait_timeout",
    "connection_flow_count", "connection_flow_limit", "optimize_acknowledge_timeout", "override_expiration", "queue_browser_retrieve_timeout",
)  # fmt: skip
"""None of them is negative, but for what may go on for ever."""
INTERVALS = ("reconnect_interval", "socket_connect_timeout", "ping_interval", "optimize_acknowledge_timeout")
SECONDS_MAX = 999_999
"""Of an interval: the broker takes nine digits of milliseconds, and the operating system not many more."""
WORDS: dict[str, type[AddressListBehavior | Reliability]] = {
    "address_list_behavior": AddressListBehavior, "nonpersistent_reliability": Reliability, "persistent_reliability": Reliability,
}  # fmt: skip
"""As such, or as their text."""


@dataclass(slots=True, kw_only=True)
class FactorySettings(Settings):
    """All settings by name; the defaults are Open MQ's. See `Settings` for each."""

    username: str = "guest"
    password: str = field(default="guest", repr=False)
    ssl_context: ssl.SSLContext | None = None
    """For `stomp+tls://` addresses; None: Python's default, which trusts the system's authorities and checks the host's name."""
    ssl_is_host_trusted: bool = False
    """Believe whoever answers: no certificate is checked. For tests only."""
    _fixed: frozenset[str] = field(default=frozenset(), init=False, repr=False, compare=False)
    """Settings that the operator of an administered object has, and nobody else."""
    _object: str = field(default="", init=False, repr=False, compare=False)
    """Its name."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in getattr(self, "_fixed", ()) and value != getattr(self, name):
            raise read_only(self._object, name)
        object.__setattr__(self, name, value)

    @classmethod
    def of_profile(cls, profile: Profile | str, **settings: Any) -> Self:
        """With the defaults of `sun`, `activemq` or `websphere`, and what is given beside them."""
        if profile not in list(Profile):
            raise JMSException(f"{profile!r} is no profile: use one of {', '.join(Profile)}")
        return cls(**(PROFILES[Profile(profile)] | settings))

    @classmethod
    def _finder(cls, settings: dict[str, Any]) -> Self:
        """What looks an object up: connects as nobody in particular."""
        return cls(**{name: value for name, value in settings.items() if name != "configured_client_id"})

    @classmethod
    def _administered(cls, found: Found, given: dict[str, Any]) -> Self:
        values, fixed = found.settings(given)
        made = cls(**values)
        made._object, made._fixed = found.name, fixed
        return made

    def _for_connection(self) -> Self:
        """As they are now: what is changed later is for later connections."""
        if self.configured_client_id and (wrong := wrong_client_id(self.configured_client_id)):
            raise InvalidClientIDException(f"the factory's configured_client_id {wrong}")
        problem = self._problem()
        if problem:
            raise JMSException(f"the connection factory is not usable: {problem}")
        settings = object.__new__(type(self))
        for each in fields(self):
            object.__setattr__(settings, each.name, getattr(self, each.name))
        for name, value in options_in(self.address_list).items():
            setattr(settings, name, value)
        for name, words in WORDS.items():
            if (value := getattr(settings, name)) is not None:
                setattr(settings, name, words(value))
        if not settings.app_id:
            settings.app_id = Path(sys.argv[0]).name
        return settings

    def _machine(self, username: str | None, password: str | None, client_id: str, lookup: str = "") -> tuple[ConnectionMachine, Addresses]:
        username = self.username if username is None else username
        password = self.password if password is None else password
        if wrong := wrong_in_connect(username):
            raise JMSSecurityException(f"the user name {wrong}")
        if wrong_in_connect(password):  # without what it is
            raise JMSSecurityException("the password cannot be said to the broker: it must be a str without line breaks and NUL characters")
        machine = ConnectionMachine(self, username, password, client_id, lookup)
        return machine, Addresses(self, random.randrange(1 << 16))  # noqa: S311  # spreads connections, guards nothing

    def _context(self, address: Address) -> ssl.SSLContext | None:
        """None: without TLS."""
        if not address.tls:
            return None
        context = self.ssl_context
        if context is None:
            context = ssl.create_default_context()
            if self.ssl_is_host_trusted:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
        return context

    def _problem(self) -> str:
        """What is wrong with the settings; empty: nothing. What is merely dangerous is warned of."""
        if wrong := self._wrong_word():
            return wrong
        if self.persistent_reliability not in (None, Reliability.AS_DESTINATION) and not Reliability(self.persistent_reliability).is_persistent:
            warnings.warn(
                f"persistent messages are sent as {Reliability(self.persistent_reliability).value}: they are lost when the broker stops",
                stacklevel=4,
            )
        if self.override_priority is not None and not (type(self.override_priority) is int and 0 <= self.override_priority <= 9):
            return f"override_priority is {self.override_priority!r}: it must be a number from 0 to 9"
        if wrong_number(self.consumer_flow_threshold) or not 0 < self.consumer_flow_threshold <= 100:
            return f"consumer_flow_threshold is {self.consumer_flow_threshold!r}: it must be more than 0 and at most 100 percent"
        ahead = {f"prefetch_policy's {name}": limit for name, limit in asdict(self.prefetch_policy).items()}
        for name, limit in (ahead | {"consumer_flow_limit": self.consumer_flow_limit or 0}).items():
            if type(limit) is not int or limit < 0:
                return f"{name} is {limit!r}: it must be a whole number of messages, 0 for the broker's maximum"
        return self._wrong_number() or self._wrong_batch()

    def _wrong_number(self) -> str:
        if self.address_list_iterations == 0:
            return "address_list_iterations is 0: use 1, or -1 for ever"
        for name in NUMBERS:
            value = getattr(self, name)
            least = -1 if name in FOR_EVER else 0
            if value is not None and (wrong_number(value) or value < least):
                return f"{name} is {value!r}: it must not be negative" + (", but for -1, for ever" if least else "")
            if name in INTERVALS and value > SECONDS_MAX:
                return f"{name} is {value!r}: it must be at most {SECONDS_MAX} seconds"
        return ""

    def _wrong_word(self) -> str:
        for name, words in WORDS.items():
            value = getattr(self, name)
            if value is not None and value not in list(words):
                return f"{name} is {value!r}: it must be one of {', '.join(words)}"
        mode = self.override_delivery_mode
        return "" if mode is None or is_delivery_mode(mode) else f"override_delivery_mode is {mode!r}: it must be one of {', '.join(DeliveryMode.__members__)}"

    def _wrong_batch(self) -> str:
        for name in ("on_queues", "on_topics"):
            batch = getattr(self.dups_ok_policy, name)
            if batch is None:
                continue
            if type(batch.messages) is not int or batch.messages < 0 or wrong_number(batch.timeout) or not 0 <= batch.timeout <= SECONDS_MAX:
                return f"dups_ok_policy's {name} is {batch!r}: messages and timeout must not be negative, and the timeout at most {SECONDS_MAX} seconds"
            if wrong_number(batch.percent) or not 0 <= batch.percent <= 100 or not (batch.messages or batch.percent):
                return f"dups_ok_policy's {name} is {batch!r}: it needs messages, or more than 0 and at most 100 percent"
        return ""
