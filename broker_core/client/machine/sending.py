"""A message's header section as a SEND has it. What repeats comes first and is made once; then what is the message's own."""

from __future__ import annotations

from functools import lru_cache

from broker_core.client.bounds import LINE_OCTETS_MAX, wrong_text
from broker_core.client.destinations import Queue, Topic
from broker_core.client.exceptions import InvalidDestinationException, MessageFormatException
from broker_core.client.messages import DEFAULT_PRIORITY, Message
from broker_core.client.properties import header_line, header_lines
from broker_core.client.settings import Reliability
from broker_core.stomp.limits import Limits

from .temporaries import Temporaries

HEADERS_MAX = Limits().headers_max - 16
OWN_OCTETS_MAX = Limits().header_octets_max - 4096
"""The broker's bounds on a frame less what the protocol needs itself: beyond them it would end the connection."""
SHORT_OCTETS = 4 * HEADERS_MAX
"""A line has at least four with its LF: so few octets break no bound."""


@lru_cache(maxsize=4096)
def opening(address: str, persistent: bool, level: Reliability | None, priority: int, content_type: str) -> bytes:
    """The part that messages to one destination share."""
    lines = ["SEND", header_line("destination", address)]
    if persistent:
        lines.append("\npersistent:true")
    if level is not None:
        lines.append(f"\nreliability:{level.value}")
    if priority != DEFAULT_PRIORITY:
        lines.append(f"\npriority:{priority}")
    if content_type:
        lines.append(_field_line("content-type", content_type, "content_type"))
    return "".join(lines).encode()


def own_lines(message: Message, added: dict[str, str] | None, temporaries: Temporaries) -> str:
    """Header lines of this message, each with its LF in front; `added` are the provider's properties. Raises JMSException."""
    lines = ""
    if (correlation := message.jms_correlation_id) is not None:
        lines += _field_line("correlation-id", correlation, "jms_correlation_id")
    if (reply_to := message.jms_reply_to) is not None:
        if not isinstance(reply_to, Queue | Topic):
            raise InvalidDestinationException(f"jms_reply_to is {reply_to!r}, which is no destination: use Queue(name) or Topic(name)")
        lines += header_line("reply-to", temporaries.address_of(reply_to))
    if (kind := message.jms_type) is not None:
        lines += _field_line("type", kind, "jms_type")
    if message.has_properties:
        lines += header_lines(message.properties)
    if added is not None:
        for name, value in added.items():
            lines += header_line(name, value)
    return lines


def _field_line(header: str, value: str, field: str) -> str:
    if wrong := wrong_text(value):
        raise MessageFormatException(f"{field} {wrong}")
    return header_line(header, value)


def encoded(lines: str) -> bytes:
    """Raises MessageFormatException."""
    if "\0" in lines:
        name = next(line for line in lines.split("\n") if "\0" in line).partition(":")[0]
        raise MessageFormatException(f"the header {name!r} of the message {wrong_text(lines)}")
    try:
        octets = lines.encode()
    except UnicodeEncodeError as error:
        raise MessageFormatException(f"a header field or property of the message cannot be written as UTF-8: {error.reason}") from None
    if len(octets) > SHORT_OCTETS and (
        len(octets) > OWN_OCTETS_MAX or octets.count(b"\n") > HEADERS_MAX or max(map(len, octets.split(b"\n"))) > LINE_OCTETS_MAX
    ):
        raise MessageFormatException(
            f"the header fields and properties of the message are too long: the broker takes {HEADERS_MAX} of at most {LINE_OCTETS_MAX} octets "
            f"each, together {OWN_OCTETS_MAX}; put the rest into the body"
        )
    return octets
