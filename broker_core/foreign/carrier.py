"""Carries messages from one broker to another: at least once, in the order in which they were delivered, nothing of them held here but what names them.

A message is acknowledged at the source when the target's RECEIPT has come. A large body passes through as it comes. When either connection ends, both
do, and what had no RECEIPT goes back to the source's queue, to be carried again; the name by which the target can tell a duplicate goes with every message.

An ERROR of the target that names a message, by its receipt, is a failure of that one: it is refused at the source, whose redelivery policy says what
becomes of it. One that names none is of the connection, unless only one message is on its way: so the next carrier should be *cautious*, and take them one
by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from broker_core.stomp.frames import PART, Event
from broker_core.stomp.limits import COMMENT_CHARACTERS_MAX
from broker_core.stomp.sections import Malformed, Section

from .end import Access, End, Ended
from .translating import sending

WINDOW = 100
"""Messages of one address on their way. At 50 ms there and back 2,000 a second, of each address."""
ON_THEIR_WAY_MAX = 10_000
"""Of all addresses. Some 200 octets each are kept."""
REFUSE_MS_MAX = 3_000
"""For the source to take note that a message was refused."""


class Carrier:
    """`routes`: of each address at the source, the one at the target. `ended` says why it is over, once it is."""

    def __init__(
        self,
        routes: Mapping[str, str],
        source: Access,
        target: Access,
        now: int,
        *,
        cautious: bool = False,
        window: int = WINDOW,
        redacted: Callable[[str], str] = str,
    ) -> None:
        """`redacted`: what a broker said, as others may read it."""
        self.source, self.target = End(source, now), End(target, now)
        self.ended = ""
        """A sentence, or empty. It may repeat what a broker said."""
        self.refused = False
        """It ended for a message that the target would not take."""
        self.nameless = False
        """It ended by an ERROR of the target that named no message while some were on their way."""
        self.carried = 0
        """Messages that the target has confirmed."""
        self._routes = list(routes.items())
        self._cautious = cautious
        self._window = 1 if cautious else window
        self._way: dict[str, str] = {}
        """Of each message that has no RECEIPT yet, by its receipt: what an ACK of it says."""
        self._receipts = 0
        self._passing = False
        """A large body has begun to pass."""
        self._unread: list[bytes] = []
        """Of the source, while nothing should be read from it."""
        self._redacted = redacted
        self._told = ""
        """Why a message was refused."""
        self._refusing = 0
        """The instant at which the source should have taken note; 0: nothing is refused."""

    @property
    def is_open(self) -> bool:
        """Both brokers have let us in."""
        return self.source.is_open and self.target.is_open

    @property
    def amid_message(self) -> bool:
        """A large body is passing through."""
        return self._passing

    @property
    def on_their_way(self) -> int:
        return len(self._way)

    @property
    def wants_pause(self) -> bool:
        """Nothing should be read from the source now: as much is on its way as may be."""
        return not self._passing and not self._refusing and len(self._way) >= (1 if self._cautious else ON_THEIR_WAY_MAX)

    def next_deadline(self) -> int | None:
        known = [each for each in (self.source.next_deadline(), self.target.next_deadline(), self._refusing or None) if each is not None]
        return min(known, default=None)

    # -- what happens ---------------------------------------------------------------------------------------------------------------------
    def received(self, end: End, data: bytes, now: int) -> None:
        """Octets of the source or of the target."""
        if self.ended:
            return
        try:
            if end is self.source:
                self._read_source(data, now)
            elif not self._refusing:
                self._read_target(data, now)
                self._read_source(b"", now)
        except Ended as reason:
            self._end(str(reason))
        except Malformed as malformed:
            self._end(f"{end.access.broker} sent what is no STOMP: {malformed.sentence}")

    def lost(self, end: End, reason: str) -> None:
        """The connection is gone. When a message was refused the target's must go; the source is told all the same."""
        if not (self._refusing and end is self.target):
            self._end(f"{end.access.broker}: {reason or 'the connection was closed'}")

    def tick(self, now: int) -> None:
        if self.ended:
            return
        try:
            if self._refusing:
                if now >= self._refusing:
                    self._end(self._told)
                return
            self.source.tick(now, excused=self.wants_pause)
            self.target.tick(now)
        except Ended as reason:
            self._end(str(reason))

    def _end(self, sentence: str) -> None:
        if not self.ended:
            self.ended = self._told if self._refusing else self._redacted(sentence)

    # -- the target -----------------------------------------------------------------------------------------------------------------------
    def _read_target(self, data: bytes, now: int) -> None:
        events = self.target.events(data, now)
        try:
            for event in events:
                self._of_target(event, now)
                if self._refusing:
                    break
        finally:
            events.close()

    def _of_target(self, event: Event, now: int) -> None:
        section, _, body = event
        command, headers = section.command, section.headers
        if command == "RECEIPT":
            ack = self._way.pop(headers.get("receipt-id", ""), None)
            if ack is None:
                raise Ended(f"{self.target.access.broker} confirmed what it was not sent")
            self.carried += 1
            self.source.write("ACK", [("id", ack)])
        elif command == "CONNECTED":
            self._connected(self.target, headers, now)
        elif command == "ERROR":
            self._target_error(headers, body or b"", now)
        else:
            raise Ended(f"{self.target.access.broker} sent {'a MESSAGE' if section is PART else command}, for which nobody asked")

    def _target_error(self, headers: dict[str, str], body: bytes, now: int) -> None:
        told = _text(headers, body)
        receipt = headers.get("receipt-id", "")
        if receipt not in self._way and self._cautious and len(self._way) == 1:
            receipt = next(iter(self._way))
        if receipt not in self._way:
            self.nameless = bool(self._way)
            raise Ended(f"{self.target.access.broker} said: {told}")
        self._told = f"{self.target.access.broker} would not take a message: {self._redacted(told)}"
        self.refused = True
        self._refusing = now + REFUSE_MS_MAX
        nack = [("id", self._way[receipt]), ("comment", self._told[:COMMENT_CHARACTERS_MAX]), ("receipt", "refused")]
        self.source.write("NACK", nack)

    # -- the source -----------------------------------------------------------------------------------------------------------------------
    def _read_source(self, data: bytes, now: int) -> None:
        """As much as may be on its way; the rest is looked at when something has arrived."""
        if data:
            self._unread.append(data)
        if self.wants_pause or not (self._unread or not self.source.exhausted):
            return
        unread, self._unread = b"".join(self._unread), []
        events = self.source.events(unread, now)
        try:
            for event in events:
                self._of_source(event, now)
                if self.ended or self.wants_pause:
                    break
        finally:
            events.close()

    def _of_source(self, event: Event, now: int) -> None:
        section, _, body = event
        command = section.command
        if self._refusing:
            if command == "RECEIPT":
                self._end("")
        elif section is PART:
            if not self._passing:
                self._begin(self.source.part_of, now)
                self._passing = True
            self.target.go_on(body or b"")
        elif command == "MESSAGE":
            if not self._passing:
                self._begin(section, now)
            self.target.go_on(body or b"")
            self.target.finish()
            self._passing = False
        elif command == "CONNECTED":
            self._connected(self.source, section.headers, now)
        elif command == "ERROR":
            raise Ended(f"{self.source.access.broker} said: {_text(section.headers, body or b'')}")

    def _begin(self, section: Section, now: int) -> None:
        headers = section.headers
        ack, subscription = headers.get("ack"), headers.get("subscription", "")
        if section.command != "MESSAGE" or not self.is_open:
            raise Ended(f"{self.source.access.broker} sent a {section.command} that nobody asked for")
        if not ack or not (subscription.isascii() and subscription.isdigit() and len(subscription) < 6 and int(subscription) < len(self._routes)):
            raise Ended(f"{self.source.access.broker} delivered a message that cannot be acknowledged, or for nobody")
        destination = self._routes[int(subscription)][1]
        said = sending(headers, destination, now, source=self.source.access.kind, target=self.target.access.kind)
        self._receipts += 1
        receipt = str(self._receipts)
        self._way[receipt] = ack
        said.append(("receipt", receipt))
        if "content-length" in headers:
            said.append(("content-length", headers["content-length"]))
        self.target.begin("SEND", said)

    def _connected(self, end: End, headers: dict[str, str], now: int) -> None:
        if end.is_open:
            raise Ended(f"{end.access.broker} let us in twice")
        end.connected(headers, now)
        if not self.is_open:
            return
        window = str(self._window)
        for number, (address, _) in enumerate(self._routes):
            wanted = [("id", str(number)), ("destination", address), ("ack", "client-individual")]
            self.source.write("SUBSCRIBE", [*wanted, ("prefetch-count", window), ("activemq.prefetchSize", window)])


def _text(headers: dict[str, str], body: bytes) -> str:
    """What an ERROR says."""
    message, more = headers.get("message", ""), body[: 4 * COMMENT_CHARACTERS_MAX].decode("utf-8", "replace").strip()
    return f"{message}: {more}" if message and more and more != message else message or more or "an ERROR without a word"
