"""Browsers: copies of what a queue or a durable subscription holds, without consuming anything (JMS QueueBrowser).

A browser walks through it page by page. It goes on when its last page has left and its peer's socket has room, so that it holds one page at the
most; it moves no cursor, and the ledger does not know it. What one flush hands to all browsers together is a page's worth of rows, and one of them reads
at a time: a look at two million messages takes its minute beside the traffic and not before it.
"""

from __future__ import annotations

from .access import BROWSE, is_allowed
from .address import is_temporary, is_topic
from .aliases import follow
from .browser import Browser, Doing
from .commands import Browse, Grant, PageLoaded
from .cursor import Cursor
from .link import Peer
from .message import Message, StoredBody
from .outputs import Browsed, Confirmed, Delivered, Drained, Refused
from .paging import allowance, as_placed
from .pins import pin, unpin_all
from .placing import why_not_create
from .properties import Properties, takes
from .reads import PageWanted
from .refusal import Refusal
from .shard import Shard
from .subscription import Subscription
from .temporary import is_own
from .walk import Walk, may_come_again

NOTHING_THERE = (Refusal.TOO_MANY_DESTINATIONS, Refusal.TOO_MANY_TEMPORARIES, Refusal.ACCESS_DENIED)
"""Why a queue cannot be made; to look at one that is not there needs none."""

OF_SUBSCRIPTIONS = (Refusal.NO_SUCH_SUBSCRIPTION, Refusal.SUBSCRIPTION_OF_ANOTHER)

CHOICE = 64
"""Rows that are read beyond a browser's credit: with one of credit it shall not read each page as often as it has rows."""


# -- opening and closing ----------------------------------------------------------------------------------------------------------------
def browse(shard: Shard, command: Browse) -> None:
    """A queue that does not exist is as one that is empty: looking at it makes none."""
    peer = shard.peers.get(command.peer)
    if peer is None:
        return  # as attach
    follow(shard, command)
    refusal = _why_not(shard, peer, command)
    if refusal is not None:
        detail = command.name if refusal in OF_SUBSCRIPTIONS else command.address
        if refusal is Refusal.ACCESS_DENIED:
            detail = f"{BROWSE} {detail}"
        shard.batch.outputs.append(Refused(command.peer, command.token, refusal, detail, command.link))
        return
    cursors = _cursors(shard, peer, command)
    shard.effort += len(cursors) // 4
    browser = Browser(command.link, peer, Walk(cursors), command.wanted, command.credit)
    shard.browsing.browsers[command.link] = peer.browsers[command.link] = browser
    shard.browsing.queue(browser)
    if command.token is not None:
        shard.batch.outputs.append(Confirmed(command.peer, command.token))


def _why_not(shard: Shard, peer: Peer, command: Browse) -> Refusal | None:
    limits, browsers = shard.limits, shard.browsing.browsers
    if command.link in shard.links or command.link in browsers:
        return Refusal.LINK_IN_USE
    if len(browsers) >= limits.browsers_max or len(peer.browsers) >= limits.peer_browsers_max:
        return Refusal.TOO_MANY_BROWSERS
    on_topic = is_topic(command.address)
    if on_topic and not command.name:
        return Refusal.NOT_SUPPORTED
    if is_temporary(command.address) and not is_own(peer, command.address):
        return Refusal.NOT_THE_OWNER
    if shard.access is not None and not is_allowed(shard, command.peer, BROWSE, command.address):
        return Refusal.ACCESS_DENIED
    if on_topic:
        return _why_not_there(peer, command, _named(shard, peer, command))
    refusal = None if command.address in shard.destinations else why_not_create(shard, command.peer, command.address)
    return None if refusal in NOTHING_THERE else refusal


def _named(shard: Shard, peer: Peer, command: Browse) -> Subscription | None:
    return shard.named.get((peer.client_id if command.client_id is None else command.client_id, command.name))


def _why_not_there(peer: Peer, command: Browse, subscription: Subscription | None) -> Refusal | None:
    if subscription is None or not subscription.durable or subscription.destination.address != command.address:
        return Refusal.NO_SUCH_SUBSCRIPTION
    return Refusal.SUBSCRIPTION_OF_ANOTHER if subscription.account != peer.account else None


def _cursors(shard: Shard, peer: Peer, command: Browse) -> list[Cursor]:
    """Of what is looked at, in the order of looking; a pattern's subscription has some for each of its topics."""
    if is_topic(command.address):
        subscription = _named(shard, peer, command)
        assert subscription is not None
        return sorted([cursor for part in subscription.parts() for cursor in part.order], key=lambda cursor: (-cursor.priority, cursor.index))
    destination = shard.destinations.get(command.address)
    return destination.subscriptions[0].order if destination is not None else []


def close(shard: Shard, browser: Browser) -> None:
    """Large bodies that are on their way to it stay pinned."""
    browsing = shard.browsing
    del browsing.browsers[browser.link], browser.peer.browsers[browser.link]
    if browser.doing is Doing.TURN:
        browsing.turns.remove(browser)
    elif browser.doing is Doing.READER:
        browsing.readers.remove(browser)
    _give_back(shard, browser)
    browser.doing, browser.page = Doing.NOTHING, None


def close_all(shard: Shard, peer: Peer) -> None:
    """The peer is gone."""
    for browser in list(peer.browsers.values()):
        close(shard, browser)
    unpin_all(shard, peer)


def resume(shard: Shard, peer: Peer) -> None:
    """The peer's socket has room again."""
    for browser in peer.browsers.values():
        if browser.doing is Doing.START:
            shard.browsing.queue(browser)


def grant(shard: Shard, browser: Browser, command: Grant) -> None:
    """It may be sent so many copies; one that has seen everything is drained at once."""
    counted = browser.tag if command.counted is None else command.counted
    browser.credit = max(command.credit - (browser.tag - counted), 0)
    browser.drain = command.drain
    if browser.doing is Doing.CREDIT and browser.credit:
        shard.browsing.queue(browser)
    elif browser.doing in (Doing.CREDIT, Doing.NOTHING) or not browser.credit:
        _drain(shard, browser)


def _drain(shard: Shard, browser: Browser) -> None:
    """Nothing more can come."""
    if browser.drain:
        shard.batch.outputs.append(Drained(browser.peer.number, browser.link, browser.drain))
        browser.credit = browser.drain = 0


def released(shard: Shard, browser: Browser) -> None:
    """Its last copies have left."""
    _give_back(shard, browser)
    if browser.doing is Doing.RELEASE:
        shard.browsing.queue(browser)


def _give_back(shard: Shard, browser: Browser) -> None:
    shard.memory -= browser.octets
    browser.octets = 0


# -- going on ---------------------------------------------------------------------------------------------------------------------------
def proceed(shard: Shard) -> None:
    """At a flush: each browser whose turn it is goes a step, until a page's worth of rows is handed out."""
    browsing, rows = shard.browsing, shard.limits.page_rows
    for _ in range(len(browsing.turns)):
        if rows <= 0:
            break
        rows -= _step(shard, browsing.turns.popleft())


def _step(shard: Shard, browser: Browser) -> int:
    """Hand out what was read, or go on. Returns how many messages were looked at."""
    browsing = shard.browsing
    if browser.page is not None:
        messages = _take_page(browser, browser.page)
        browser.page = None
    elif browser.peer.stopped:
        browser.doing = Doing.START
        return 0
    elif (cursor := browser.walk.seek()) is None:
        _end(shard, browser)
        return 0
    elif browser.credit == 0:
        browser.doing = Doing.CREDIT
        return 0
    elif browser.walk.is_in_memory():
        messages = browser.walk.from_memory(_worthwhile(browser, shard.limits.page_rows), shard.limits.page_octets)
    elif browsing.read is not None:
        browser.doing = Doing.READER
        browsing.readers.append(browser)
        return 0
    else:
        _want_page(shard, browser, cursor)
        return 0
    _hand_out(shard, browser, messages)
    return len(messages)


def _worthwhile(browser: Browser, rows: int) -> int:
    """Of so many rows at the most those that it may have credit for, and some that it may not want."""
    return rows if browser.credit is None else min(rows, 2 * browser.credit + CHOICE)


def _want_page(shard: Shard, browser: Browser, cursor: Cursor) -> None:
    rows, octets = allowance(shard)
    rows = _worthwhile(browser, rows)
    first, last = browser.walk.interval(rows)
    key = cursor.lane.destination.number, cursor.index
    segments = shard.segments.overlapping(key, first, last)
    read = PageWanted(shard.next_read(), *key, first - 1, last, rows, octets, segments)
    shard.segments.begin_read(read.read, segments)
    shard.batch.reads.append(read)
    shard.browsing.read, shard.browsing.reader = read, browser
    browser.doing, browser.octets = Doing.PAGE, octets
    shard.memory += octets


def loaded(shard: Shard, command: PageLoaded) -> None:
    """The page that was on its way. It is handed out at the flush, when all that was settled before it is known."""
    browsing = shard.browsing
    shard.segments.end_read(command.read)
    browser, read, browsing.reader, browsing.read = browsing.reader, browsing.read, None, None
    assert browser is not None and read is not None
    if browser.doing is Doing.PAGE:
        octets = sum([message.weight for message in command.messages])
        shard.memory += octets - browser.octets
        browser.page, browser.octets = command, octets
        browser.walk.at = read.upto + 1 if command.complete else command.messages[-1].position + 1
        browsing.queue(browser)
    while browsing.readers:
        browsing.queue(browsing.readers.popleft())


def _take_page(browser: Browser, page: PageLoaded) -> list[Message]:
    """The rows that are of messages not settled yet."""
    walk = browser.walk
    cursor = walk.lanes[0][0]
    is_settled = cursor.progress.is_settled
    messages = [message for message in page.messages if not is_settled(message.position)]
    for message in messages:
        as_placed(cursor, message)
        message.redelivered = may_come_again(cursor, message.position)
        message.failures = cursor.failures.get(message.position, 0)
    return messages


def _hand_out(shard: Shard, browser: Browser, messages: list[Message]) -> None:
    """Copies of those that the browser wants; what it was refused costs it nothing but the look."""
    now, cursor = shard.now, browser.walk.lanes[0][0]
    copies = [message for message in messages if not 0 < message.header.expiration <= now]
    for wanted in (cursor.subscription.wanted, browser.wanted):  # what its subscription left out a moment ago may be in its pages still
        if wanted:
            copies = [message for message in copies if takes(wanted, Properties(shard, message))]
    if browser.credit is not None:
        if len(copies) > browser.credit:
            browser.walk.at = copies[browser.credit].position  # from there it goes on
            del copies[browser.credit :]
        browser.credit -= len(copies)
    if copies:
        _send(shard, browser, copies)
    else:
        _give_back(shard, browser)
    if browser.walk.seek() is None:
        _end(shard, browser)
    elif not copies:
        shard.browsing.queue(browser)


def _send(shard: Shard, browser: Browser, copies: list[Message]) -> None:
    first = browser.tag + 1
    browser.tag += len(copies)
    for tag, message in enumerate(copies, first):
        if message.body.__class__ is StoredBody:
            pin(shard, browser.peer, browser.link, tag, message)
    shard.batch.outputs.append(Delivered(browser.peer.number, browser.link, first, copies))
    browser.doing = Doing.RELEASE
    shard.browsing.sending.append(browser)
    if browser.credit == 0:
        _drain(shard, browser)


def _end(shard: Shard, browser: Browser) -> None:
    """It has seen everything."""
    browser.doing = Doing.NOTHING
    shard.batch.outputs.append(Browsed(browser.peer.number, browser.link))
    _drain(shard, browser)
