"""The definitions of the broker as one YAML document: exported, planned, applied."""

from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from console.services import definitions as service

from . import shapes
from .documented import says
from .parsing import YAML, Yaml
from .streaming import stream
from .view import View, idempotent

DRY_RUN = OpenApiParameter("dry_run", OpenApiTypes.BOOL, description="Tell what would be done, and do nothing.")
PRUNE = OpenApiParameter("prune", OpenApiTypes.BOOL, description="Remove what is not in the document, of the kinds that it names.")


class DefinitionStep(shapes.Shape):
    """An entry that was not as the document has it."""

    kind = shapes.String()
    name = shapes.String()
    action = serializers.ChoiceField(service.ACTIONS)
    changes = serializers.DictField(help_text="`from` and `to` by field.")
    state = serializers.ChoiceField(service.STATES, help_text="left: it was not tried; apply again.")
    problem = shapes.String(help_text="Why it is not done; empty: it is, or it is planned.")
    warnings = serializers.ListField(child=shapes.String(), help_text="What its operator may not have meant, or has to do yet.")


class DefinitionPlan(shapes.Shape):
    """What was to be done. Where nothing was, the broker is as the document says."""

    dry_run = shapes.Boolean()
    unchanged = shapes.Integer(help_text="Entries that were so already.")
    done = shapes.Integer()
    undone = shapes.Integer(help_text="Refused, unanswered, or left.")
    steps = DefinitionStep(many=True, help_text="In the order in which they are done.")


class Definitions(View):
    parser_classes = [Yaml]

    @says("Export the definitions of the broker as YAML, without secrets; for administrators", {(200, YAML): OpenApiTypes.OBJECT})
    def get(self, request: Request) -> HttpResponseBase:
        text = service.export(self.actor)
        named = {"Content-Disposition": 'attachment; filename="definitions.yaml"', "X-Content-Type-Options": "nosniff"}
        return stream(request, iter([text.encode()]), YAML, named)

    @says(
        "Make the broker as a document of definitions says; with dry_run, tell what would be done; for administrators", DefinitionPlan,
        body={YAML: OpenApiTypes.OBJECT}, writes=True, once=True, parameters=[DRY_RUN, PRUNE],
    )  # fmt: skip
    @idempotent
    def post(self, request: Request) -> Response:
        plan = service.apply(self.actor, request.data or "", dry_run=self.flag("dry_run"), prune=self.flag("prune"))
        done = plan.count(service.DONE)
        undone = 0 if plan.dry_run else len(plan.steps) - done
        told = {"dry_run": plan.dry_run, "unchanged": plan.unchanged, "done": done, "undone": undone, "steps": plan.steps}
        return Response(DefinitionPlan(told).data)
