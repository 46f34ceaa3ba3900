"""What the API answers with."""

from functools import lru_cache

from drf_spectacular.utils import PolymorphicProxySerializer, extend_schema_field
from rest_framework import serializers

from broker_core.viewing import LEVEL_NAMES
from console import xids
from console.selectors.alert_values import COMPARATORS, METRICS
from console.selectors.node import STATES as NODE_STATES
from console.selectors.requests import STATES
from console.selectors.schedule import STATES as TASK_STATES
from console.selectors.subscriptions import STATES as SUBSCRIPTION_STATES
from console.services.alerts import DELIVERIES, EVENT_STATES

DESTINATION_STATES = ("RUNNING", "CONSUMERS_PAUSED", "PRODUCERS_PAUSED", "PAUSED")
Shape = serializers.Serializer
Integer = serializers.IntegerField
String = serializers.CharField
Boolean = serializers.BooleanField
Instant = serializers.DateTimeField

instant = lru_cache(4096)(Instant().to_representation)
"""Rows of a list have many instants in common."""


def counter(help_text: str = "") -> Integer:
    return Integer(allow_null=True, help_text=f"{help_text} Null: unknown.".strip())


class ProblemDocument(Shape):
    """RFC 9457. `errors` names members of the body; `refusal` says which way of saying no of the node's it is."""

    type = String()
    title = String()
    status = Integer()
    code = String()
    detail = String()
    errors = serializers.ListField(required=False)
    refusal = String(required=False)
    request = Integer(required=False)


class ProblemCode(Shape):
    code = String()
    status = Integer()
    title = String()


class ControlRequest(Shape):
    """What was asked of the node, and what became of it."""

    number = Integer()
    verb = String()
    address = String()
    arguments = serializers.DictField()
    requested_by = String()
    created_at = Instant()
    deadline_at = Instant(allow_null=True)
    state = serializers.ChoiceField(STATES, help_text="lapsed: not answered before the deadline; no node applies it any more.")
    answered_at = Instant(allow_null=True)
    result = serializers.DictField(allow_null=True, help_text="Null: no answer yet. `warnings` are for the operator.")


class Done(Shape):
    """What was asked is done."""

    warnings = serializers.ListField(child=String(), help_text="What its operator may not have meant.")


class PatternVerbs(Shape):
    pattern = String()
    verbs = serializers.ListField(child=String())


class WhoAmI(Shape):
    name = String()
    superuser = Boolean(help_text="Has every right, and manages operators.")
    rights = serializers.ListField(child=String())
    read_only = Boolean(help_text="Came with a token that may only read.")
    role = String()
    grants = PatternVerbs(many=True, help_text="What he may do with destinations, by his role or by name.")
    token_verbs = serializers.ListField(child=String(), help_text="What his token may do at most; empty: all of it.")
    token_patterns = serializers.ListField(child=String())


class Destination(Shape):
    number = Integer(help_text="Never given twice; negative: temporary.")
    address = String()
    automatic = Boolean(help_text="A client's use created it; it goes when it is idle.")
    temporary = Boolean()
    reserved = Boolean(help_text="The broker's own.")
    state = serializers.SerializerMethodField()
    settings = serializers.DictField(help_text="Those that it has; empty: those of all.")
    depth = counter("Messages held, delivered ones included, delayed ones not.")
    octets = counter()
    consumers = counter()
    unsettled = counter("Delivered and not acknowledged.")
    oldest_ms = Integer(allow_null=True, help_text="Age of the oldest message. Null: unknown, or there is none.")
    oldest_unsettled_ms = Integer(allow_null=True, help_text="For how long a consumer has held what it has held longest. Null: unknown, or nobody holds any.")
    waiting = counter("Sends that wait for room, under flow control.")
    accepted_total = counter()
    settled_total = counter()
    dead_total = counter()
    expired_total = counter()
    redelivered_total = counter()
    scheduled = counter("Delayed messages that are not due.")
    scheduled_octets = counter()
    at = serializers.SerializerMethodField(help_text="When the counters had these values. Null: they are unknown.")

    @extend_schema_field({"type": "string", "enum": DESTINATION_STATES})
    def get_state(self, it: object) -> str:
        return DESTINATION_STATES[it.state & 3]

    @extend_schema_field(Instant(allow_null=True))
    def get_at(self, it: object) -> str | None:
        return instant(it.at) if it.known else None


class SinceReset(Shape):
    """What was counted since an operator reset totals. Never negative."""

    at = Instant(help_text="When that was.")
    accepted_total = counter()
    settled_total = counter()
    dead_total = counter()
    expired_total = counter()
    redelivered_total = counter()


class QueriedDestination(Destination):
    since = SinceReset(allow_null=True, help_text="Null: its totals were never reset.")


class Preview(Shape):
    """What a call would do now; it did nothing."""

    address = String()
    depth = counter("To be given with the call, if it takes one: what you saw.")
    discarded = counter()
    kept = counter("Delivered to consumers.")
    scheduled = counter("Delayed messages that would be discarded, too.")


DISCARDED = PolymorphicProxySerializer("Discarded", [ControlRequest, Preview], None)
"""Of a dry run, the latter."""


class Policy(Shape):
    pattern = String()
    settings = serializers.DictField()


class Alias(Shape):
    address = String()
    target = String()
    default_reliability = String()
    maximum_reliability = String()
    reliability_override = Boolean()


class AdministeredObject(Shape):
    name = String()
    kind = String()
    attributes = serializers.DictField()
    read_only = Boolean()
    created_at = Instant()


class Link(Shape):
    name = String()
    attributes = serializers.DictField(help_text="The passcode is never among them.")
    has_passcode = Boolean()
    created_at = Instant()


class Subscription(Shape):
    number = Integer()
    client_id = String()
    name = String()
    address = String(help_text="The topic, or the pattern of a wildcard subscription, whose members are listed, too.")
    shared = Boolean()
    selector = String()
    no_local = Boolean()
    account = String()
    state = serializers.ChoiceField(SUBSCRIPTION_STATES, allow_null=True, help_text="Null: unknown.")
    idle_since = Instant(allow_null=True, help_text="When its last consumer left.")


class Branch(Shape):
    number = Integer()
    xid = String()
    decoded = serializers.SerializerMethodField(help_text="The XID's parts: what is printable of them as text, before its hexadecimal digits.")
    account = String()
    state = String(help_text="prepared; or committed, rolled back: by hand, and not forgotten yet.")
    sends = Integer()
    acknowledgements = Integer()
    octets = Integer()
    prepared_at = Instant()
    age_seconds = serializers.FloatField(help_text="Since it was prepared.")
    ended_at = Instant(allow_null=True)

    @extend_schema_field({"type": "object", "additionalProperties": {"type": "string"}})
    def get_decoded(self, it: object) -> dict[str, str]:
        return {name.lower().replace(" ", "_"): text for name, text in xids.parts(it.xid)}


class BranchItem(Shape):
    """A message that a branch sends, or one that it acknowledged."""

    number = Integer()
    sends = Boolean()
    address = String(allow_null=True, help_text="Null: the destination is gone.")
    subscription = Integer(help_text="Of what it acknowledged; 0: of a queue.")
    position = Integer()
    size = Integer()
    priority = Integer()
    reliability = serializers.SerializerMethodField()
    message_id = String(allow_null=True, help_text="Null: it is given one when it is placed, or only its position is kept.")

    @extend_schema_field({"type": "string", "enum": LEVEL_NAMES})
    def get_reliability(self, it: object) -> str:
        return LEVEL_NAMES[it.reliability]


class Account(Shape):
    name = String()
    disabled = Boolean()
    loopback_only = Boolean()
    persistent_reliability = String()
    nonpersistent_reliability = String()
    created_at = Instant()
    groups = serializers.ListField(child=String())
    connections_max = Integer(help_text="0: as many as the broker takes.")
    sessions_max = Integer()
    rotating_until = Instant(allow_null=True, help_text="Null: only one password is good.")


class AccessRule(Shape):
    number = Integer()
    resource = String()
    operation = String()
    allow = Boolean()
    principal = String()
    group = Boolean()


class Operator(Shape):
    name = String()
    superuser = Boolean()
    disabled = Boolean()
    last_login = Instant(allow_null=True)
    rights = serializers.ListField(child=String())
    role = String()


class Grant(Shape):
    number = Integer()
    role = String(help_text="Empty: it is granted to the operator.")
    operator = String()
    pattern = String()
    verbs = serializers.ListField(child=String())


class Token(Shape):
    number = Integer()
    owner = String()
    name = String()
    scope = String()
    verbs = serializers.ListField(child=String())
    patterns = serializers.ListField(child=String())
    created_at = Instant()
    expires_at = Instant()
    last_used_at = Instant(allow_null=True, help_text="To the minute.")


class MadeToken(Shape):
    number = Integer()
    token = String(help_text="Shown this once; it is kept nowhere.")


class AuditEntry(Shape):
    entry = Integer()
    at = Instant()
    who = String()
    origin = String()
    what = String()
    address = String()
    arguments = serializers.DictField()
    request = Integer(allow_null=True)
    answered = Boolean()
    done = Boolean(allow_null=True)
    result = serializers.DictField()


class ScheduledTask(Shape):
    name = String()
    description = String()
    seconds = Integer(help_text="How often it runs.")
    enabled = Boolean()
    state = serializers.ChoiceField(TASK_STATES, help_text="Of its last run. cut off: it began and never ended; the next run does what it left.")
    by = String(help_text="Who had it run.")
    started_at = Instant(allow_null=True)
    duration_ms = Integer(allow_null=True)
    result = Integer(allow_null=True, help_text="Null: there was nothing to do.")
    result_is = String(help_text="What the number is: rows, or the request to the node that it filed.")
    problem = String(help_text="Why it failed.")
    next_at = Instant(allow_null=True, help_text="Null: it is not enabled.")


class Alert(Shape):
    name = String()
    metric = serializers.ChoiceField(list(METRICS))
    pattern = String(help_text="Of destinations; empty: it is of the whole broker.")
    comparator = serializers.ChoiceField(list(COMPARATORS))
    threshold = serializers.FloatField()
    for_seconds = Integer()
    webhook = String(help_text="Where it is; the rest of the address may be a secret and is not said. Empty: nobody is told.")
    signed = Boolean()
    enabled = Boolean()
    firing = Integer(help_text="Destinations, or 1 for the broker.")
    pending = Integer(help_text="Beyond the threshold, and not for long enough.")


class FiringAlert(Shape):
    alert = String()
    destination = String(allow_null=True, help_text="Null: the broker.")
    value = serializers.FloatField()
    since = Instant(help_text="It is beyond the threshold.")
    fired_at = Instant()


class AlertEvent(Shape):
    number = Integer()
    alert = String()
    state = serializers.ChoiceField(EVENT_STATES)
    destination = String(allow_null=True, help_text="Null: the broker.")
    value = serializers.FloatField(allow_null=True)
    message = String()
    at = Instant()
    delivery = serializers.ChoiceField(DELIVERIES, help_text="none: it has no webhook.")
    attempts = Integer()
    next_at = Instant(allow_null=True, help_text="Of the next attempt.")
    delivered_at = Instant(allow_null=True)
    problem = String(help_text="What was wrong at the last attempt.")


class Standby(Shape):
    node = String()
    started_at = Instant()


class Listener(Shape):
    name = String()
    up = Boolean()
    paused = Boolean(help_text="By an operator: its port is closed until it is resumed, also after a restart.")
    detail = String()


class Drain(Shape):
    since = Instant()
    until = Instant(help_text="Whoever is connected then is cut off.")
    ended = Instant(allow_null=True, help_text="Null: it goes on.")
    cut_off = Integer(help_text="Connections that held something at the end, or had something open.")
    connections = Integer(help_text="That are left.")
    unsettled = Integer(help_text="Messages that they hold.")
    transactions = Integer(help_text="That they have begun and not ended.")


class Compaction(Shape):
    """Segments, but for rows and octets."""

    request = Integer(help_text="Of the call that began it.")
    percent = Integer()
    since = Instant()
    segments = Integer(help_text="That were closed then: each is looked at once.")
    compacted = Integer()
    left = Integer(help_text="As they are: more of them is unsettled, or it is volatile.")
    gone = Integer(help_text="Before they were looked at: dropped, or compacted by the broker itself.")
    rows = Integer(help_text="That were moved out of those that were compacted.")
    octets_before = Integer(help_text="That those took on disk.")
    octets_after = Integer(help_text="By which the table has grown that has the moved rows.")
    ended = Instant(allow_null=True, help_text="Null: it goes on.")


class Compactable(Shape):
    """What a compaction would do now; it did nothing."""

    percent = Integer()
    segments = Integer(help_text="That are closed.")
    looked_at = Integer(help_text="The first of them, if all were too much work.")
    compactable = Integer()
    rows = Integer(help_text="In those that would be compacted, settled or not.")
    unsettled = Integer(help_text="Of these; they would be moved.")
    octets = Integer(help_text="That those take on disk.")


COMPACTED = PolymorphicProxySerializer("Compacted", [ControlRequest, Compactable], None)
"""Of a dry run, the latter."""


class OneNode(Shape):
    node = String()
    state = serializers.ChoiceField(NODE_STATES)
    epoch = Integer(allow_null=True, help_text="Of its term. Null: it does not serve.")
    since = Instant(allow_null=True, help_text="When its term began.")
    started_at = Instant()
    heartbeat_seconds = serializers.FloatField(help_text="Since it was last heard of.")
    version = String()
    host = String()
    connections = counter("Clients connected.")
    listeners = Listener(many=True)


class Node(Shape):
    alive = Boolean(help_text="It holds the lease and was heard of within five seconds.")
    holder = String(allow_null=True)
    epoch = Integer()
    since = Instant(allow_null=True)
    heartbeat_seconds = serializers.FloatField(allow_null=True)
    reporting = Boolean()
    started_at = Instant(allow_null=True)
    version = String(allow_null=True)
    state = serializers.ChoiceField(NODE_STATES, allow_null=True, help_text="Null: unknown.")
    state_since = Instant(allow_null=True, help_text="Since when it is quiesced.")
    drain = Drain(allow_null=True)
    compaction = Compaction(allow_null=True, help_text="Null: nobody has asked for one in this term.")
    connections = counter("Clients connected.")
    listeners = Listener(many=True)
    standbys = Standby(many=True)
    metrics = serializers.DictField()


class Check(Shape):
    name = String()
    problem = String()


class Health(Shape):
    ready = Boolean()
    problems = Check(many=True, help_text="The service does not keep its promises.")
    warnings = Check(many=True, help_text="It does, and this should not stay so.")


class Totals(Shape):
    """Sums over destinations."""

    destinations = counter()
    depth = counter()
    octets = counter()
    unsettled = counter()
    scheduled = counter()
    scheduled_octets = counter()
    consumers = counter()
    paused = counter()
    oldest_ms = Integer(allow_null=True)
    oldest_unsettled_ms = Integer(allow_null=True)
    waiting = counter()
    accepted_total = counter()
    settled_total = counter()
    dead_total = counter()
    expired_total = counter()
    redelivered_total = counter()
    since = SinceReset(allow_null=True, help_text="Null: they were never reset all together.")
