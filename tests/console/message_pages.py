"""What tests of pages of messages do: read them, find messages on them, wait for what was sent."""

import re
import time
from html import unescape

from broker_core.engine import commands as c
from broker_core.engine.outcome import Outcome

DEAD = "queue/mq.sys.dmq"
FORM = {"destination": "queue/orders", "body": "hello", "content_type": "", "properties": "", "reliability": "assured", "priority": "4"}
"""Of sending a message, filled in."""


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
    """Until it holds so many messages."""
    _await(node, address, "depth", number)


def awaited_scheduled(node, number):
    """Until so many messages for queue/orders wait to be due."""
    _await(node, "queue/orders", "scheduled", number)


def _await(node, address, figure, number):
    patience = time.monotonic() + 20
    while time.monotonic() < patience:
        time.sleep(0.005)  # what SQL has sent is read by another thread, a poll apart
        node.does()
        destination = node.engine.shard.destinations.get(address)
        if destination is not None and getattr(destination, figure) == number:
            return
    raise AssertionError(f"{figure} of {address} has not come to {number}")
