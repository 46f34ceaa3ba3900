"""What was counted in the last minutes to 24 hours, as the charts show it."""

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from console.selectors import history
from console.services.history import SPANS, Span

from . import shapes
from .destinations import OfDestination
from .documented import says
from .problems import Problem
from .view import View

NAMED = {each.name.replace(" ", ""): each for each in SPANS}
SPAN = OpenApiParameter("span", OpenApiTypes.STR, enum=list(NAMED), description="How far back; a longer one in longer steps.")


class HistoryPoint(shapes.Shape):
    """A step of time that ends at `at`. Null: nobody noted it."""

    at = shapes.Instant()
    depth = shapes.counter("Messages held, at the end.")
    unsettled = shapes.counter("Delivered and not acknowledged, at the end.")
    accepted = serializers.FloatField(allow_null=True, help_text="Messages a second, as those that follow.")
    settled = serializers.FloatField(allow_null=True)
    dead = serializers.FloatField(allow_null=True)


def _points(found: history.History) -> Response:
    columns = (found.times, found.depth, found.unsettled, found.accepted, found.settled, found.dead)
    names = list(HistoryPoint().fields)
    rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    return Response(HistoryPoint(rows, many=True).data)


def _span(view: View) -> Span:
    """Raises Problem."""
    found = NAMED.get(view.request.query_params.get("span", next(iter(NAMED))))
    if found is None:
        raise Problem("invalid", f"span must be one of {', '.join(NAMED)}.")
    return found


class OfOne(OfDestination):
    @says("What a destination held and how much went through it, step by step", HistoryPoint(many=True), parameters=[SPAN])
    def get(self, request: Request, number: str) -> Response:
        return _points(history.of_destination(self.found(number).number, _span(self)))


class OfAll(View):
    @says("What all destinations held and how much went through them, step by step", HistoryPoint(many=True), parameters=[SPAN])
    def get(self, request: Request) -> Response:
        self.look("totals")
        return _points(history.of_all(_span(self)))
