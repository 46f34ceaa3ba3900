"""The octets of bare messages as an AMQP client that nobody here wrote sends them and gets them."""

from __future__ import annotations

from typing import Any

from tests.acceptance.proton_client import PATIENCE, connected, proton
from tests.support.service import Service

# isort: split
from proton import Delivery, Handler, Message

REPLAYED = "JMS_SURETY_REPLAYED"


class _Taker(Handler):
    """Takes one delivery as it comes."""

    def __init__(self) -> None:
        super().__init__()
        self.octets = b""

    def on_delivery(self, event: Any) -> None:
        delivery = event.delivery
        if event.receiver is None or not delivery.readable or delivery.partial:
            return
        self.octets = event.receiver.recv(delivery.pending)
        delivery.update(Delivery.ACCEPTED)
        delivery.settle()


def sent(service: Service, queue: str, number: int) -> bytes:
    """A message with all sections, of values of many kinds."""
    message = Message(
        id=proton.ulong(number), subject="kind", body={"a": [1, 2.5, "x" * 300, None, b"\0\xff"], "n": number}, properties={"n": number, "s": "\u00e9"},
        durable=True, priority=7, correlation_id=b"c", reply_to="queue://replies", content_type="odd/one", annotations={proton.symbol("x-mine"): 3},
    )  # fmt: skip
    with connected(service) as connection:
        connection.create_sender(queue).send(message)
    return _bare(message.encode())


def taken(service: Service, queue: str) -> tuple[bytes, str | None]:
    """Of the next message, which is acknowledged; and of which one it is a replay."""
    taker = _Taker()
    with connected(service) as connection:
        receiver = connection.create_receiver(queue, credit=1, handler=taker)
        connection.wait(lambda: bool(taker.octets), timeout=PATIENCE)
        receiver.close()
    whole = Message()
    whole.decode(taker.octets)
    annotations = {str(name): value for name, value in (whole.annotations or {}).items()}
    return _bare(taker.octets), next((value for name, value in annotations.items() if REPLAYED.lower() in name.lower().replace("-", "_")), None)


def _bare(octets: bytes) -> bytes:
    """From the first section on that is neither header nor annotations: each of those is a list or a map with its size in front."""
    while octets[2] < 0x73:
        kind, size = octets[3], int.from_bytes(octets[4:8])
        octets = octets[4 if kind == 0x45 else 5 + octets[4] if kind in (0xC0, 0xC1) else 8 + size :]
    return octets
