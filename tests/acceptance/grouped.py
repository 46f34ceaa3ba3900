"""Message groups in the kill loop: which message belongs to which, who sends them, and consumers that come and go."""

from __future__ import annotations

import zlib

from tests.acceptance.groups import Group
from tests.acceptance.places import Headers
from tests.acceptance.traffic import Consumer, Producer
from tests.support.clients import Connection, Frame

LASTING = 12
"""Groups of a producer that nobody closes."""
BRIEF, BRIEF_EVERY, BRIEF_SPAN = 8, 3, 36
"""Names of those that their last message closes and that begin anew; one message in so many belongs to one; over so many messages each extends."""
SINGLE_EVERY = 10
"""Of the others one in so many belongs to no group."""
PAUSE_SECONDS_MAX = 0.5


def group_headers_of(message: str) -> dict[str, str]:
    """What a message of this name says about its group; the same however often it is sent."""
    producer, _, digits = message.rpartition("-")
    number, digest = int(digits), zlib.crc32(message.encode())
    if number % BRIEF_EVERY == 0:
        span, within = divmod(number, BRIEF_SPAN)
        closes = within + BRIEF_EVERY >= BRIEF_SPAN
        return {"JMSXGroupID": f"{producer} brief {span % BRIEF}", "JMSXGroupSeq": "-1" if closes else str(number)}
    if digest % SINGLE_EVERY == 0:
        return {}
    return {"JMSXGroupID": f"{producer} lasting {digest % LASTING}", "JMSXGroupSeq": str(number)}


def group_of(headers: Headers) -> Group | None:
    name = headers.get("JMSXGroupID")
    return Group(name, lasting=" lasting " in name) if name else None


class GroupingProducer(Producer):
    def _headers(self, send_id: str) -> dict[str, str]:
        return super()._headers(send_id) | group_headers_of(send_id.rpartition(".")[0])

    def _group(self, headers: Headers) -> Group | None:
        return group_of(headers)


class GroupConsumer(Consumer):
    """Leaves often, so that its groups have other owners. With its small prefetch it seldom has room, and what is its own waits for it."""

    leave_every = 200
    prefetch = 20

    def work(self, connection: Connection) -> None:
        self.stopping.wait(self.chance.uniform(0, PAUSE_SECONDS_MAX))
        super().work(connection)

    def _leave(self, connection: Connection) -> None:
        """In half of the cases in order, with what it holds unacknowledged."""
        if self.chance.random() < 0.5:
            connection.confirmed("UNSUBSCRIBE", {"id": "0"})
            connection.disconnect()
        else:
            super()._leave(connection)

    def _is_intact(self, frame: Frame) -> bool:
        demanded = group_headers_of(frame.headers["send-id"].rpartition(".")[0])
        found = {name: frame.headers[name] for name in ("JMSXGroupID", "JMSXGroupSeq") if name in frame.headers}
        return super()._is_intact(frame) and found == demanded
