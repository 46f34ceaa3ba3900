"""What is in a queue now, without waiting to see whether more comes."""

from __future__ import annotations

from tests.support.clients import Connection, Frame

END = b"the end"
READ_SECONDS_MAX = 30


def read_all(connection: Connection, queue: str) -> list[Frame]:
    """All of it, taken out. A message that is sent behind it says where it ends; none may wait for a delay, and none is held by another consumer."""
    connection.confirmed("SEND", {"destination": queue, "persistent": "true"}, END)
    connection.subscribe(queue, link="all", ack="auto", prefetch=1_000)
    frames = []
    while (frame := connection.expect("MESSAGE", READ_SECONDS_MAX)).body != END:
        frames.append(frame)
    connection.confirmed("UNSUBSCRIBE", {"id": "all"})
    return frames
