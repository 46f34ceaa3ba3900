"""What the data pipeline has found out: audits, violations, what happened over time."""

from datetime import UTC, datetime, timedelta

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from console.selectors import reports

from . import shapes
from .documented import says
from .problems import Problem
from .view import View, one, page

GRAIN = OpenApiParameter("grain", OpenApiTypes.STR, enum=list(reports.GRAINS), description="What a point is of; an hour by default.")
SINCE = OpenApiParameter("since", OpenApiTypes.DATETIME, description="A day ago by default.")
UNTIL = OpenApiParameter("until", OpenApiTypes.DATETIME, description="Now by default.")
DESTINATION = OpenApiParameter("destination", OpenApiTypes.INT, description="Only of this one, by its number.")
SUBSCRIPTIONS = OpenApiParameter("subscriptions", OpenApiTypes.BOOL, description="Of subscriptions, a queue's own among them, in place of destinations.")
DESTINATION_MAX = (1 << 31) - 1


class PipelineAudit(shapes.Shape):
    """What an audit has proven. `proven` and `unproven` are messages, once for every subscription; `violations` are ranges of them."""

    number = shapes.Integer()
    run = shapes.Integer()
    at = shapes.Instant()
    from_number = shapes.Integer(help_text="The first commit.")
    to_number = shapes.Integer(help_text="The last one.")
    from_at = shapes.Instant(allow_null=True)
    to_at = shapes.Instant(allow_null=True)
    since = shapes.Instant(allow_null=True, help_text="Only messages accepted since then. Null: all that was new.")
    destination = shapes.Integer(allow_null=True, help_text="Only of this one.")
    complete = shapes.Boolean(help_text="Nothing had happened before what the audits began with.")
    proven = shapes.Integer()
    unproven = shapes.Integer(help_text="A commit that is missing may have said what is missing.")
    violations = shapes.Integer()
    milliseconds = shapes.Integer(help_text="How long it took.")
    kinds = serializers.DictField(help_text="Of each kind of violation how many ranges and messages there are. The first 200 of each kind are listed.")
    fates = serializers.ListField(child=serializers.DictField(), help_text="By destination and subscription. Fate null: not proven.")
    discards = serializers.ListField(child=serializers.DictField(), help_text="What was discarded by hand, request by request, and who asked.")
    gaps = serializers.ListField(child=serializers.ListField(), help_text="Commits that were dropped unread: first, last, why.")


class PipelineViolation(shapes.Shape):
    """Neighbours in a lane and subscription; of a break in the ledger `first` to `last` are commits."""

    number = shapes.Integer()
    kind = shapes.String()
    reason = shapes.String()
    destination = shapes.Integer(allow_null=True)
    address = shapes.String(allow_null=True)
    subscription = shapes.Integer(allow_null=True)
    lane = shapes.Integer(allow_null=True)
    first = shapes.Integer(allow_null=True)
    last = shapes.Integer(allow_null=True)
    messages = shapes.Integer(allow_null=True)
    accepted = shapes.Integer(allow_null=True, help_text="In which commit.")
    offered = shapes.Integer(allow_null=True)
    settled = shapes.Integer(allow_null=True)
    outcome = shapes.String(allow_null=True)
    evidence = serializers.ListField(child=serializers.DictField(), help_text="The events of the ledger that it follows from.")


class PipelinePoint(shapes.Shape):
    """What happened in a minute, an hour or a day. A count that is not there is 0; a time that is null was not measured."""

    start = shapes.Instant()
    address = shapes.String(allow_null=True, help_text="Null: it is gone, and so is its name.")
    destination = shapes.Integer()
    subscription = shapes.Integer(help_text="0: the destination's own.")
    counts = serializers.DictField(
        help_text="accepted, octets, octets_in, octets_out, blocked_ms, offered, delivered, failed, outcomes, arrived, left, histograms: see "
        "docs/delivery-audit.md."
    )
    redelivered = shapes.Integer()
    times_ms = serializers.SerializerMethodField(help_text="Percentiles of wait, held and life.")
    octets_in = shapes.Integer(
        allow_null=True,
        help_text="Of stored messages that came, of a topic once a durable subscription. Null: unknown, as no audit told it yet; or of a subscription.",
    )
    octets_out = shapes.Integer(allow_null=True, help_text="The same that left. Of topics an estimate that is corrected later: it may be below 0.")
    flow_control_ms = shapes.Integer(allow_null=True, help_text="How long its producers waited for room. Null: as octets_in.")

    @extend_schema_field(serializers.DictField())
    def get_times_ms(self, it: reports.Point) -> dict[str, dict[int, int] | None]:
        return {name: it.percentiles(name) for name in reports.TIMES}


class Audits(View):
    @says("List audits of the data pipeline, the newest first", PipelineAudit, paged=True)
    def get(self, request: Request) -> Response:
        self.look("audits of the pipeline")
        return page(PipelineAudit, reports.audits(self.number_after(), self.limit()))


class OneAudit(View):
    @says("Query an audit of the data pipeline", PipelineAudit)
    def get(self, request: Request, number: str) -> Response:
        self.look("audits of the pipeline")
        return one(PipelineAudit, reports.audit(int(number)))


class Violations(View):
    @says("List the violations that an audit has found", PipelineViolation, paged=True)
    def get(self, request: Request, number: str) -> Response:
        self.look("audits of the pipeline")
        if reports.audit(int(number)) is None:
            raise Problem("not-found")
        return page(PipelineViolation, reports.violations(int(number), self.number_after(), self.limit()))


class Points(View):
    @says("List what happened, by minute, hour or day", PipelinePoint, paged=True, parameters=[GRAIN, SINCE, UNTIL, DESTINATION, SUBSCRIPTIONS])
    def get(self, request: Request) -> Response:
        grain = request.query_params.get("grain", "hour")
        if grain not in reports.GRAINS:
            raise Problem("invalid", f"grain must be one of {', '.join(reports.GRAINS)}.")
        until = self.instant("until") or datetime.now(UTC)
        since = self.instant("since") or until - timedelta(days=1)
        destination = self.whole("destination", 0, 1, DESTINATION_MAX) or None
        told = {"destination": destination, "subscriptions": self.flag("subscriptions"), "within": self.sight}
        try:
            return page(PipelinePoint, reports.points(grain, since, until, after=self.after(), limit=self.limit(), **told))
        except ValueError as error:
            raise Problem("invalid", "after must be the `next` of another page.") from error
