"""What operators see of messages: pages of a queue or a subscription, put together from what the node says of it and the rows of the store, and one message
in a form that people read. Whoever asks brings how the node is asked and how the database is read; nothing here knows of either."""

from broker_core.engine.message import LEVEL_NAMES, STORED, StoredBody
from broker_core.engine.message_filter import NAMES, REASONS_KNOWN, TEXT_CHARACTERS_MAX, InvalidFilter, MessageFilter, read_filter

__all__ = ["LEVEL_NAMES", "NAMES", "REASONS_KNOWN", "STORED", "TEXT_CHARACTERS_MAX", "InvalidFilter", "MessageFilter", "StoredBody", "read_filter"]
