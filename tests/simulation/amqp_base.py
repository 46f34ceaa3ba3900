"""What an AMQP session is made of, whatever it does."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from broker_core.server.listening import Node

from .amqp_links import Inward, Outward
from .amqp_speech import Speech
from .audit import Auditor, Known, Subscription
from .looks import Look, Looks
from .session import Author
from .transactions import Transaction


Delivery = tuple[Subscription, Known, dict[str, Any]]
"""Where it came, what it is, and what the broker said with it."""


class Base(Author):
    """`said`: an address to one that stands for it, or to itself."""

    def __init__(
        self, name: str, node: Node, auditor: Auditor, random: Random, now: Callable[[], int], log: Callable[[object], None], looks: Looks,
        account: str = "guest", client_id: str = "", said: Callable[[str], str] = str,
    ) -> None:  # fmt: skip
        self.name, self._auditor, self._random, self._now, self._log = name, auditor, random, now, log
        self._looks, self._said = looks, said
        self.client_id = client_id or f"container {name}"
        self.closed = self.is_over = self._is_lost = False
        self.inbox: list[Delivery] = []
        self.subscriptions: dict[str, Subscription] = {}
        self.looks: dict[str, Look] = {}
        self.transaction: Transaction | None = None
        self.preparing = None
        self._txn = b""
        self._declaring = False
        self._links: dict[str, Inward] = {}
        """By what its subscription or browser is called here."""
        self._coordinator: Outward | None = None
        self._pending: dict[Outward, tuple[Known, Transaction | None, int]] = {}
        """What has begun to leave, and its number."""
        self._links_of: dict[Known, Outward] = {}
        """Of what was sent in the transactions below."""
        self._undecided: list[Transaction] = []
        """Transactions that have begun and whose end is not answered."""
        self._orders = self._named = 0
        self._left: list[str] = []
        """Names of links that were detached."""
        self.speech = Speech(node, self, random, self.client_id, account, log)
        self.wire = self.speech.wire

    @property
    def connected(self) -> bool:
        return self.speech.connected

    @property
    def told(self) -> str:
        return self.speech.told

    @property
    def receipts(self) -> dict[int, Any]:
        """What is not answered."""
        return self.speech.answers
