"""What administrators want to be told of, what fires, and whether their webhooks know."""

from urllib.parse import quote

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from console.selectors import alerts
from console.services import alerts as service

from . import bodies, shapes
from .documented import says
from .view import View, done, idempotent, one, page

ALERT = OpenApiParameter("alert", OpenApiTypes.STR, description="Only of this alert.")
UNDELIVERED = OpenApiParameter("undelivered", OpenApiTypes.BOOL, description="Only those whose webhook does not know yet, or never will.")


class Alerts(View):
    @says("List alerts: what they look for, and how many fire", shapes.Alert, paged=True)
    def get(self, request: Request) -> Response:
        self.look("alert list")
        return page(shapes.Alert, alerts.page(self.after(), self.limit()))

    @says("Make an alert; for administrators", shapes.Done, status=201, body=bodies.CreateAlertBody)
    def post(self, request: Request) -> Response:
        given = self.body(bodies.CreateAlertBody)
        name = given.pop("name")
        return done(service.create(self.actor, name, given), 201, f"/api/v1/alerts/{quote(name, safe='')}")


class OneAlert(View):
    @says("Query an alert", shapes.Alert)
    def get(self, request: Request, name: str) -> Response:
        self.look("alert query")
        return one(shapes.Alert, alerts.by_name(name))

    @says("Change an alert: what it looks for, whom it tells; for administrators", shapes.Done, body=bodies.AlertBody)
    def patch(self, request: Request, name: str) -> Response:
        return done(service.update(self.actor, name, self.body(bodies.AlertBody)))

    @says("Delete an alert; its history stays; for administrators", shapes.Done, writes=True, once=True)
    @idempotent
    def delete(self, request: Request, name: str) -> Response:
        service.delete(self.actor, name)
        return done()


class TestAlert(View):
    @says("Tell an alert's webhook that this is a test; for administrators", shapes.AlertEvent, body=bodies.TestAlertBody)
    def post(self, request: Request) -> Response:
        event = service.test(self.actor, self.body(bodies.TestAlertBody)["name"])
        return one(shapes.AlertEvent, alerts.event(event.pk))


class Firing(View):
    @says("What fires now, the newest first", shapes.FiringAlert(many=True))
    def get(self, request: Request) -> Response:
        self.look("alert list")
        return Response(shapes.FiringAlert(alerts.firing(), many=True).data)


class Events(View):
    @says("The history of alerts, newest first", shapes.AlertEvent, paged=True, parameters=[ALERT, UNDELIVERED])
    def get(self, request: Request) -> Response:
        self.look("alert events")
        wanted = {"alert": request.query_params.get("alert", ""), "undelivered": self.flag("undelivered")}
        return page(shapes.AlertEvent, alerts.events(self.number_after(), self.limit(), **wanted))
