"""One connection of the Python client against a broker, in a process of its own: `python -m tests.bench.client_load --what send --port P --messages N`.

Prints messages a second. `send`: persistent with asynchronous confirms; `one`: persistent, each waited for; `receive`: what a former `send` left.
"""

from __future__ import annotations

import argparse
import asyncio
import time

from broker_core.client import AcknowledgeMode, ConnectionFactory, Message, Queue, aio

BODY = b"x" * 1024
QUEUE = Queue("bench.client")
PATIENCE_SECONDS = 60


class Confirmed:
    """Counts what was confirmed. A message that was refused ends the run."""

    def __init__(self) -> None:
        self.messages = 0

    def __call__(self, message: Message, error: Exception | None) -> None:
        if error is not None:
            raise error
        self.messages += 1


def send(address: str, messages: int) -> float:
    confirmed = Confirmed()
    with ConnectionFactory(address_list=address).create_connection() as connection, connection.create_session() as session:
        producer = session.create_producer(QUEUE)
        began = time.monotonic()
        for _ in range(messages):
            producer.send(BODY, completion_listener=confirmed)
        producer.flush()
        took = time.monotonic() - began
    assert confirmed.messages == messages
    return took


def one(address: str, messages: int) -> float:
    with ConnectionFactory(address_list=address).create_connection() as connection, connection.create_session() as session:
        producer = session.create_producer(QUEUE)
        began = time.monotonic()
        for _ in range(messages):
            producer.send(BODY)
        return time.monotonic() - began


def receive(address: str, messages: int) -> float:
    with (
        ConnectionFactory(address_list=address).create_connection() as connection,
        connection.create_session(AcknowledgeMode.DUPS_OK) as session,
        session.create_consumer(QUEUE) as consumer,
    ):
        began = time.monotonic()
        for _ in range(messages):
            message = consumer.receive(PATIENCE_SECONDS)
            assert message is not None and len(message.body) == len(BODY)
        return time.monotonic() - began


async def send_aio(address: str, messages: int) -> float:
    confirmed = Confirmed()
    async with aio.ConnectionFactory(address_list=address).create_connection() as connection, connection.create_session() as session:
        producer = session.create_producer(QUEUE)
        began = time.monotonic()
        for _ in range(messages):
            await producer.send(BODY, completion_listener=confirmed)
        await producer.flush()
        took = time.monotonic() - began
    assert confirmed.messages == messages
    return took


WAYS = {"send": send, "one": one, "receive": receive, "send-aio": lambda address, messages: asyncio.run(send_aio(address, messages))}


def main() -> None:
    parser = argparse.ArgumentParser("python -m tests.bench.client_load", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--what", choices=WAYS, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--messages", type=int, required=True)
    chosen = parser.parse_args()
    print(chosen.messages / WAYS[chosen.what](f"stomp://127.0.0.1:{chosen.port}", chosen.messages))


if __name__ == "__main__":
    main()
