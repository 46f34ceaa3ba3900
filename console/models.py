"""What the console itself owns. The broker's tables live in schema `surety` and belong to the broker: selectors read them,
services write control requests; no model here touches them."""

from django.conf import settings
from django.db import models


class Operation(models.Model):  # noqa: DJ008  # it has no rows that could be shown
    """Carries the permissions; it has no table. A person who is logged in and has none of them is a viewer."""

    class Meta:
        managed = False
        default_permissions = ()
        permissions = [
            ("manage_destination", "Create, change, pause and resume destinations"),
            ("discard_message", "Purge and destroy destinations: discard messages"),
            ("manage_account", "Create, change and delete client accounts"),
            ("resolve_transactions", "End prepared branches of distributed transactions by hand"),
        ]


class OperatorRole(models.Model):
    """What a person is, of permissions.GIVEN_ROLES. Whoever has no row is a viewer, a superuser an administrator whatever he has."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True)
    role = models.CharField(max_length=20)

    def __str__(self) -> str:
        return f"{self.user_id} is {self.role}"


class ProviderIdentity(models.Model):
    """Who logs in by single sign-on is known by what his provider calls him, which never changes, not by his name."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True)
    issuer = models.CharField(max_length=255)
    subject = models.CharField(max_length=255)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["issuer", "subject"], name="provider_identity")]

    def __str__(self) -> str:
        return f"{self.subject} of {self.issuer}"


class Grant(models.Model):
    """What a role, or one person, may do with destinations of a pattern: see console.permissions."""

    role = models.CharField(max_length=20, default="", help_text="Empty: it is granted to the person.")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, help_text="Null: it is granted to the role.")
    pattern = models.CharField(max_length=261)
    verbs = models.JSONField(help_text="A list.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["role", "user", "pattern"], name="grant_pattern", nulls_distinct=False),
            models.CheckConstraint(condition=models.Q(role="") ^ models.Q(user=None), name="grant_subject"),
        ]

    def __str__(self) -> str:
        return f"{', '.join(self.verbs)} of {self.pattern} to {self.role or self.user_id}"


class LoginAttempt(models.Model):
    """A login that failed or is being checked; the throttle counts those of the last minutes. A success deletes its own."""

    name = models.CharField(max_length=150)
    address = models.CharField(max_length=45, help_text="The peer's IP address; IPv6 takes up to 45 characters.")
    at = models.DateTimeField()
    told = models.BooleanField(
        default=False, db_default=False, help_text="The audit says that its place is throttled, and need not say so again while this one counts."
    )

    class Meta:
        indexes = [
            models.Index(fields=["address", "at"], name="login_attempt_address"),
            models.Index(fields=["at"], name="login_attempt_at"),
        ]

    def __str__(self) -> str:
        return f"{self.name} from {self.address} at {self.at:%Y-%m-%d %H:%M:%S}"


class ApiToken(models.Model):
    """Lets a machine act for its owner, within the token's scope. What it is told once is kept as a hash only."""

    READ, WRITE = SCOPES = ("read", "write")

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    name = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True, help_text="SHA-256 of the token, in hexadecimal: 256 random bits need no slower hash.")
    scope = models.CharField(max_length=5)
    verbs = models.JSONField(default=list, help_text="Of permissions.VERBS, a list: what the token may do at most. Empty: what its owner may.")
    patterns = models.JSONField(default=list, help_text="Of destinations, a list: with which it may do so. Empty: those of its owner.")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, help_text="To the minute. Null: never.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="api_token_name")]

    def __str__(self) -> str:
        return f"{self.name} of {self.owner_id}"


class TaskRun(models.Model):
    """The last run of a task of the schedule."""

    name = models.CharField(max_length=50, primary_key=True)
    by = models.CharField(max_length=150, help_text="Who had it run: the scheduler, or an administrator.")
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, help_text="Null: it runs, or was cut off.")
    duration_ms = models.BigIntegerField(null=True)
    result = models.BigIntegerField(null=True)
    problem = models.CharField(max_length=500, default="")

    def __str__(self) -> str:
        return f"{self.name} at {self.started_at:%Y-%m-%d %H:%M:%S}"


class IdempotentCall(models.Model):
    """A call that carried an Idempotency-Key, and its answer, so that a call repeated is not done again."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    key = models.CharField(max_length=255)
    fingerprint = models.CharField(max_length=64, help_text="SHA-256 of method, address and body, and of what the caller may.")
    status = models.SmallIntegerField(null=True, help_text="Null: the call has begun, and what became of it is not known yet.")
    location = models.CharField(max_length=1000, default="")
    answer = models.JSONField(null=True)
    at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["owner", "key"], name="idempotent_call_key")]
        indexes = [models.Index(fields=["at"], name="idempotent_call_at")]

    def __str__(self) -> str:
        return f"{self.key} of {self.owner_id}"


class Sample(models.Model):
    """What the node counted at one time, for charts: of one destination, or of all together. See services.history."""

    pk = models.CompositePrimaryKey("destination", "span", "at")
    destination = models.IntegerField(help_text="0: sums over all.")
    span = models.SmallIntegerField(help_text="Of history.SPANS: the finer samples are, the sooner they go.")
    at = models.DateTimeField()
    depth = models.BigIntegerField()
    unsettled = models.BigIntegerField()
    accepted = models.BigIntegerField(help_text="Totals, not rates: what is between two samples is their difference.")
    settled = models.BigIntegerField()
    dead = models.BigIntegerField()

    class Meta:
        indexes = [models.Index(fields=["span", "at"], name="sample_at")]

    def __str__(self) -> str:
        return f"{self.destination} at {self.at:%Y-%m-%d %H:%M:%S}"


class TotalsReset(models.Model):
    """What the totals of a destination were when an operator reset them. See console.services.resets."""

    pk = models.CompositePrimaryKey("destination", "of_broker")
    destination = models.IntegerField(help_text="0: when those of the whole broker were reset.")
    of_broker = models.BooleanField(help_text="With those of all others; a reset of this one alone leaves it as it is, and with it the sums.")
    at = models.DateTimeField()
    accepted_total = models.BigIntegerField()
    settled_total = models.BigIntegerField()
    dead_total = models.BigIntegerField()
    expired_total = models.BigIntegerField()
    redelivered_total = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.destination} at {self.at:%Y-%m-%d %H:%M:%S}"


class AlertRule(models.Model):
    """What administrators want to be told of. See console.services.alerts."""

    name = models.CharField(max_length=100, unique=True)
    metric = models.CharField(max_length=50)
    pattern = models.CharField(max_length=261, help_text="Of destinations; empty where the metric is of the whole broker.")
    comparator = models.CharField(max_length=1)
    threshold = models.FloatField()
    for_seconds = models.IntegerField(help_text="So long it must be so before it is an alert.")
    webhook = models.CharField(max_length=1000, help_text="Empty: nobody is told; it is in the history.")
    secret = models.CharField(max_length=200, help_text="Signs what the webhook is told. Empty: nothing is signed.")
    enabled = models.BooleanField()
    memory = models.JSONField(default=list, help_text="Of a metric that grows: (second, value), the oldest first.")

    def __str__(self) -> str:
        return f"{self.name}: {self.metric} of {self.pattern or 'the broker'} {self.comparator} {self.threshold}"


class Alert(models.Model):
    """What a rule has found and what is so still. It fires when it has been so for long enough."""

    rule = models.ForeignKey(AlertRule, on_delete=models.CASCADE)
    subject = models.CharField(max_length=300, help_text="The address of a destination; empty: the broker.")
    value = models.FloatField()
    since = models.DateTimeField()
    fired_at = models.DateTimeField(null=True, help_text="Null: not for long enough yet.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["rule", "subject"], name="alert_subject")]

    def __str__(self) -> str:
        return f"{self.rule_id} of {self.subject or 'the broker'} since {self.since:%Y-%m-%d %H:%M:%S}"


class AlertEvent(models.Model):
    """An alert that has begun or ended, and whether its webhook knows."""

    rule = models.ForeignKey(AlertRule, on_delete=models.SET_NULL, null=True, help_text="Null: it is gone, so nobody is told any more.")
    name = models.CharField(max_length=100)
    state = models.CharField(max_length=10, help_text="firing, resolved or test.")
    told = models.JSONField(help_text="What the webhook is told.")
    at = models.DateTimeField()
    delivery = models.CharField(max_length=10, help_text="none, waiting, delivered or given up.")
    attempts = models.IntegerField(default=0)
    next_at = models.DateTimeField(null=True, help_text="Of the next attempt; while one is under way, when it is given up for lost.")
    delivered_at = models.DateTimeField(null=True)
    problem = models.CharField(max_length=300, default="")

    class Meta:
        indexes = [
            models.Index(fields=["next_at"], name="alert_event_due", condition=models.Q(delivery="waiting")),
            models.Index(fields=["at"], name="alert_event_at"),
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.state} at {self.at:%Y-%m-%d %H:%M:%S}"
