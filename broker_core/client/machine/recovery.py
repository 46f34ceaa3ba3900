"""Asking the broker which branches are prepared, or were ended by hand. It answers by a message, to a temporary queue that is for nothing else; so a
connection subscribes to that when somebody asks for the first time, and again when it was lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker_core.client.exceptions import JMSException
from broker_core.client.xid import BranchState, Xid
from broker_core.stomp.sections import Malformed

from .confirmation import Confirmation
from .reader import Delivery

if TYPE_CHECKING:
    from .connection import ConnectionMachine

ADDRESS = b"/temp-queue/xa"
Then = Callable[[list[Xid]], None]


@dataclass(slots=True)
class Asked:
    confirmation: Confirmation
    xids: list[Xid]
    """Of the pages that have come."""
    then: Then


class Recovery:
    """Of one connection."""

    def __init__(self, connection: ConnectionMachine) -> None:
        self.subscription = b"%d" % connection.number()
        self._connection = connection
        self._epoch = -1
        """In which it is subscribed."""
        self._asked: dict[bytes, Asked] = {}

    def ask(self, confirmation: Confirmation, then: Then) -> None:
        """`then` is called with all xids, and settles the confirmation or asks for something else with it. What goes wrong settles it, too."""
        connection = self._connection
        if connection.is_open and self._epoch != connection.epoch:
            self._epoch = connection.epoch
            self._asked.clear()
            connection.write(b"SUBSCRIBE\nid:%b\ndestination:%b\nack:auto\n\n\0" % (self.subscription, ADDRESS))
        self._ask(Asked(confirmation, [], then))

    def _ask(self, asked: Asked) -> None:
        """For what comes behind the pages that are there. The message names the question; its receipt is not asked for, as it may come before."""
        connection = self._connection
        name = connection.awaiting(asked.confirmation)
        if connection.is_open:
            self._asked[name] = asked
            after = f"after:{asked.xids[-1]}\n".encode() if asked.xids else b""
            connection.write(
                b"SEND\ndestination:/queue/mq.sys.xa\noperation:recover\nreply-to:%b\ncorrelation-id:%b\n%b\n\0" % (ADDRESS, name, after)
            )

    def arrived(self, delivery: Delivery) -> None:
        """A page; after the last comes an empty one. Raises Malformed."""
        name = delivery.section.partition(b"\ncorrelation-id:")[2].partition(b"\n")[0]
        asked = self._asked.get(name)
        if asked is None:
            return
        page = [_read(line) for line in delivery.body.decode("utf-8", "replace").splitlines()]
        del self._asked[name]
        self._connection.answered(name)
        asked.xids += page
        if page:
            self._ask(asked)
        else:
            asked.then(asked.xids)


def _read(line: str) -> Xid:
    text, _, state = line.partition(" ")
    try:
        return Xid.parse(text, BranchState(state))
    except (JMSException, ValueError):
        raise Malformed(f"{line!r} in the answer to recover is no xid with its state") from None
