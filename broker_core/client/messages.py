"""Messages: header fields by their JMS names, typed properties, and a body of one of five kinds.

| kind | body | `content-type` on the wire |
|---|---|---|
| TextMessage | `text`, a str | `text/plain;charset=utf-8` |
| BytesMessage | `data`, bytes | `application/octet-stream` |
| ObjectMessage | `object`, whatever JSON can say | `application/json` |
| MapMessage | `map`, a dict; an ObjectMessage too | `application/json` |
| Message | none | none |

What others send is read by the same table: `text/...` is text, JSON with an object at its top a MapMessage, without a content-type it is text if
it is valid UTF-8 and bytes if not, anything else bytes. Nothing is ever unpickled.

A received message is read on demand: its header section is split when a field or a property is first asked for.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar, overload

from .destinations import Queue, Topic
from .exceptions import MessageFormatException, MessageNotWriteableException
from .headers import delivery_mode_in, destination_in, number_in, properties_in, split
from .properties import Properties
from .settings import DeliveryMode

NEVER = 0
DEFAULT_PRIORITY = 4


class Acknowledger(Protocol):
    """The session that delivered a message."""

    def acknowledge(self, message: Message) -> None: ...
    def acknowledge_this_message(self, message: Message) -> None: ...
    def acknowledge_up_through_this_message(self, message: Message) -> None: ...


T = TypeVar("T")


class Field(Generic[T]):
    """A header field: what was set, else what the received headers say, else the default."""

    def __init__(self, read: Callable[[dict[str, str]], T], default: T) -> None:
        self._read = read
        self._default = default
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, message: None, owner: type) -> Field[T]: ...
    @overload
    def __get__(self, message: Message, owner: type) -> T: ...
    def __get__(self, message: Message | None, owner: type) -> T | Field[T]:
        if message is None:
            return self
        fields = message._fields
        if self._name in fields:
            value: T = fields[self._name]
            return value
        if message._section is None:
            return self._default
        value = fields[self._name] = self._read(message._split())
        return value

    def __set__(self, message: Message, value: T) -> None:
        message._fields[self._name] = value


class Message:
    """A message without a body, and what all kinds have. Fields that send() sets say what it was sent as."""

    __slots__ = ("_acknowledger", "_body", "_delivery", "_fields", "_headers", "_properties", "_read_only", "_section")

    default_content_type: ClassVar[str] = ""
    content_type = Field[str](lambda headers: headers.get("content-type", ""), "")
    """Empty: that of the kind, see the table."""
    jms_correlation_id = Field[str | None](lambda headers: headers.get("correlation-id"), None)
    """Of the message that this one answers, or whatever else links the two."""
    jms_reply_to = Field[Queue | Topic | None](lambda headers: destination_in(headers.get("reply-to")), None)
    jms_type = Field[str | None](lambda headers: headers.get("type"), None)
    jms_destination = Field[Queue | Topic | None](lambda headers: destination_in(headers.get("destination")), None)
    """Set by send() and the broker, as are all that follow: what an application writes there has no effect."""
    jms_delivery_mode = Field(delivery_mode_in, DeliveryMode.PERSISTENT)
    jms_priority = Field(lambda headers: number_in(headers.get("priority"), DEFAULT_PRIORITY), DEFAULT_PRIORITY)
    jms_expiration = Field(lambda headers: number_in(headers.get("expires"), NEVER), NEVER)
    """Instant in ms since 1970; 0: never."""
    jms_delivery_time = Field(lambda headers: number_in(headers.get("timestamp"), 0) + number_in(headers.get("delay"), 0), 0)
    """Earliest instant of its delivery, in ms since 1970."""
    jms_timestamp = Field(lambda headers: number_in(headers.get("timestamp"), 0), 0)
    """When it was sent (set by send), or accepted by the broker (received), in ms since 1970."""
    jms_message_id = Field[str | None](lambda headers: headers.get("message-id"), None)
    """Given by the broker: known to those who receive the message."""
    jms_redelivered = Field(lambda headers: headers.get("redelivered") == "true", False)
    """It may have been delivered before."""

    def __init__(self) -> None:
        self._section: bytes | None = None
        self._headers: dict[str, str] | None = None
        self._fields: dict[str, Any] = {}
        self._properties: Properties | None = None
        self._body: Any = None
        self._read_only = False
        self._delivery: Any = None
        self._acknowledger: Acknowledger | None = None

    @classmethod
    def received(cls, section: bytes, body: bytes, delivery: Any, acknowledger: Acknowledger | None) -> Self:
        """As the broker sent it."""
        message = cls.__new__(cls)
        message._section = section
        message._headers = message._properties = None
        message._fields = {}
        message._body = body
        message._read_only = True
        message._delivery = delivery
        message._acknowledger = acknowledger
        return message

    def __repr__(self) -> str:
        return f"{type(self).__name__}(jms_message_id={self.jms_message_id!r}, jms_destination={str(self.jms_destination)!r})"

    # -- body and properties ----------------------------------------------------------------------------------------------------------
    @property
    def body(self) -> Any:
        """What the kind carries: str, bytes, a JSON value, or None."""
        return None

    @property
    def properties(self) -> Properties:
        properties = self._properties
        if properties is None:
            properties = Properties() if self._section is None else Properties(properties_in(self._split()), read_only=True)
            self._properties = properties
        return properties

    @property
    def delivery(self) -> Any:
        """For the provider: how it came."""
        return self._delivery

    @property
    def has_properties(self) -> bool:
        """Cheaper to ask than `properties`, which must be made to be looked at."""
        return bool(self.properties) if self._section is not None or self._properties is not None else False

    @property
    def headers(self) -> dict[str, str]:
        """A copy of all STOMP headers of a received message."""
        return dict(self._split())

    def clear_properties(self) -> None:
        """Remove them, and let new ones be set."""
        self._properties = Properties()

    def clear_body(self) -> None:
        """Remove it, and let a new one be set."""
        self._read_only = False
        self._body = None

    def octets(self) -> bytes:
        """The body on the wire. Raises MessageFormatException."""
        return b""

    def sent_as(
        self, destination: Queue | Topic, mode: DeliveryMode, priority: int, expiration: int, timestamp: int, delivery_time: int
    ) -> None:
        """For the provider: what send() made of it."""
        self._fields.update(
            jms_destination=destination, jms_delivery_mode=mode, jms_priority=priority, jms_expiration=expiration, jms_timestamp=timestamp,
            jms_delivery_time=delivery_time, jms_message_id=None, jms_redelivered=False,
        )  # fmt: skip

    def _split(self) -> dict[str, str]:
        if self._headers is None:
            self._headers = {} if self._section is None else split(self._section)
        return self._headers

    @property
    def is_best_effort(self) -> bool:
        """It came at that level of reliability, by its sender's wish or its destination's."""
        section = self._section
        at = -1 if section is None else section.find(_RELIABILITY)
        return at >= 0 and section.startswith(b"best-effort", at + len(_RELIABILITY))  # type: ignore[union-attr]

    def _check_writeable(self) -> None:
        if self._read_only:
            raise MessageNotWriteableException("the body of a received message is read-only: call clear_body() first")

    # -- acknowledging ----------------------------------------------------------------------------------------------------------------
    def acknowledge(self) -> None:
        """CLIENT: all that the session has consumed; INDIVIDUAL: this message. In other modes nothing, for the session does it by itself."""
        if self._acknowledger is not None:
            self._acknowledger.acknowledge(self)

    def acknowledge_this_message(self) -> None:
        """CLIENT and INDIVIDUAL: this message alone. In other modes IllegalStateException."""
        if self._acknowledger is not None:
            self._acknowledger.acknowledge_this_message(self)

    def acknowledge_up_through_this_message(self) -> None:
        """CLIENT: what the session has consumed up to this message, and not what came after. In other modes IllegalStateException."""
        if self._acknowledger is not None:
            self._acknowledger.acknowledge_up_through_this_message(self)


class TextMessage(Message):
    """A str."""

    __slots__ = ()

    default_content_type = "text/plain;charset=utf-8"

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self.text = text

    @property
    def text(self) -> str:
        body = self._body
        if body.__class__ is bytes:
            try:
                body = self._body = body.decode()
            except UnicodeDecodeError:
                raise MessageFormatException("the body of the message is said to be text and is not valid UTF-8: read `message.octets()`") from None
        return body or ""

    @text.setter
    def text(self, text: str) -> None:
        self._check_writeable()
        if not isinstance(text, str):
            raise MessageFormatException(f"the text of a TextMessage must be a str, not {type(text).__name__}: BytesMessage carries bytes")
        self._body = text

    @property
    def body(self) -> str:
        return self.text

    def octets(self) -> bytes:
        body = self._body
        if body.__class__ is bytes:
            return body
        try:
            return (body or "").encode()
        except UnicodeEncodeError as error:
            raise MessageFormatException(f"the text of the message cannot be written as UTF-8: {error.reason}") from None


class BytesMessage(Message):
    """Octets."""

    __slots__ = ()

    default_content_type = "application/octet-stream"

    def __init__(self, data: bytes = b"") -> None:
        super().__init__()
        self.data = data

    @property
    def data(self) -> bytes:
        return self._body or b""

    @data.setter
    def data(self, data: bytes) -> None:
        self._check_writeable()
        if not isinstance(data, bytes | bytearray | memoryview):
            raise MessageFormatException(f"the data of a BytesMessage must be bytes, not {type(data).__name__}: TextMessage carries str")
        self._body = bytes(data)

    @property
    def body(self) -> bytes:
        return self.data

    def octets(self) -> bytes:
        return self.data


class ObjectMessage(Message):
    """A value as JSON: None, bool, int, float, str, and lists and dicts of such."""

    __slots__ = ("_value",)

    default_content_type = "application/json"

    def __init__(self, value: Any = None) -> None:
        super().__init__()
        self._value = value

    @classmethod
    def received(cls, section: bytes, body: bytes, delivery: Any, acknowledger: Acknowledger | None) -> Self:
        message = super().received(section, body, delivery, acknowledger)
        message._value = _NOT_DECODED
        return message

    @property
    def object(self) -> Any:
        if self._value is _NOT_DECODED:
            self._value = self._decoded()
        return self._value

    @object.setter  # noqa: A003  # JMS's name
    def object(self, value: Any) -> None:
        self._check_writeable()
        self._value = value

    @property
    def body(self) -> Any:
        return self.object

    def clear_body(self) -> None:
        super().clear_body()
        self._value = None

    def octets(self) -> bytes:
        if self._read_only:
            return self._body or b""
        try:
            return json.dumps(self._value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise MessageFormatException(f"the body of a {type(self).__name__} must be what JSON can say: {error}") from None

    def _decoded(self) -> Any:
        try:
            return json.loads(self._body or b"null")
        except (ValueError, RecursionError) as error:
            raise MessageFormatException(f"the body of the message is said to be JSON and is not: {error}; read `message.octets()`") from None


_NOT_DECODED: Any = object()


class MapMessage(ObjectMessage):
    """Names and values as a JSON object."""

    __slots__ = ()

    def __init__(self, values: dict[str, Any] | None = None) -> None:
        super().__init__({} if values is None else values)

    @property
    def map(self) -> dict[str, Any]:
        value = self.object
        if not isinstance(value, dict):
            raise MessageFormatException(f"the body of a MapMessage must be a dict, not {type(value).__name__}: ObjectMessage carries other values")
        return value

    @map.setter  # noqa: A003  # JMS's name
    def map(self, values: dict[str, Any]) -> None:
        self.object = values

    def clear_body(self) -> None:
        super().clear_body()
        self._value = {}

    def octets(self) -> bytes:
        if not self._read_only and not all(isinstance(name, str) for name in self.map):
            raise MessageFormatException("the names in a MapMessage must be str: JSON has no others")
        return super().octets()


# -- reading --------------------------------------------------------------------------------------------------------------------------
_CONTENT_TYPE = b"\ncontent-type:"
_RELIABILITY = b"\nreliability:"


def kind_of(section: bytes, body: bytes) -> type[Message]:
    """Which kind a received message is; see the table above."""
    at = section.find(_CONTENT_TYPE)
    if at < 0:
        return (TextMessage if _is_utf8(body) else BytesMessage) if body else Message
    start = at + len(_CONTENT_TYPE)
    if section.startswith(b"text/", start):
        return TextMessage
    if section.startswith(b"application/json", start):
        return MapMessage if body.lstrip(b" \t\r\n")[:1] == b"{" else ObjectMessage
    return BytesMessage


def as_message(content: Message | str | bytes | dict[str, Any]) -> Message:
    """A message as it is, or the kind that carries what is given."""
    if isinstance(content, Message):
        return content
    if isinstance(content, str):
        return TextMessage(content)
    return MapMessage(content) if isinstance(content, dict) else BytesMessage(content)


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True
