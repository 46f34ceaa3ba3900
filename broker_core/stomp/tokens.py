"""What the engine gives back with its answers. The token of a SEND is its receipt as on the wire: bytes, or None."""

from __future__ import annotations


class Receipt:
    """Of what is not a SEND: the receipt header as on the wire."""

    __slots__ = ("receipt",)

    def __init__(self, receipt: bytes) -> None:
        self.receipt = receipt


class Subscribed(Receipt):
    """Of an Attach whose consumer acknowledges: its receipt says how far it is delivered ahead of that."""

    __slots__ = ("credit",)

    def __init__(self, receipt: bytes, credit: int) -> None:
        super().__init__(receipt)
        self.credit = credit


class Unsubscribed:
    """Of a Detach: the link is forgotten when it is confirmed; until then its deliveries may still arrive."""

    __slots__ = ("link", "receipt")

    def __init__(self, link: int, receipt: bytes | None) -> None:
        self.link = link
        self.receipt = receipt


class Farewell:
    """Of the Sync that DISCONNECT asks for."""

    __slots__ = ("receipt",)

    def __init__(self, receipt: bytes | None) -> None:
        self.receipt = receipt
