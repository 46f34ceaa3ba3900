"""What clients send. Types and bounds are here; what depends on more than one member is the service's to say."""

from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from broker_core import control
from broker_core.administered import KINDS
from console.models import ApiToken
from console.permissions import GIVEN_ROLES, GRANTABLE, PATTERN_CHARACTERS_MAX, ROLES, VERBS
from console.selectors.alert_values import COMPARATORS, METRICS
from console.services import alerts
from console.services.accounts import GROUP_CHARACTERS_MAX, GROUPS_MAX, LIMIT_MAX, OVERLAP_SECONDS_MAX
from console.services.schedule import SECONDS_MAX, SECONDS_MIN
from console.services.tokens import DAYS, DAYS_MAX, PATTERNS_MAX
from console.services.webhook import URL_CHARACTERS_MAX

from .fields import Address, Body, Choice, Flag, Number, Object, Text, Whole

NAME_MAX = 255
PASSWORD_MAX = 1024


def _setting(name: str) -> serializers.Field:
    if name in control.CHOICES:
        return Choice(choices=list(control.CHOICES[name]), required=False)
    if name in control.QUEUES or name in control.TEXTS:
        return Text(max_length=NAME_MAX, allow_blank=True, required=False)
    kind, least, most = control.SETTINGS[name]
    if kind is bool:
        return Flag(required=False)
    return (Whole if kind is int else Number)(min_value=least, max_value=most, required=False)


def _verbs(**options: Any) -> serializers.ListField:
    return serializers.ListField(child=Choice(choices=list(VERBS)), max_length=len(VERBS), **options)


class SettingsBody(Body):
    """Settings of a destination: docs/semantics.md says what each does. -1: unlimited."""

    def get_fields(self) -> dict[str, Any]:
        return {name: _setting(name) for name in control.NAMES}


class CreateDestinationBody(Body):
    address = Address(help_text="queue/NAME or topic/NAME")
    settings = SettingsBody(required=False)


class UpdateDestinationBody(Body):
    settings = SettingsBody(help_text="Those to change; the others stay.")


class DirectionBody(Body):
    direction = Choice(choices=list(control.DIRECTIONS), help_text="PRODUCERS: nothing comes in; CONSUMERS: nothing goes out.")


class DepthBody(Body):
    depth = Whole(min_value=0, max_value=control.DEPTH_MAX, help_text="What you saw: if there is much more by then, the node refuses.")


class PolicyBody(Body):
    settings = SettingsBody(help_text="In place of all that the pattern had.")


class CreateAliasBody(Body):
    address = Address()
    target = Address(help_text="The destination, or the alias, that it stands for.")
    default_reliability = Text(max_length=NAME_MAX, required=False)
    maximum_reliability = Text(max_length=NAME_MAX, required=False)
    reliability_override = Flag(required=False)


class UpdateAliasBody(Body):
    target = Address(required=False)
    default_reliability = Text(max_length=NAME_MAX, required=False)
    maximum_reliability = Text(max_length=NAME_MAX, required=False)
    reliability_override = Flag(required=False)


class CreateObjectBody(Body):
    name = Text(max_length=NAME_MAX)
    kind = Choice(choices=list(KINDS))
    attributes = Object(required=False, help_text="By the names that docs/client.md has.")
    read_only = Flag(required=False)


class ObjectBody(Body):
    attributes = Object(help_text="In place of all that it had.")
    read_only = Flag(required=False)


class CreateLinkBody(Body):
    name = Text(max_length=63)
    attributes = Object(help_text="host, port, tls, login, passcode and what docs/semantics.md says of foreign destinations.")


class LinkBody(Body):
    attributes = Object(help_text="In place of all that it had; without a passcode it keeps the one that it has.")


class CreateAccountBody(Body):
    name = Text(max_length=NAME_MAX)
    password = Text(max_length=PASSWORD_MAX, write_only=True)
    loopback_only = Flag(required=False)


class AccountBody(Body):
    """What is to change, all of it or nothing."""

    password = Text(max_length=PASSWORD_MAX, required=False, write_only=True)
    disabled = Flag(required=False)
    persistent_reliability = Choice(choices=list(control.ASKED), allow_blank=True, required=False, help_text="Empty: nothing particular.")
    nonpersistent_reliability = Choice(choices=list(control.ASKED), allow_blank=True, required=False)
    overlap_seconds = Whole(
        min_value=0, max_value=OVERLAP_SECONDS_MAX, required=False, help_text="Goes with the password: so long the former one stays good, and its connections."
    )
    groups = serializers.ListField(child=Text(max_length=GROUP_CHARACTERS_MAX), max_length=GROUPS_MAX, required=False, help_text="For rules of access.")
    connections_max = Whole(min_value=0, max_value=LIMIT_MAX, required=False, help_text="0: as many as the broker takes.")
    sessions_max = Whole(min_value=0, max_value=LIMIT_MAX, required=False, help_text="Of one connection, by AMQP; 0: as many as the broker takes.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "overlap_seconds" in attrs and "password" not in attrs:
            raise ValidationError("overlap_seconds goes with a password: name both.")
        return _something(attrs)


class AccessBody(Body):
    """What no rule allows is refused. Which rule decides is in docs/operations.md."""

    resource = Text(max_length=PATTERN_CHARACTERS_MAX, help_text="queue/orders.*, topic/** and the like; > alone: everything.")
    operation = Choice(choices=list(control.OPERATIONS))
    allow = Flag(help_text="False: it refuses.")
    principal = Text(max_length=NAME_MAX, help_text="An account, or a group of accounts; * for every one.")
    group = Flag(required=False, help_text="The principal is a group.")


class CreateOperatorBody(Body):
    name = Text(max_length=150)
    password = Text(max_length=PASSWORD_MAX, write_only=True)
    rights = serializers.ListField(child=Choice(choices=list(GRANTABLE)), max_length=len(GRANTABLE), required=False)
    superuser = Flag(required=False)
    role = Choice(choices=list(ROLES), required=False, help_text="viewer, if you say nothing; restricted: only what is granted to him by name.")


class OperatorBody(Body):
    """What is to change, all of it or nothing."""

    password = Text(max_length=PASSWORD_MAX, required=False, write_only=True)
    disabled = Flag(required=False)
    rights = serializers.ListField(child=Choice(choices=list(GRANTABLE)), max_length=len(GRANTABLE), required=False)
    superuser = Flag(required=False, help_text="Goes with rights.")
    role = Choice(choices=list(ROLES), required=False, help_text="Without rights and superuser.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("rights" in attrs) != ("superuser" in attrs):
            raise ValidationError("Name rights and superuser together: they say what the operator may do.")
        if "role" in attrs and "superuser" in attrs:
            raise ValidationError("Name the role, or rights and superuser: an administrator is a superuser.")
        return _something(attrs)


class CreateGrantBody(Body):
    role = Choice(choices=list(GIVEN_ROLES), required=False, help_text="To whom; or:")
    operator = Text(max_length=150, required=False)
    pattern = Text(max_length=PATTERN_CHARACTERS_MAX, help_text="queue/orders.*, topic/** and the like; > alone: everything.")
    verbs = _verbs()


class GrantBody(Body):
    verbs = _verbs(help_text="In place of those that it had.")


class DrainBody(Body):
    seconds = Whole(min_value=0, max_value=control.DRAIN_SECONDS_MAX, required=False, help_text="Whoever is connected then is cut off. 60 by default.")


class CompactBody(Body):
    percent = Whole(
        min_value=0, max_value=control.PERCENT_MAX, required=False,
        help_text="Of a segment's messages that may be unsettled, at most. 50 by default; 100: whatever has anything settled; 0: one that is going on ends.",
    )  # fmt: skip


class TaskBody(Body):
    seconds = Whole(min_value=SECONDS_MIN, max_value=SECONDS_MAX, required=False, help_text="How often it runs.")
    enabled = Flag(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        return _something(attrs)


class AlertBody(Body):
    metric = Choice(choices=list(METRICS), required=False, help_text="docs/operations.md says what each is.")
    pattern = Text(max_length=PATTERN_CHARACTERS_MAX, required=False, allow_blank=True, help_text="Of destinations; empty where the metric is of the broker.")
    comparator = Choice(choices=list(COMPARATORS), required=False)
    threshold = Number(required=False)
    for_seconds = Whole(min_value=0, max_value=alerts.FOR_SECONDS_MAX, required=False, help_text="So long it must be so before it fires.")
    webhook = Text(max_length=URL_CHARACTERS_MAX, required=False, allow_blank=True, write_only=True, help_text="http or https. Empty: nobody is told.")
    secret = Text(max_length=alerts.SECRET_CHARACTERS_MAX, required=False, allow_blank=True, write_only=True, help_text="Signs what the webhook is told.")
    enabled = Flag(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        return _something(attrs)


class CreateAlertBody(AlertBody):
    name = Text(max_length=alerts.NAME_CHARACTERS_MAX)
    metric = Choice(choices=list(METRICS), help_text="docs/operations.md says what each is.")
    threshold = Number()


class TestAlertBody(Body):
    name = Text(max_length=alerts.NAME_CHARACTERS_MAX)


class CreateTokenBody(Body):
    name = Text(max_length=100)
    scope = Choice(choices=list(ApiToken.SCOPES))
    verbs = _verbs(required=False, help_text="At most these, and only with destinations; empty: what you may.")
    patterns = serializers.ListField(
        child=Text(max_length=PATTERN_CHARACTERS_MAX), max_length=PATTERNS_MAX, required=False, help_text="Only with these destinations; empty: with yours."
    )
    days = Whole(min_value=1, max_value=DAYS_MAX, default=DAYS, help_text="How long it lasts.")


def _something(attrs: dict[str, Any]) -> dict[str, Any]:
    if not attrs:
        raise ValidationError("Name what is to change.")
    return attrs
