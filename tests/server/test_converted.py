"""A message that came by AMQP, at a STOMP client's socket: chosen by its typed properties, and said in STOMP's words; from the store as from memory."""

from __future__ import annotations

import pytest

from broker_core.amqp.performatives import MessageHeader, MessageProperties
from broker_core.engine.commands import Send
from broker_core.engine.message import StoredBody
from tests.amqp.messages import data, message, value, written

from .conftest import Run
from .rig import Broker, turns


@pytest.mark.parametrize("restarted", [False, True])
def test_a_stomp_client_chooses_and_gets_it(run: Run, restarted: bool) -> None:
    async def story() -> None:
        broker = await Broker().start()
        producer = await broker.client()
        for count in (3, 5):
            sent = message(written(MessageHeader(True), MessageProperties(subject="order", group_id="g"), value(f"message {count}"), count=count))
            broker.host.submit([Send(producer.peer._number, None, "queue/q", sent)])
        await turns()
        if restarted:
            await broker.end()
            broker = await Broker(broker.database).start()
        consumer = await broker.client()
        consumer.say("SUBSCRIBE", ("id", "0"), ("destination", "/queue/q"), ("ack", "auto"), ("selector", "count > 4 AND JMSType = 'order'"))
        await turns()
        ((command, headers, body),) = consumer.take()
        assert (command, body, headers["type"], headers["count"], headers["JMSXGroupID"]) == ("MESSAGE", b"message 5", "order", "5", "g")
        await broker.end()

    run(story())


def test_a_large_body_is_streamed(run: Run) -> None:
    async def story() -> None:
        broker = await Broker().start()
        consumer = await broker.client("q")

        async def chunks():
            yield b"x" * 300_000

        body = await broker.store.write_body(chunks())
        sent = message(written(MessageHeader(True), body=data(b"x" * 300_000)))
        sent.body = StoredBody(body, 300_000)
        broker.host.submit([Send(consumer.peer._number, None, "queue/q", sent)])
        await turns()
        ((command, headers, octets),) = consumer.take()
        assert (command, headers["content-type"], octets == b"x" * 300_000) == ("MESSAGE", "application/octet-stream", True)
        await broker.end()

    run(story())
