"""Who looks at a queue or a durable subscription without consuming, and whose turn it is to do so (browsing.py does it)."""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import TYPE_CHECKING

from .walk import Walk

if TYPE_CHECKING:
    from .commands import PageLoaded
    from .link import Peer
    from .reads import PageWanted
    from .subscription import Filter


class Doing(Enum):
    """What a browser waits for."""

    TURN = "its turn to go on"
    READER = "another browser's page to be read first"
    PAGE = "a page on its way"
    RELEASE = "its last copies to leave"
    START = "its peer's socket to have room"
    CREDIT = "credit"
    NOTHING = "it is through, or closed"


class Browser:
    __slots__ = ("credit", "doing", "drain", "link", "octets", "page", "peer", "tag", "walk", "wanted")

    def __init__(self, link: int, peer: Peer, walk: Walk, wanted: Filter, credit: int | None = None) -> None:
        self.link = link
        self.peer = peer
        self.walk = walk
        self.wanted = wanted
        self.credit = credit
        """Copies that it may be sent; None: as many as there are."""
        self.drain = 0
        """Its peer wants to know when nothing more can come."""
        self.doing = Doing.NOTHING
        self.page: PageLoaded | None = None
        """Read, and to be handed out."""
        self.octets = 0
        """Of the page on its way, then of what it brought, until that has left."""
        self.tag = 0
        """Of the last copy."""


class Browsing:
    """All browsers of a shard. One of them reads at a time, so that the pages of consumers wait for one of theirs at the most."""

    __slots__ = ("browsers", "read", "reader", "readers", "sending", "turns")

    def __init__(self) -> None:
        self.browsers: dict[int, Browser] = {}
        """By link."""
        self.turns: deque[Browser] = deque()
        self.readers: deque[Browser] = deque()
        self.read: PageWanted | None = None
        """The page on its way."""
        self.reader: Browser | None = None
        """Who asked for it."""
        self.sending: list[Browser] = []
        """Whose copies leave with the flush that is being made."""

    def queue(self, browser: Browser) -> None:
        browser.doing = Doing.TURN
        self.turns.append(browser)
