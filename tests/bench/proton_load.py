"""One python-qpid-proton sender or receiver, in a process of its own: `python -m tests.bench.proton_load --what send --port P --queue Q --seconds S`.

Against any broker of AMQP 1.0. `send`: persistent messages of 1 KiB, unsettled, as many under way as the broker gives credit for, until the time is over;
ended when all are accepted. `receive`: --messages of them, each accepted. Messages are numbered: one that comes twice or never ends the run. The octets are
written and read by hand: a proton.Message would cost the client 14 us more to send and 6 to receive, which is no work of the broker's.

Prints one line for programs: messages, seconds, and the processor time that this process took.
"""

from __future__ import annotations

import argparse
import json
import time

from proton import Delivery, Event, Message
from proton._handler import Handler
from proton.handlers import Handshaker
from proton.reactor import Container

BODY_OCTETS = 1024
STAMP_OCTETS = 8
CREDIT, CREDIT_BATCH = 1000, 250
BATCH = 100
"""Messages that are handed to proton before it looks at the socket again."""


class Load(Handler):
    """What both have in common. Proton's own handlers answer what the peer opens and closes."""

    def __init__(self, url: str, queue: str) -> None:
        super().__init__()
        self.url, self.queue = url, queue
        self.began = self.ended = 0.0
        self.problem = ""
        self.add(Handshaker())

    def on_reactor_init(self, event: Event) -> None:
        self.connection = event.container.connect(self.url, reconnect=False, heartbeat=60, allowed_mechs="PLAIN")
        self.open(event.container)

    def open(self, container: Container) -> None:
        raise NotImplementedError

    def on_link_remote_close(self, event: Event) -> None:
        self.fail(f"the broker closed the link: {event.link.remote_condition}")

    def on_transport_error(self, event: Event) -> None:
        self.fail(f"the connection broke: {event.transport.condition}")

    def fail(self, problem: str) -> None:
        self.problem = self.problem or problem
        self.connection.close()

    def finish(self) -> None:
        self.ended = time.monotonic()
        self.connection.close()


class Send(Load):
    def __init__(self, url: str, queue: str, seconds: float) -> None:
        super().__init__(url, queue)
        self.seconds = seconds
        self.sent = self.messages = 0
        octets = Message(body=b"\xff" * BODY_OCTETS, durable=True, inferred=True).encode()
        at = octets.index(b"\xff" * BODY_OCTETS)
        self.before, self.after = octets[:at], octets[at + STAMP_OCTETS :]

    def open(self, container: Container) -> None:
        self.sender = container.create_sender(self.connection, self.queue)

    def on_link_flow(self, event: Event) -> None:
        sender = self.sender
        if not self.began and sender.credit:
            self.began = time.monotonic()
        if self.is_over:
            return
        for _ in range(min(sender.credit, BATCH)):
            sender.delivery(str(self.sent))
            sender.stream(b"%b%08d%b" % (self.before, self.sent, self.after))
            sender.advance()
            self.sent += 1

    @property
    def is_over(self) -> bool:
        return self.began > 0 and time.monotonic() > self.began + self.seconds

    def on_delivery(self, event: Event) -> None:
        delivery = event.delivery
        if delivery.remote_state != Delivery.ACCEPTED:
            self.fail(f"message {delivery.tag} was not accepted but {delivery.remote_state}")
            return
        delivery.settle()
        self.messages += 1
        if self.messages % BATCH == 0:
            self.on_link_flow(event)
        if self.messages == self.sent and self.is_over:
            self.finish()


class Receive(Load):
    def __init__(self, url: str, queue: str, messages: int) -> None:
        super().__init__(url, queue)
        self.wanted = messages
        self.arrived = bytearray(messages)
        self.messages = 0

    def open(self, container: Container) -> None:
        self.receiver = container.create_receiver(self.connection, self.queue)
        self.receiver.flow(CREDIT)
        self.began = time.monotonic()

    def on_delivery(self, event: Event) -> None:
        delivery = event.delivery
        if not delivery.readable or delivery.partial:
            return
        link = delivery.link
        octets = link.recv(delivery.pending)
        link.advance()
        delivery.update(Delivery.ACCEPTED)
        delivery.settle()
        at = len(octets) - BODY_OCTETS
        number = int(octets[at : at + STAMP_OCTETS])
        if self.arrived[number]:
            self.fail(f"message {number} came twice")
            return
        self.arrived[number] = 1
        self.messages += 1
        if self.messages % CREDIT_BATCH == 0:
            link.flow(CREDIT_BATCH)
        if self.messages == self.wanted:
            self.finish()


def main() -> None:
    parser = argparse.ArgumentParser("python -m tests.bench.proton_load", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--what", choices=("send", "receive"), required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--queue", required=True)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--messages", type=int, default=0)
    chosen = parser.parse_args()
    url = f"amqp://guest:guest@127.0.0.1:{chosen.port}"
    load = Send(url, chosen.queue, chosen.seconds) if chosen.what == "send" else Receive(url, chosen.queue, chosen.messages)
    Container(load).run()
    if load.problem or not load.ended:
        parser.exit(1, f"{load.problem or 'the connection ended early'}, after {load.messages} messages\n")
    print(json.dumps({"messages": load.messages, "all": load.messages, "seconds": load.ended - load.began, "processor_seconds": time.process_time()}))


if __name__ == "__main__":
    main()
