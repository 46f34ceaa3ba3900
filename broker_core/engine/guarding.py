"""New rules of access: what is open and is no longer allowed is closed."""

from __future__ import annotations

from . import browsing
from .access import BROWSE, CONSUME, access_of, is_allowed
from .commands import SetAccess
from .outputs import Detached
from .refusal import Refusal
from .shard import Shard
from .subscribing import expel


def set_access(shard: Shard, command: SetAccess) -> None:
    """They hold for what comes from now on; consumers and browsers that may not go on are told so. What a durable subscription keeps it keeps."""
    shard.access = access_of(command.rules, command.groups)
    if shard.access is None:
        return
    for link in list(shard.links.values()):
        address = link.subscription.destination.address
        if not is_allowed(shard, link.peer.number, CONSUME, address):
            expel(shard, link, Refusal.ACCESS_DENIED, f"{CONSUME} {address}")
    for browser in list(shard.browsing.browsers.values()):
        if not browser.walk.lanes:
            continue
        subscription = browser.walk.lanes[0][0].subscription
        address = (subscription.wildcard or subscription).destination.address
        if not is_allowed(shard, browser.peer.number, BROWSE, address):
            browsing.close(shard, browser)
            shard.batch.outputs.append(Detached(browser.peer.number, browser.link, Refusal.ACCESS_DENIED, f"{BROWSE} {address}"))
