"""`/metrics`: the node, sums over destinations, and with `?destinations=1` each destination by pages. Unknown values are left out."""

import re
import secrets
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from broker_core.control import CAUSES, WAITED_MS
from console.selectors import database, destinations, health
from console.selectors.node import NodeStatus, node_status
from console.selectors.totals import totals

from .exposition import CONTENT_TYPE, Family, exposition

DESTINATIONS = 1000
"""Of one scrape, unless `limit` asks for fewer; the comment at its end names the next page."""

GAUGES = {
    "depth": ("messages", "Messages that are neither settled nor discarded."),
    "octets": ("message_bytes", "Octets of header sections and bodies of these messages."),
    "unsettled": ("messages_unsettled", "Messages delivered to a consumer that has not settled them."),
    "scheduled": ("messages_scheduled", "Delayed messages that are not due yet."),
    "scheduled_octets": ("message_scheduled_bytes", "Octets of header sections and bodies of these messages."),
    "consumers": ("consumers", "Consumers attached."),
    "waiting": ("sends_blocked", "Sends that wait for room, under flow control."),
}
COUNTERS = {
    "accepted_total": ("messages_accepted_total", "Messages accepted from producers."),
    "settled_total": ("messages_settled_total", "Messages acknowledged by consumers."),
    "dead_total": ("messages_dead_total", "Messages that could not be delivered."),
    "expired_total": ("messages_expired_total", "Messages whose time to live ended before they were consumed."),
    "redelivered_total": ("messages_redelivered_total", "Deliveries of messages that had left before."),
}
AGES = {
    "oldest_ms": ("oldest_message_age_seconds", "Age of the oldest message."),
    "oldest_unsettled_ms": ("oldest_unsettled_age_seconds", "For how long a consumer has held, unacknowledged, what it has held longest, to a second."),
}
WAITED = ("time_in_queue_seconds", "From when a message became visible to its acknowledgement, since the node took the lease; one message stands for a batch.")
DIED = ("messages_died_total", "Messages that died, by reason, since the node took the lease.")
NODE = {
    "body_memory_octets": "Message bodies kept in memory.",
    "body_memory_octets_max": "SURETY_BODY_MEMORY_OCTETS_MAX.",
    "memory_level": "How full that memory is: 0 green, 1 yellow, 2 orange, 3 red.",
    "certificate_end_timestamp_seconds": "When the certificate of the TLS listeners ends, or the first of its chain.",
    "commits_total": "Group commits since the node took the lease.",
    "connections": "Connections of clients.",
    "destinations_blocked": "Destinations in which sends wait for room.",
    "oldest_unsettled_seconds": "For how long any consumer, of patterns too, has held what it has held longest.",
    "operations_open": "Operations on many messages that wait or run.",
    "producers_blocked": "Connections whose sends wait for room in a full destination.",
    "sends_waiting_for_room": "These sends and commits.",
    "sends_waiting_for_room_octets": "What they take of the memory.",
    "transactions_open": "Transactions that clients have begun and not ended.",
    "connections_total": "Connections taken since the node took the lease.",
    "destinations": "Destinations that the engine knows, temporary ones among them.",
    "event_loop_lag_seconds": "How late the event loop woke at its last second.",
    "links": "Consumers' links.",
    "logins_refused_total": "Logins refused since the node took the lease.",
    "messages_stored_total": "Messages written since the node took the lease.",
    "segments": "Segments of stored messages.",
    "sends_waiting_for_space": "Sends that wait for disk space.",
    "duplicates_dropped_total": "Sends confirmed and dropped, as a message with the same duplicate-id had been accepted.",
    "duplicate_ids_remembered": "Identifiers of accepted messages that destinations with a duplicate window remember.",
    "sends_to_ended_temporary_destinations_total": "Sends confirmed and dropped, as the connection that waited for them was gone.",
    "space_free_octets": "Free space on the database's disk.",
    "space_database_octets": "Size of the database, if SURETY_DATABASE_OCTETS_MAX limits it.",
    "space_low": "1 while producers wait for disk space.",
    "foreign_links": "Links to other brokers, each direction for itself.",
    "foreign_links_connected": "Those of them that are connected.",
    "foreign_messages_forwarded_total": "Messages that other brokers have confirmed.",
    "foreign_messages_taken_total": "Messages taken from other brokers.",
    "foreign_queues_without_link": "Names of links over which queues are to be forwarded, and that nobody has defined.",
    "prepared_branches": "Branches of distributed transactions that are prepared and wait for their outcome.",
    "prepared_octets": "What they keep in the node's memory.",
    "undo_records": "Purges and deletions that can be undone.",
    "undo_octets": "Header sections and bodies of what they have discarded, which stays on the disk for them.",
    "temporary_destinations": "Temporary destinations, of all connections.",
    "synchronous_commits_total": "Group commits that waited for the disk.",
}
"""What the node's metrics mean. One that is not named here is exported all the same."""
HISTOGRAMS = {"commit_seconds": ("surety_node_commit_seconds", "Duration of group commits."), "waited_seconds": (f"surety_{WAITED[0]}", WAITED[1])}
"""As the node tells them: ..._bounds, ..._buckets (observations between them), and ..._sum."""
_PARTS = frozenset(f"{name}_{part}" for name in HISTOGRAMS for part in ("bounds", "buckets", "sum"))
_NODE_METRIC = re.compile(r"[a-z][a-z0-9_]{0,99}")


@login_not_required
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    if not _may_read(request):
        return HttpResponse("Send SURETY_METRICS_TOKEN as a bearer token, or ask from loopback.\n", "text/plain", 403)
    status = node_status()
    text = exposition([*_of_node(status), *_of_all(), *_of_database()])
    if request.GET.get("destinations") == "1":
        text += _of_each(request)
    return HttpResponse(text, CONTENT_TYPE)


def _may_read(request: HttpRequest) -> bool:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if settings.METRICS_TOKEN and scheme.lower() == "bearer":
        return secrets.compare_digest(token.strip().encode(), settings.METRICS_TOKEN.encode())
    try:
        return ip_address(request.META.get("REMOTE_ADDR") or "").is_loopback
    except ValueError:
        return False


def _of_node(status: NodeStatus) -> list[Family]:
    problems = health.problems(status)
    families = [
        Family("surety_ready", "gauge", "1 if the service keeps its promises now (see /health/ready).").add(int(not problems)),
        Family("surety_node_alive", "gauge", "1 if a node holds the lease and its heartbeat is fresh.").add(int(status.alive)),
        Family("surety_node_heartbeat_age_seconds", "gauge", "Age of the last heartbeat.").add(status.heartbeat_seconds),
        Family("surety_node_standbys", "gauge", "Nodes that stand by.").add(len(status.standbys)),
        Family("surety_lease_epoch", "gauge", "Raised whenever the lease is acquired.").add(status.epoch),
    ]
    if status.alive and status.since is not None:
        acquired = Family("surety_lease_acquired_timestamp_seconds", "gauge", "When the lease was acquired.")
        families.append(acquired.add(status.since.timestamp()))
    up = Family("surety_listener_up", "gauge", "1 if the listener is open.")
    for listener in health.listeners(status):
        up.add(int(listener.up), listener=listener.name)
    return [*families, up, *_of_links(status.metrics), *_told_by_node(status.metrics)]


def _of_links(told: dict[str, Any]) -> list[Family]:
    up = Family("surety_foreign_link_up", "gauge", "1 if the link to another broker is connected.")
    messages = Family("surety_foreign_link_messages_total", "counter", "Messages that it has carried since the node took the lease.")
    for each in told.get("foreign") or ():
        labels = {"link": each["link"], "direction": each["direction"]}
        up.add(int(each["state"] == "connected"), **labels)
        messages.add(each["messages"], **labels)
    return [up, messages]


def _told_by_node(told: dict[str, Any]) -> list[Family]:
    """The node's own metrics, under the names it gives: `..._total` counts, everything else measures. Only numbers are metrics."""
    families = []
    for name, value in sorted(told.items()):
        if name not in _PARTS and _NODE_METRIC.fullmatch(name) and isinstance(value, int | float):
            kind = "counter" if name.endswith("_total") else "gauge"
            # Prometheus counts bytes; the broker says octets everywhere else.
            family = Family(f"surety_node_{name.replace('octets', 'bytes')}", kind, NODE.get(name) or f"{_words(name)}, as the node tells it.")
            families.append(family.add(value))
    for name, (exported, words) in HISTOGRAMS.items():
        bounds, buckets, seconds = (told.get(f"{name}_{part}") for part in ("bounds", "buckets", "sum"))
        if isinstance(bounds, list) and isinstance(buckets, list) and isinstance(seconds, int | float) and len(buckets) == len(bounds) + 1:
            families.append(Family(exported, "histogram", words).add_histogram(bounds, buckets, seconds))
    died = Family(f"surety_{DIED[0]}", "counter", DIED[1])
    for reason, messages in (told.get("died") or {}).items():
        died.add(messages, reason=reason)
    return [*families, died]


def _words(name: str) -> str:
    return name.removesuffix("_total").replace("_", " ").capitalize()


def _of_all() -> list[Family]:
    found = totals()
    if found is None:
        return []
    return [
        Family("surety_destinations", "gauge", "Destinations that exist.").add(found["destinations"]),
        Family("surety_destinations_paused", "gauge", "Destinations paused in some direction.").add(found["paused"]),
        *_families("surety_", "gauge", GAUGES, lambda name: [({}, found[name])]),
        *_families("surety_", "counter", COUNTERS, lambda name: [({}, found[name])]),
        *(Family(f"surety_{name}", "gauge", words).add(_seconds(found[column])) for column, (name, words) in AGES.items()),
    ]


def _of_database() -> list[Family]:
    told, waits = database.database(), database.in_doubt()
    transactions = Family("surety_database_xmin_horizon_age_transactions", "gauge", "Transactions since the oldest snapshot, which holds up VACUUM.")
    oldest = Family("surety_database_oldest_transaction_age_seconds", "gauge", "Age of the oldest transaction of any session.")
    operations = Family("surety_operations", "gauge", "Operations on many messages that are not over, by state.")
    return [
        Family("surety_database_dead_tuples", "gauge", "Dead rows of the broker's tables, as PostgreSQL estimates.").add(told["dead_tuples"]),
        Family("surety_database_live_tuples", "gauge", "Live rows of them, as PostgreSQL estimates.").add(told["live_tuples"]),
        transactions.add(told["xmin_horizon_age"]),
        oldest.add(told["oldest_transaction_seconds"]),
        Family("surety_branches_in_doubt", "gauge", "Prepared branches of transactions that wait for their outcome.").add(waits["branches"]),
        Family("surety_branches_in_doubt_oldest_age_seconds", "gauge", "For how long the oldest of them has been prepared.").add(waits["oldest_seconds"]),
        operations.add(waits["operations_waiting"], state="waiting").add(waits["operations_running"], state="running"),
    ]


def _of_each(request: HttpRequest) -> str:
    limit = request.GET.get("limit", "")
    rows = int(limit) if limit.isascii() and limit.isdigit() and len(limit) < 7 else DESTINATIONS
    page = destinations.page(request.GET.get("q", ""), "name", request.GET.get("after", ""), min(rows, DESTINATIONS))

    def samples(name: str) -> list[tuple[dict[str, str], Any]]:
        return [({"destination": it.address}, getattr(it, name)) for it in page.destinations]

    ages = [Family(f"surety_destination_{name}", "gauge", words) for name, words in AGES.values()]
    waited = Family(f"surety_destination_{WAITED[0]}", "histogram", WAITED[1])
    died = Family(f"surety_destination_{DIED[0]}", "counter", DIED[1])
    for it in page.destinations:
        for family, column in zip(ages, AGES, strict=True):
            family.add(_seconds(getattr(it, column)), destination=it.address)
        if it.waited and len(it.waited) == len(WAITED_MS) + 2:
            *buckets, total = it.waited
            waited.add_histogram([bound / 1000 for bound in WAITED_MS], buckets, total / 1000, destination=it.address)
        for reason, messages in zip(CAUSES, it.died or (), strict=False):
            died.add(messages, destination=it.address, reason=reason)
    families = [
        *_families("surety_destination_", "gauge", GAUGES, samples),
        *_families("surety_destination_", "counter", COUNTERS, samples),
        *ages,
        waited,
        died,
    ]
    return exposition(families) + (f"# next: after={page.after}\n" if page.after else "")


def _families(
    prefix: str, kind: str, names: dict[str, tuple[str, str]], samples: Callable[[str], list[tuple[dict[str, str], Any]]]
) -> list[Family]:
    families = []
    for column, (name, words) in names.items():
        family = Family(prefix + name, kind, words)
        for labels, value in samples(column):
            family.add(value, **labels)
        families.append(family)
    return families


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
