"""The commands: each is a row that names a verb, an object and the call of the REST API that does it.

What a command takes is what the OpenAPI document says of its call (described.py), so that a new call needs a row here and no code.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

NOTHING: Mapping[str, Any] = {}


@dataclass(slots=True, frozen=True)
class Command:
    verb: str
    object: str
    method: str
    path: str
    """Below /api/v1/. `{destination}` is given as queue/NAME, topic/NAME or by its number; other names are those of the API."""
    columns: str = ""
    """Of a list: members that a table shows, with dots into what is nested; none: all that are not nested."""
    fixed: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    """What the command says by itself, of the address or of the body."""
    defaults: Mapping[str, Any] = field(default_factory=lambda: NOTHING)
    """Of the body, unless it is said."""
    names: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    """Options that are called otherwise than their member or parameter."""
    asks: str | None = None
    """A person is asked before; the words say what it does. None: only if it deletes."""
    follows: bool = False
    """The answer is an operation: it is followed to its end."""
    drains: bool = False
    """The answer is a drain that has begun: it is followed to its end."""
    compacts: bool = False
    """The answer is a compaction that has begun: the same."""
    adds: str = ""
    """Of a list whose pages are to be added up: members that name a row; the numbers `count` and `octets` are added."""

    @property
    def name(self) -> str:
        return f"{self.verb} {self.object}"


MESSAGES = "destinations/{destination}/messages"
AGAIN = {"json": "json-body", **{f"from_message.{name}": f"from-{name}" for name in ("destination", "message", "subscription")}}
BY_HAND = "Its coordinator may decide otherwise, and then half of it is done."
XID = "decoded.global_transaction decoded.branch_qualifier"
LISTED = "key message_id state priority size accepted_at attempts delivery.account dead.reason dead.origin"
COMMANDS = (
    # -- destinations
    Command("list", "dst", "GET", "destinations", "address state consumers depth unsettled scheduled octets oldest_ms dead_total"),
    Command("query", "dst", "GET", "destinations/{destination}"),
    Command("create", "dst", "POST", "destinations"),
    Command("update", "dst", "PATCH", "destinations/{destination}"),
    Command("destroy", "dst", "DELETE", "destinations/{destination}"),
    Command("pause", "dst", "POST", "destinations/{destination}/pause", defaults={"direction": "ALL"}),
    Command("resume", "dst", "POST", "destinations/{destination}/resume", defaults={"direction": "ALL"}),
    Command("purge", "dst", "POST", "destinations/{destination}/purge"),
    Command("reset", "dst", "POST", "destinations/{destination}/reset"),
    Command("metrics", "dst", "GET", "destinations/{destination}/history"),
    Command("metrics", "bkr", "GET", "totals"),
    Command("list", "history", "GET", "totals/history"),
    Command("reset", "bkr", "POST", "totals/reset"),
    # -- messages
    Command("list", "msg", "GET", MESSAGES, LISTED),
    Command("query", "msg", "GET", MESSAGES + "/{key}"),
    Command("download", "msg", "GET", MESSAGES + "/{key}/body"),
    Command("send", "msg", "POST", MESSAGES, names=AGAIN),
    Command("export", "msg", "GET", MESSAGES + "/export"),
    Command("import", "msg", "POST", MESSAGES + "/import"),
    Command("list", "dead", "GET", MESSAGES + "/dead", "reason origin count octets first_at last_at", adds="reason origin"),
    *(
        Command(verb, "msg", "POST", "destinations/{destination}/operations", fixed={"verb": verb}, names={"destination": "to"}, follows=True)
        for verb in ("move", "copy", "retry", "delete", "purge", "expire", "reprioritize")
    ),
    Command("list", "operation", "GET", "operations", "number verb address state looked_at done skipped failed total requested_by started_at"),
    Command("query", "operation", "GET", "operations/{number}"),
    Command("cancel", "operation", "POST", "operations/{number}/cancel", asks="What it has done stays done."),
    Command("list", "undo", "GET", "undo", "number verb address messages octets requested_by kept_at lapses_at ended_how"),
    Command("query", "undo", "GET", "undo/{number}"),
    Command("undo", "purge", "POST", "undo/{number}/undo"),
    Command("destroy", "undo", "DELETE", "undo/{number}", asks="What was discarded cannot come back then."),
    Command("list", "delayed", "GET", "destinations/{destination}/scheduled", "number due_at message_id size priority reliability expires_at"),
    Command("cancel", "delayed", "POST", "destinations/{destination}/scheduled/{delayed}/cancel", asks="It is discarded."),
    Command("deliver", "delayed", "POST", "destinations/{destination}/scheduled/{delayed}/deliver"),
    Command("reschedule", "delayed", "POST", "destinations/{destination}/scheduled/{delayed}/reschedule"),
    # -- what is named and set up
    Command("list", "policy", "GET", "policies"),
    Command("query", "policy", "GET", "policies/{name}"),
    Command("update", "policy", "PUT", "policies/{name}"),
    Command("destroy", "policy", "DELETE", "policies/{name}"),
    Command("list", "alias", "GET", "aliases"),
    Command("query", "alias", "GET", "aliases/{name}"),
    Command("create", "alias", "POST", "aliases"),
    Command("update", "alias", "PATCH", "aliases/{name}"),
    Command("destroy", "alias", "DELETE", "aliases/{name}", asks="Who uses the name uses a queue or topic of that name from then on."),
    Command("list", "obj", "GET", "objects"),
    Command("query", "obj", "GET", "objects/{name}"),
    Command("create", "obj", "POST", "objects"),
    Command("update", "obj", "PUT", "objects/{name}"),
    Command("destroy", "obj", "DELETE", "objects/{name}", asks="Programs that look it up find it no more."),
    Command("list", "link", "GET", "links"),
    Command("query", "link", "GET", "links/{name}"),
    Command("create", "link", "POST", "links"),
    Command("update", "link", "PUT", "links/{name}"),
    Command("destroy", "link", "DELETE", "links/{name}", asks="Nothing goes to, or comes from, that broker any more."),
    # -- subscriptions and transactions
    Command("list", "dur", "GET", "subscriptions", "number client_id name address state account idle_since"),
    Command("list", "stale", "GET", "subscriptions/stale", "number client_id name address account idle_since depth growth segments"),
    Command("query", "dur", "GET", "subscriptions/{number}"),
    Command("create", "dur", "POST", "subscriptions"),
    Command("destroy", "dur", "DELETE", "subscriptions/{number}", asks="What it keeps is discarded."),
    Command("purge", "dur", "POST", "subscriptions/{number}/purge", asks="What it keeps is discarded.", follows=True),
    Command("list", "txn", "GET", "branches", f"number {XID} state account sends acknowledgements octets age_seconds"),
    Command("query", "txn", "GET", "branches/{number}"),
    Command("list", "txnitem", "GET", "branches/{number}/items", "number sends address subscription message_id position size priority reliability"),
    Command("commit", "txn", "POST", "branches/{number}/{verb}", fixed={"verb": "commit"}, asks=BY_HAND),
    Command("rollback", "txn", "POST", "branches/{number}/{verb}", fixed={"verb": "rollback"}, asks=BY_HAND),
    Command("forget", "txn", "POST", "branches/{number}/{verb}", fixed={"verb": "forget"}, asks="Its coordinator is not told any more how it ended."),
    # -- connections
    Command("list", "cxn", "GET", "connections", "connection account client_id protocol address since producers consumers unsettled oldest_since"),
    Command("query", "cxn", "GET", "connections/{number}"),
    Command("destroy", "cxn", "DELETE", "connections/{number}", asks="Its client is told the reason, and may connect again."),
    Command("list", "opentxn", "GET", "transactions", "connection account name xid state ends_at sends acknowledgements octets destinations refused"),
    Command("list", "producer", "GET", "producers", "producer connection account client_id destination link since sent waiting held_up"),
    Command("query", "producer", "GET", "producers/{number}"),
    Command("list", "con", "GET", "consumers", "consumer kind connection account destination subscription_name delivered unsettled oldest_since"),
    Command("destroy", "con", "DELETE", "consumers/{number}", asks="What it holds goes back; its client is told the reason, and may consume again."),
    Command("list", "held", "GET", "consumers/{number}/deliveries"),
    Command("release", "con", "POST", "consumers/{number}/release", asks="What it holds is delivered again, to others or to it."),
    # -- accounts, operators
    Command("list", "usr", "GET", "accounts", "name disabled loopback_only groups connections_max created_at"),
    Command("query", "usr", "GET", "accounts/{name}"),
    Command("create", "usr", "POST", "accounts"),
    Command("update", "usr", "PATCH", "accounts/{name}"),
    Command("destroy", "usr", "DELETE", "accounts/{name}", asks="Programs that use it are disconnected and log in no more."),
    Command("list", "rule", "GET", "access"),
    Command("query", "rule", "GET", "access/{number}"),
    Command("create", "rule", "POST", "access"),
    Command("destroy", "rule", "DELETE", "access/{number}", asks="What no rule allows is refused."),
    Command("list", "operator", "GET", "operators"),
    Command("query", "operator", "GET", "operators/{name}"),
    Command("create", "operator", "POST", "operators"),
    Command("update", "operator", "PATCH", "operators/{name}"),
    Command("list", "grant", "GET", "grants"),
    Command("query", "grant", "GET", "grants/{number}"),
    Command("create", "grant", "POST", "grants"),
    Command("update", "grant", "PATCH", "grants/{number}"),
    Command("destroy", "grant", "DELETE", "grants/{number}"),
    Command("list", "token", "GET", "tokens"),
    Command("create", "token", "POST", "tokens"),
    Command("destroy", "token", "DELETE", "tokens/{number}", asks="Programs that use it are refused."),
    # -- the broker
    Command("export", "definitions", "GET", "definitions"),
    Command("apply", "definitions", "POST", "definitions"),
    Command("query", "bkr", "GET", "node"),
    Command("list", "bkr", "GET", "nodes", "node state epoch since version host heartbeat_seconds connections"),
    Command("quiesce", "bkr", "POST", "node/quiesce"),
    Command("unquiesce", "bkr", "POST", "node/unquiesce"),
    Command("drain", "bkr", "POST", "node/drain", asks="Consumers are given nothing more, and connections are closed.", drains=True),
    Command("compact", "bkr", "POST", "node/compact", compacts=True),
    Command("takeover", "bkr", "POST", "nodes/{name}/takeover", asks="The node that serves closes its connections and stands by."),
    Command("list", "svc", "GET", "node/listeners"),
    Command("pause", "svc", "POST", "node/listeners/{name}/pause", asks="Nobody connects by it any more; who is connected stays."),
    Command("resume", "svc", "POST", "node/listeners/{name}/resume"),
    Command("query", "health", "GET", "health"),
    Command("list", "audit", "GET", "audit", "entry at who origin what address done"),
    Command("list", "report", "GET", "pipeline/audits", "number at from_number to_number from_at to_at proven unproven violations"),
    Command("query", "report", "GET", "pipeline/audits/{number}"),
    Command("list", "violation", "GET", "pipeline/audits/{number}/violations", "number kind reason address subscription lane first last messages"),
    Command("list", "point", "GET", "pipeline/points", "start address subscription counts octets_in octets_out flow_control_ms redelivered times_ms"),
    Command("list", "task", "GET", "schedule", "name seconds enabled state by started_at duration_ms result result_is next_at"),
    Command("query", "task", "GET", "schedule/{name}"),
    Command("update", "task", "PATCH", "schedule/{name}"),
    Command("run", "task", "POST", "schedule/{name}/run"),
    Command("list", "alert", "GET", "alerts", "name metric pattern comparator threshold for_seconds webhook enabled firing pending"),
    Command("query", "alert", "GET", "alerts/{name}"),
    Command("create", "alert", "POST", "alerts"),
    Command("update", "alert", "PATCH", "alerts/{name}"),
    Command("destroy", "alert", "DELETE", "alerts/{name}", asks="Nobody is told of it any more."),
    Command("test", "alert", "POST", "alert-tests"),
    Command("list", "firing", "GET", "firing"),
    Command("list", "event", "GET", "alert-events", "number at alert state destination value delivery attempts problem"),
    Command("query", "pipeline", "GET", "pipeline"),
    Command("list", "run", "GET", "pipeline/runs", "number kind state stage requested_by started_at ended_at first_commit last_commit error"),
    Command("query", "run", "GET", "pipeline/runs/{number}"),
    Command("list", "replay", "GET", "pipeline/replays", "number state requested_by address into rate sent total created_at ended_at error"),
    Command("query", "replay", "GET", "pipeline/replays/{number}"),
    Command("create", "replay", "POST", "pipeline/replays"),
    Command("cancel", "replay", "POST", "pipeline/replays/{number}/cancel"),
    Command("query", "request", "GET", "requests/{number}"),
    Command("query", "me", "GET", "whoami"),
    Command("list", "problem", "GET", "problems"),
)
WITHOUT = {
    ("GET", "schema/"): "it is for programs that write clients; people have --help",
}
"""Calls that have no command, and why."""
SYNONYMS = {"add": "create", "delete": "destroy"}
"""imqusermgr's and imqobjmgr's verbs, where nothing else is called so."""
BY_NAME = {(each.verb, each.object): each for each in COMMANDS}


def find(verb: str, thing: str) -> Command | None:
    return BY_NAME.get((verb, thing)) or BY_NAME.get((SYNONYMS.get(verb, verb), thing))
