"""The console's pages as the navigation shows them, and what the frame around every page knows: one line a page, in PAGES.

A page is offered to who may see it; that somebody who types its address is refused is the business of its services.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from console.permissions import BROWSE_HEADERS, LOOK, MANAGE_OPERATOR, METRICS, NOTHING, VERBS, may, sight
from console.selectors import node
from console.services.audit import Actor

from .actor import actor_of

THEMES = SYSTEM, LIGHT, DARK = ("system", "light", "dark")
KEYS = ON, OFF = ("on", "off")
"""Whether letters lead to pages: who types them by voice must be able to turn that off."""
THEME_COOKIE, KEYS_COOKIE = "surety_theme", "surety_keys"


@dataclass(slots=True, frozen=True)
class Page:
    url_name: str
    """In console/urls.py, without arguments."""
    label: str
    icon: str
    """In icons.PATHS."""
    key: str
    """Typed after g; no two pages have the same."""
    right: str = LOOK
    """Who has it sees the page; of one of permissions.VERBS that of any destination is enough."""
    below: tuple[str, ...] = ()
    """Names of the pages that belong to it."""

    def shown_to(self, actor: Actor) -> bool:
        return sight(actor, self.right) != NOTHING if self.right in VERBS else may(actor, self.right)


PAGES: tuple[tuple[str, tuple[Page, ...]], ...] = (
    ("", (Page("overview", "Overview", "overview", "o", METRICS),)),
    (
        "Messaging",
        (
            Page("destinations", "Destinations", "destinations", "d", METRICS, ("create", "update", "operate", "destination", "bulk")),
            Page("messages", "Messages", "messages", "m", BROWSE_HEADERS,
                 ("messages_of", "message", "message_life", "message_send", "message_import", "message_act")),
            Page("dead", "Dead messages", "dead", "x", BROWSE_HEADERS, ("dead_of",)),
            Page("scheduled", "Scheduled", "scheduled", "s", BROWSE_HEADERS, ("scheduled_of", "scheduled_change")),
            Page("subscriptions", "Subscriptions", "subscriptions", "b", METRICS, ("subscription_create", "subscription_change")),
            Page("transactions", "Transactions", "transactions", "t", below=("transaction", "transaction_end", "transactions_history")),
            Page("undo", "Undo", "undo", "q", METRICS, ("undo_change",)),
            Page("operations", "Operations", "operations", "w", METRICS, ("operation", "operation_cancel")),
        ),
    ),
    (
        "Clients",
        (
            Page("connections", "Connections", "connections", "c", below=("connection", "connection_close")),
            Page("producers", "Producers", "producers", "g"),
            Page("consumers", "Consumers", "consumers", "n", below=("holds", "release", "consumer_close")),
        ),
    ),
    (
        "Service",
        (
            Page("nodes", "Nodes", "nodes", "h", below=("node_do",)),
            Page("alerts", "Alerts", "alerts", "l", below=("alert_history", "alert_create", "alert_change", "alert_delete")),
            Page("reports", "Reports", "reports", "r", METRICS, ("delivery_audit", "replays", "replay", "replay_create", "replay_cancel")),
            Page("tasks", "Tasks", "tasks", "k", below=("task_change",)),
        ),
    ),
    (
        "Definitions",
        (
            Page("accounts", "Accounts", "accounts", "a", below=("account_change",)),
            Page("access", "Access rules", "access", "e", below=("access_delete",)),
            Page("policies", "Settings by name", "settings", "i"),
            Page("aliases", "Aliases", "objects", "v"),
            Page("objects", "Objects", "objects", "j"),
            Page("links", "Links", "connections", "f"),
            Page("definitions", "Definitions", "definitions", "y", MANAGE_OPERATOR),
        ),
    ),
    (
        "Administration",
        (
            Page("operators", "Operators", "operators", "p", MANAGE_OPERATOR, ("operator_change",)),
            Page("grants", "Rights", "access", "z", MANAGE_OPERATOR, ("grant_change", "grant_delete")),
            Page("audit", "Audit", "audit", "u"),
            Page("settings", "Settings", "settings", ",", MANAGE_OPERATOR),
        ),
    ),
)  # fmt: skip
"""By groups, in their order."""


def everything() -> list[Page]:
    return [page for _, pages in PAGES for page in pages]


class Can:
    """In templates `can.purge`: whether the person may it of every destination, or of the whole broker; `can_somewhere.purge`: of any destination at all.
    Names are those of permissions.VERBS, and of permissions of the whole broker without their prefix: `can.manage_account`."""

    def __init__(self, actor: Actor, *, somewhere: bool = False) -> None:
        self._actor, self._somewhere = actor, somewhere

    def __getitem__(self, right: str) -> bool:
        if right in VERBS:
            return sight(self._actor, right) != NOTHING if self._somewhere else may(self._actor, right)
        return may(self._actor, f"console.{right}")


def frame(request: HttpRequest) -> dict[str, Any]:
    """Context processor: what base.html shows around every page. Nothing is asked of the database before a template names it."""
    theme = request.COOKIES.get(THEME_COOKIE, SYSTEM)
    keys = OFF if request.COOKIES.get(KEYS_COOKIE) == OFF else ON
    shared = {"theme": theme if theme in THEMES else SYSTEM, "themes": THEMES, "keys": keys, "keys_choices": KEYS}
    if not getattr(request, "user", None) or not request.user.is_authenticated:
        return shared
    actor = actor_of(request)
    match = request.resolver_match
    return {
        **shared,
        "navigation": SimpleLazyObject(lambda: _offered(actor, match.url_name if match else "")),
        "service": SimpleLazyObject(node.node_status),
        "can": Can(actor),
        "can_somewhere": Can(actor, somewhere=True),
    }


def _offered(actor: Actor, url_name: str) -> list[tuple[str, list[tuple[Page, bool]]]]:
    """Groups with their pages, each with whether it is where we are."""
    groups = [(title, [(page, url_name == page.url_name or url_name in page.below) for page in pages if page.shown_to(actor)]) for title, pages in PAGES]
    return [group for group in groups if group[1]]
