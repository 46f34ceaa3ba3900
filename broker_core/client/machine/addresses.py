"""Where to find a broker, and in which order to try (Open MQ's address list)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from broker_core.client.exceptions import NO_BROKER, JMSException
from broker_core.client.settings import AddressListBehavior, Settings

_ADDRESS = re.compile(r"(?:(stomp|stomp\+tls)://)?(\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+)(?::(\d{1,5}))?/?")
PORT, TLS_PORT = 61613, 61614
_OPTION = re.compile(r"(?:jms\.)?(optimizeAcknowledge)=(true|false)|(?:jms\.)?(optimizeAcknowledgeTimeOut)=(\d{1,9})")
"""What ActiveMQ's applications say in the address of their broker; the timeout in ms."""


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int
    tls: bool

    def __str__(self) -> str:
        return f"{'stomp+tls' if self.tls else 'stomp'}://{self.host}:{self.port}"


class Addresses:
    """`of` a factory's settings; `start` is a number by chance, for RANDOM."""

    def __init__(self, settings: Settings, start: int) -> None:
        addresses = [_address(text.partition("?")[0]) for text in _texts(settings.address_list)]
        if not addresses:
            raise JMSException("the address list is empty: name a broker, as in stomp://127.0.0.1:61613")
        first = start % len(addresses) if settings.address_list_behavior == AddressListBehavior.RANDOM else 0
        self._addresses = addresses[first:] + addresses[:first]
        self._settings = settings
        self._reached: Address | None = None

    def reached(self, address: Address) -> None:
        """There is a connection to it."""
        self._reached = address

    def to_try(self) -> Iterator[tuple[Address, float]]:
        """Each address to try, and how many seconds to wait before that. Begins where the last connection was."""
        settings, addresses = self._settings, self._addresses
        if self._reached in addresses:
            at = addresses.index(self._reached)
            addresses = addresses[at:] + addresses[:at]
        attempts = settings.reconnect_attempts or 1 if settings.reconnect_enabled else 1
        for iteration in _count(settings.address_list_iterations):
            for number, address in enumerate(addresses):
                for attempt in _count(attempts):
                    yield address, settings.reconnect_interval if attempt or (iteration and not number) else 0.0


def _texts(address_list: str | Sequence[str]) -> list[str]:
    return [text.strip() for text in (address_list.split(",") if isinstance(address_list, str) else address_list)]


def options_in(address_list: str | Sequence[str]) -> dict[str, bool | float]:
    """Settings that the addresses name, as in `stomp://a:61613?jms.optimizeAcknowledge=true&jms.optimizeAcknowledgeTimeOut=300`. They hold for the
    connection, whichever of its addresses it is to, so that two that differ are refused."""
    options: dict[str, bool | float] = {}
    for text in _texts(address_list):
        _, asked, query = text.partition("?")
        for option in query.split("&") if asked else ():
            found = _OPTION.fullmatch(option)
            if found is None:
                raise JMSException(
                    f"{option!r} in {text!r} is no option of an address: there are optimizeAcknowledge=true or false and optimizeAcknowledgeTimeOut=MS"
                )
            name, value = ("optimize_acknowledge", found[2] == "true") if found[1] else ("optimize_acknowledge_timeout", int(found[4]) / 1000)
            if options.setdefault(name, value) != value:
                raise JMSException(f"the address list says {option!r} and something else about it: say it once")
    return options


def _count(times: int) -> Iterator[int]:
    """0, 1, ...: so many, or for ever if it is negative."""
    number = 0
    while number != times:
        yield number
        number = number + 1 if times >= 0 else 1


def _address(text: str) -> Address:
    found = _ADDRESS.fullmatch(text)
    if found is None or (found[3] and not 0 < int(found[3]) < 65536) or not _is_host(found[2]):
        raise JMSException(f"{text!r} is no address of a broker: write stomp://HOST:PORT, or stomp+tls://HOST:PORT")
    tls = found[1] == "stomp+tls"
    return Address(found[2].strip("[]"), int(found[3]) if found[3] else TLS_PORT if tls else PORT, tls)


def _is_host(name: str) -> bool:
    """It can be looked up: no level of it is empty or has more than 63 octets."""
    try:
        name.encode("idna")
    except UnicodeError:
        return False
    return True


def unreachable(errors: list[str]) -> JMSException:
    """None of them let us in."""
    return JMSException(f"no broker can be reached: {'; '.join(errors)}", NO_BROKER)
