"""What tests of pages of messages do: read them, find messages on them, wait for what was sent."""

import re
import time
from html import unescape

from broker_core.engine import commands as c
from broker_core.engine.outcome import Outcome

DEAD = "queue/mq.sys.dmq"


def text_of(response, status=200):
    text = response.content.decode()
    assert response.status_code == status, text[-3000:]
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text)))


def path(node, rest="", address="queue/orders"):
    return f"/destinations/{node.number(address)}/messages{rest}"


def dead_from(node, *bodies):
    """Messages that a consumer of queue/orders fails until they die."""
    node.send(*bodies)
    node.does(c.Attach(1, 9, "queue/orders", credit=len(bodies), replenish=False))
    node.does(*[c.Settle(1, 9, [number + 1], outcome=Outcome.REJECTED) for number in range(len(bodies))], c.Detach(1, 9))


def keys(response):
    """Of the messages that a page lists."""
    return re.findall(r'name="m" value="([0-9-]+)"', response.content.decode())


def awaited(node, number, address="queue/orders"):
    patience = time.monotonic() + 20
    while time.monotonic() < patience:
        time.sleep(0.005)  # what SQL has sent is read by another thread, a poll apart
        node.does()
        if address in node.engine.shard.destinations and node.depth(address) == number:
            return
    raise AssertionError(f"{address} has not got {number}")
