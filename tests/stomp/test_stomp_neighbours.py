"""Messages that leave together share what they have in common; each frame reads the same as if it had left alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.engine.message import Encoding, Header, Message, StoredBody
from tests.stomp.conversation import LINK, message, subscribed, whole

HEADERS = [
    Header(b"destination:/queue/a"),
    Header(b"destination:/queue/a\nkind:100%d"),
    Header(b"destination:/queue/a\nkey:a\\cb"),
    Header(b"destination:/queue/a", message_id="ID:its-own"),
    Header(b"destination:/queue/a", annotations='{"reason": "EXPIRED"}'),
    Header(b"", encoding=Encoding.AMQP),
]


def _message(header: Header, body: bytes | StoredBody, accepted_at: int, redelivered: bool) -> Message:
    made = message(b"", body, accepted_at=accepted_at)
    made.header, made.redelivered = header, redelivered
    return made


messages = st.builds(
    _message,
    st.sampled_from(HEADERS),
    st.sampled_from([b"", b"one", b"two", b"longer", StoredBody(7, 300_000)]),
    st.sampled_from([1700, 1701]),
    st.sampled_from([False, False, False, True]),
)


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
@pytest.mark.parametrize("mode", [b"auto", b"client"])
@given(together=st.lists(messages, min_size=1, max_size=12).map(lambda some: [each for each in some for _ in range(2)]))
def test_neighbours_are_written_as_each_alone(version: str, mode: bytes, together: list[Message]) -> None:
    for sequence, each in enumerate(together, 7):
        each.sequence = sequence
    one, other = subscribed(whole, mode, version), subscribed(whole, mode, version)
    one.is_delivered(LINK, *together)
    for tag, each in enumerate(together, 1):
        other.is_delivered(LINK, each, tag=tag)
    assert one.octets() == other.octets()
