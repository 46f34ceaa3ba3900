"""Rules of access as clients of both protocols meet them, while they are connected."""

from __future__ import annotations

import asyncio

from broker_core.amqp.frames import frame
from broker_core.amqp.performatives import ACCEPTED, RECEIVER, Attach, Begin, Close, Detach, Disposition, Rejected
from broker_core.engine.access import OPERATIONS, Rule
from broker_core.engine.commands import SetAccess
from tests.amqp.conversation import message
from tests.server.rig import Broker, turns
from tests.server.test_amqp_peer import Client, told

OPEN = [Rule(">", operation, True, "*") for operation in OPERATIONS]
UNAUTHORIZED = "amqp:unauthorized-access"


def deny(broker: Broker, *operations: str) -> None:
    broker.host.submit([SetAccess([*OPEN, *(Rule("queue/q", operation, False, "guest") for operation in operations)], {})])


def noted(broker: Broker) -> list[tuple[str, str, str]]:
    """Who was refused which operation on what: on its way to the audit."""
    rows = broker.node.refused_uses.take(asyncio.get_running_loop().time())
    return [(row.who, row.sentence.partition(":")[0], row.address) for row in rows]


def test_by_amqp_a_forbidden_send_is_rejected_and_the_link_stays() -> None:
    async def story(broker: Broker) -> None:
        client = await Client(broker).opens()
        await client.produces()
        assert Disposition(RECEIVER, 0, None, True, ACCEPTED) in await client.sends(message(b"before"))
        deny(broker, "produce")
        [rejected] = [each.state for each in await client.sends(message(b"after"), 1) if isinstance(each, Disposition)]
        assert isinstance(rejected, Rejected)
        assert (rejected.error.condition, "produce queue/q" in rejected.error.description) == (UNAUTHORIZED, True)
        assert noted(broker) == [("client guest", "produce", "queue/q")]
        broker.host.submit([SetAccess(OPEN, {})])
        assert Disposition(RECEIVER, 2, None, True, ACCEPTED) in await client.sends(message(b"again"), 2)

    told(story)


def test_by_amqp_a_forbidden_consumer_is_refused_and_one_that_is_there_detached() -> None:
    async def story(broker: Broker) -> None:
        client = await Client(broker).opens()
        await client.consumes()
        deny(broker, "consume")
        [detach] = await client.hears()
        assert (type(detach), detach.error.condition) == (Detach, UNAUTHORIZED)
        assert noted(broker) == [("client guest", "consume", "queue/q")]
        await client.says(frame(0, Detach(0, True)))
        heard = await client.consumes()
        assert [type(each) for each in heard if not isinstance(each, Attach)] == [Detach]
        assert heard[-1].error.condition == UNAUTHORIZED
        await client.produces()
        assert await client.sends(message(b"x")), "what is not forbidden goes on"

    told(story)


def test_by_amqp_an_account_has_no_more_sessions_than_it_may() -> None:
    async def story(broker: Broker) -> None:
        broker.accounts.sessions["guest"] = 2
        client = await Client(broker).opens()
        assert [type(each) for each in await client.says(frame(1, Begin(None, 0, 1000, 1000)))] == [Begin]
        [close] = await client.says(frame(2, Begin(None, 0, 1000, 1000)))
        assert (type(close), close.error.condition) == (Close, "amqp:not-allowed")
        other = await Client(broker).opens("other", login="shop")
        assert [type(each) for each in await other.says(frame(2, Begin(None, 0, 1000, 1000)))] == [Begin], "others have no such limit"

    told(story)


def test_by_stomp_a_forbidden_send_is_an_error_that_names_it() -> None:
    async def story(broker: Broker) -> None:
        client = await broker.client()
        client.send(b"before", "1")
        await turns()
        assert client.receipts() == ["1"]
        deny(broker, "produce")
        client.send(b"after", "2")
        await turns()
        [(command, headers, body)] = client.take()
        assert (command, headers["message"], headers["receipt-id"]) == ("ERROR", "access denied", "2")
        assert body.endswith(b"produce queue/q")
        assert broker.engine.shard.destinations["queue/q"].depth == 1
        assert noted(broker) == [("client guest", "produce", "queue/q")]

    told(story)


def test_a_transaction_that_may_not_send_there_is_told_once() -> None:
    async def story(broker: Broker) -> None:
        deny(broker, "produce")
        client = await broker.client()
        client.say("BEGIN", ("transaction", "t"))
        client.say("SEND", ("destination", "/queue/q"), ("transaction", "t"))
        client.say("COMMIT", ("transaction", "t"))
        await turns()
        assert client.commands() == ["ERROR"]
        assert noted(broker) == [("client guest", "produce", "queue/q")]

    told(story)


def test_by_stomp_a_forbidden_consumer_or_browser_is_refused_and_others_go_on() -> None:
    async def story(broker: Broker) -> None:
        deny(broker, "consume", "browse")
        other = await broker.client("r")
        for headers in ([("browser", "true")], []):
            client = await broker.client()
            client.say("SUBSCRIBE", ("id", "1"), ("destination", "/queue/q"), *headers)
            await turns()
            assert [(command, told["message"]) for command, told, _ in client.take()] == [("ERROR", "access denied")]
        assert noted(broker) == [("client guest", "browse", "queue/q"), ("client guest", "consume", "queue/q")]
        other.send(b"m", "1", "r")
        await turns()
        assert sorted(other.commands()) == ["MESSAGE", "RECEIPT"]

    told(story)
