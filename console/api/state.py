"""What is: the node, its health, sums, prepared branches, requests and the audit log; and what the API is itself."""

from functools import cache
from typing import Any

from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from console.permissions import LOOK, METRICS, may
from console.selectors import audit, branches, health, node, operators, requests, resets, totals
from console.selectors import warnings as cautions
from console.services import branches as branch_service
from console.services import resets as resetting

from . import problems, shapes
from .documented import says
from .problems import Problem
from .view import View, done, idempotent, one, page, told

WHO = OpenApiParameter("who", OpenApiTypes.STR, description="Only of this person.")
WHAT = OpenApiParameter("what", OpenApiTypes.STR, description="Only of this deed, as the log has it: purge, account create, login.")
OVER = OpenApiParameter("address", OpenApiTypes.STR, description="Only about this destination, account or the like.")
SINCE = OpenApiParameter("since", OpenApiTypes.DATETIME, description="Not before.")
UNTIL = OpenApiParameter("until", OpenApiTypes.DATETIME, description="Before.")
ACCOUNT = OpenApiParameter("account", OpenApiTypes.STR, description="Only those of this account.")
REFUSED = OpenApiParameter("refused", OpenApiTypes.BOOL, description="Only attempts that were refused.")


class WhoAmI(View):
    @says("Who asks, and what he may do", shapes.WhoAmI)
    def get(self, request: Request) -> Response:
        actor = self.actor
        told_of = {"superuser": actor.user.is_superuser, "rights": operators.rights_of(actor), "read_only": actor.read_only}
        return Response({"name": actor.name, **told_of, **operators.told_of(actor)})


class Health(View):
    @says("What is wrong, by name of the check", shapes.Health)
    def get(self, request: Request) -> Response:
        status = node.node_status()
        found, warnings = ([{"name": name, "problem": sentence} for name, sentence in each(status).items()] for each in (health.problems, cautions.warnings))
        return Response({"ready": not found, "problems": found, "warnings": warnings})


class Totals(View):
    @says("Sums over destinations", shapes.Totals)
    def get(self, request: Request) -> Response:
        self.look("totals")
        found = totals.totals()
        return Response(shapes.Totals({**(found or dict.fromkeys(shapes.Totals().fields)), "since": resets.of_all()}).data)


class ResetAllTotals(View):
    @says("Reset the totals of all destinations: what is told `since` begins at zero", shapes.Done, writes=True, once=True)
    @idempotent
    def post(self, request: Request) -> Response:
        resetting.reset_all(self.actor)
        return done()


class Branches(View):
    @says("List prepared branches of distributed transactions", shapes.Branch, paged=True, parameters=[ACCOUNT])
    def get(self, request: Request) -> Response:
        self.look("branch list")
        return page(shapes.Branch, branches.page(self.number_after(), self.limit(), account=request.query_params.get("account", "")))


class OneBranch(View):
    @says("Query a prepared branch", shapes.Branch)
    def get(self, request: Request, number: str) -> Response:
        self.look("branch query")
        return one(shapes.Branch, branches.by_number(int(number)))


class BranchItems(View):
    @says("What a prepared branch sends and has acknowledged, in order", shapes.BranchItem, paged=True)
    def get(self, request: Request, number: str) -> Response:
        self.look("branch query")
        if branches.by_number(int(number)) is None:
            raise Problem("not-found")
        return page(shapes.BranchItem, branches.items(int(number), self.number_after() if self.after() else -1, self.limit()))


class EndBranch(View):
    @says("End a prepared branch by hand, or forget that it was", shapes.ControlRequest, asks=True, once=True)
    @idempotent
    def post(self, request: Request, number: str, verb: str) -> Response:
        branch_service.check(self.actor, verb)
        if branches.by_number(int(number)) is None:
            raise Problem("not-found")
        return told(branch_service.end(self.actor, verb, int(number)))


class OneRequest(View):
    @says("What became of a request to the node", shapes.ControlRequest)
    def get(self, request: Request, number: str) -> Response:
        found = requests.by_number(int(number))
        if found is not None and not (found.requested_by == self.actor.name or may(self.actor, METRICS if found.address else LOOK, found.address)):
            found = None
        return one(shapes.ControlRequest, found)


class Audit(View):
    @says("Who did what, newest first; refused attempts too", shapes.AuditEntry, paged=True, parameters=[WHO, WHAT, OVER, SINCE, UNTIL, REFUSED])
    def get(self, request: Request) -> Response:
        self.look("audit")
        query = self.request.query_params
        texts = {name: query[name] for name in ("who", "what", "address") if name in query}
        wanted = audit.Wanted(**texts, since=self.instant("since"), until=self.instant("until"), refused=self.flag("refused"))
        return page(shapes.AuditEntry, audit.page(self.number_after(), self.limit(), wanted))


class Problems(View):
    @says("Every code of a problem document", shapes.ProblemCode(many=True))
    def get(self, request: Request) -> Response:
        return Response([{"code": code, "status": status, "title": title} for code, (status, title) in problems.CODES.items()])


class Schema(View):
    @says("This document", OpenApiTypes.OBJECT)
    def get(self, request: Request) -> Response:
        return Response(document())


@cache
def document() -> dict[str, Any]:
    """The OpenAPI document: the same for everybody, and made once."""
    return SchemaGenerator(api_version="1").get_schema(public=True)


class Nothing(View):
    """Any other address."""

    schema = None

    def get(self, request: Request, **arguments: str) -> Response:
        raise Problem("not-found")

    post = put = patch = delete = get
