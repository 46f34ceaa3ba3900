"""Messages of one protocol as another one's clients get them: docs/amqp.md has the tables. Pure. It happens at delivery and never where a message is sent:
what is stored is what came (R15)."""

from __future__ import annotations

from collections.abc import Mapping

from broker_core.amqp import mapping as amqp
from broker_core.engine.message import Encoding, Header
from broker_core.engine.properties import Value
from broker_core.stomp import mapping as stomp

from .to_amqp import ToAmqp
from .to_stomp import to_stomp

__all__ = ["ToAmqp", "decode", "to_stomp"]


def decode(header: Header) -> Mapping[str, Value]:
    """What a selector sees of a message, whatever protocol it came by."""
    return amqp.decode(header) if header.encoding == Encoding.AMQP else stomp.decode(header)
