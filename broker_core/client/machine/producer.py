"""Sending: at which level, whether the broker's word is waited for, and what the message says of itself afterwards (checklist items 13 to 18,
87 to 90)."""

from __future__ import annotations

from broker_core.client.bounds import check_delivery_mode
from broker_core.client.destinations import Queue, TemporaryQueue, TemporaryTopic, Topic
from broker_core.client.exceptions import IllegalStateException, InvalidDestinationException, JMSException
from broker_core.client.messages import DEFAULT_PRIORITY, NEVER, Message
from broker_core.client.settings import DeliveryMode, Settings
from broker_core.engine.address import is_reserved
from broker_core.stomp.mapping import DELAY_MS_MAX

from .confirmation import CompletionListener, Confirmation
from .sending import encoded, opening, own_lines
from .session import SessionMachine

DOUBT = "the message may or may not have been stored: send it again if a duplicate does no harm"
PERSISTENT = DeliveryMode.PERSISTENT
SECONDS_MAX = DELAY_MS_MAX // 1000
"""Ten years: what the broker takes as a delay. Who means a longer time to live means for ever."""


class ProducerMachine:
    """The figures may be changed between sends. Durations are seconds."""

    def __init__(self, session: SessionMachine, destination: Queue | Topic | None) -> None:
        session.check()
        if destination is not None:
            _check_destination(destination)
        self.session = session
        self.destination = destination
        self.delivery_mode = PERSISTENT
        self.priority = DEFAULT_PRIORITY
        self.time_to_live = 0.0
        self.delivery_delay = 0.0
        self.is_closed = False

    def set_delivery_mode(self, mode: DeliveryMode) -> None:
        self.check()
        check_delivery_mode(mode)
        self.delivery_mode = DeliveryMode(mode)

    def set_priority(self, priority: int) -> None:
        self.check()
        _check_priority(priority)
        self.priority = priority

    def set_time_to_live(self, seconds: float) -> None:
        self.check()
        if seconds:
            _milliseconds(seconds, "time_to_live")
        self.time_to_live = seconds

    def set_delivery_delay(self, seconds: float) -> None:
        self.check()
        if seconds:
            _milliseconds(seconds, "delivery_delay")
        self.delivery_delay = seconds

    def check(self) -> None:
        if self.is_closed:
            raise IllegalStateException("the producer is closed: create another one")
        self.session.check()

    def send(
        self,
        message: Message,
        instant: int,
        destination: Queue | Topic | None = None,
        delivery_mode: DeliveryMode | None = None,
        priority: int | None = None,
        time_to_live: float | None = None,
        completion: CompletionListener | None = None,
    ) -> Confirmation | None:
        """Write the message. `instant` is now, in ms since 1970. None: there is nothing to wait for."""
        target = self._target(destination)
        session = self.session
        connection = session.connection
        settings = connection.settings
        mode = self.delivery_mode
        if delivery_mode is not None:
            check_delivery_mode(delivery_mode)
            mode = delivery_mode
        priority = self.priority if priority is None else priority
        seconds = self.time_to_live if time_to_live is None else time_to_live
        if _is_overridden(settings, target):
            mode = mode if settings.override_delivery_mode is None else settings.override_delivery_mode
            priority = priority if settings.override_priority is None else settings.override_priority
            seconds = seconds if settings.override_expiration is None else settings.override_expiration
        if target.administered is not None:
            mode, priority, seconds = target.administered.over(mode, priority, seconds)
        _check_priority(priority)
        persistent = mode == PERSISTENT
        expires, delay = NEVER, 0
        address = connection.temporaries.address_of(target)
        lines = own_lines(message, self._added(settings) if settings.adds_properties else None, connection.temporaries)
        if seconds:
            expires = instant + _milliseconds(seconds, "time_to_live")
            lines += f"\nexpires:{expires}"
        if self.delivery_delay:
            delay = _milliseconds(self.delivery_delay, "delivery_delay")
            lines += f"\ndelay:{delay}"
        body = message.octets()
        level = settings.persistent_reliability if persistent else settings.nonpersistent_reliability
        head = opening(address, persistent, level, priority, message.content_type or message.default_content_type)
        if lines:
            head += encoded(lines)
        # From here on nothing is wrong with the message.
        if session.transacted:
            head += b"\ntransaction:" + session.begin()
        asked = settings.ack_on_produce
        confirmation = None
        if completion is not None or asked or (asked is None and persistent and not session.transacted):
            confirmation = Confirmation(session, DOUBT)
            confirmation.octets = octets = len(head) + len(body)
            connection.window.enter(octets)
            if completion is not None:
                confirmation.completion, confirmation.message = completion, message
                session.completing += 1
            head += b"\nreceipt:" + connection.awaiting(confirmation)
        connection.write(b"%b\ncontent-length:%d\n\n" % (head, len(body)), body, b"\0")
        message.sent_as(target, mode, priority, expires, instant, instant + delay)
        return confirmation if completion is None else None

    def _target(self, destination: Queue | Topic | None) -> Queue | Topic:
        if destination is None:
            if self.destination is None:
                raise InvalidDestinationException("this producer was created without a destination: name one in send()")
            return self.destination
        if self.destination is not None and destination != self.destination:
            raise IllegalStateException(
                f"this producer sends to {self.destination} only: create one without a destination to name another in each send()"
            )
        _check_destination(destination)
        return destination

    def _added(self, settings: Settings) -> dict[str, str]:
        """The properties that the factory wants each message to have."""
        added = {}
        if settings.set_jmsx_user_id:
            added["JMSXUserID"] = self.session.connection.username
        if settings.set_jmsx_app_id:
            added["JMSXAppID"] = settings.app_id
        if settings.set_jmsx_producer_txid and self.session.transacted:
            added["JMSXProducerTXID"] = self.session.transaction.decode()
        return added


def _is_overridden(settings: Settings, target: Queue | Topic) -> bool:
    return settings.override_headers_to_temporary_destinations or not isinstance(target, TemporaryQueue | TemporaryTopic)


def _check_destination(destination: object) -> None:
    if not isinstance(destination, Queue | Topic):
        raise InvalidDestinationException(f"{destination!r} is no destination: use Queue(name) or Topic(name)")
    if destination.is_pattern:
        raise InvalidDestinationException(f"{destination} is a pattern, from which one can only consume: send to one topic")
    if not isinstance(destination, TemporaryQueue | TemporaryTopic) and is_reserved(destination.address[1:]):
        raise InvalidDestinationException(f"{destination} is the broker's own, and nobody can send to it: consume from it, or send to another one")


def _check_priority(priority: object) -> None:
    if not isinstance(priority, int) or isinstance(priority, bool) or not 0 <= priority <= 9:
        raise JMSException(f"the priority is {priority!r}: it must be a number from 0 to 9")


def _milliseconds(seconds: float, name: str) -> int:
    if not (isinstance(seconds, int | float) and 0 < seconds <= SECONDS_MAX):
        raise JMSException(f"{name} is {seconds!r}: it must be a number of seconds, at most ten years, 0 for none")
    return max(1, round(seconds * 1000))
