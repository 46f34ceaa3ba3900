"""Reading the headers of a received message. What makes no sense is left out, for another client wrote it."""

from __future__ import annotations

from broker_core.stomp.escaping import UndefinedEscape, unescape

from .destinations import Queue, Topic, destination_of
from .exceptions import InvalidDestinationException, MessageFormatException
from .properties import PropertyValue, from_headers
from .settings import DeliveryMode, Reliability


def split(section: bytes) -> dict[str, str]:
    """The headers of a MESSAGE; of repeated ones the first counts (STOMP 1.2). Raises MessageFormatException."""
    headers: dict[str, str] = {}
    try:
        for line in section.decode().split("\n")[1:]:
            name, _, value = line.partition(":")
            if "\\" in line:
                name, value = unescape(name, "1.2"), unescape(value, "1.2")
            if name not in headers:
                headers[name] = value
    except UnicodeDecodeError:
        raise MessageFormatException("the header section of the message is not valid UTF-8") from None
    except UndefinedEscape as error:
        raise MessageFormatException(f"the header section of the message holds the undefined escape sequence {error.args[0]!r}") from None
    return headers


def properties_in(headers: dict[str, str]) -> dict[str, PropertyValue]:
    """With the count of deliveries, which JMS demands: exact where a provider states it, else 2 for any that is not the first."""
    properties = from_headers(headers)
    properties["JMSXDeliveryCount"] = number_in(headers.get("JMSXDeliveryCount"), 2 if headers.get("redelivered") == "true" else 1)
    return properties


def destination_in(address: str | None) -> Queue | Topic | None:
    """None also for what another client wrote there and is no address of ours: it stays among the headers."""
    if not address:
        return None
    try:
        return destination_of(address)
    except InvalidDestinationException:
        return None


def delivery_mode_in(headers: dict[str, str]) -> DeliveryMode:
    level = headers.get("reliability")
    persistent = level in (Reliability.RELIABLE, Reliability.ASSURED) if level is not None else headers.get("persistent", "").lower() == "true"
    return DeliveryMode.PERSISTENT if persistent else DeliveryMode.NON_PERSISTENT


def number_in(text: str | None, otherwise: int) -> int:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) <= 19 else otherwise

