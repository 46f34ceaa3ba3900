"""Destinations: list, create, query, update, pause and resume, purge, destroy."""

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from broker_core.control import DEPTH_MAX
from console.selectors import destinations, resets
from console.selectors.destinations import Destination
from console.services import destinations as service
from console.services import resets as resetting

from . import bodies, shapes
from .documented import DRY_RUN, says
from .problems import Problem
from .view import View, done, idempotent, one, page, told

SEARCH = OpenApiParameter("search", OpenApiTypes.STR, description="Part of the address, whatever its case.")
ADDRESS = OpenApiParameter("address", OpenApiTypes.STR, description="Only the one of this address.")
SORT = OpenApiParameter("sort", OpenApiTypes.STR, enum=destinations.SORTS, description="depth: the deepest first.")
TEMPORARY = OpenApiParameter("temporary", OpenApiTypes.BOOL, description="Temporary destinations, which are not among the others.")
DEPTH = OpenApiParameter("depth", {"type": "integer", "minimum": 0, "maximum": DEPTH_MAX}, description="What you saw; needed, unless this is a dry run.")


class OfDestination(View):
    def found(self, number: str) -> Destination:
        """Raises Problem: there is none; it may have been destroyed."""
        it = destinations.by_number(int(number), self.sight)
        if it is None:
            raise Problem("not-found")
        return it


class Destinations(View):
    @says("List destinations with what the node counts", shapes.Destination, paged=True, parameters=[SEARCH, ADDRESS, SORT, TEMPORARY])
    def get(self, request: Request) -> Response:
        query = request.query_params
        if "address" in query:
            found = destinations.by_address(query["address"], self.sight)
            return page(shapes.Destination, ([found] if found else [], ""))
        sort = query.get("sort", "name")
        if sort not in destinations.SORTS:
            raise Problem("invalid", f"sort must be one of {', '.join(destinations.SORTS)}.")
        if self.after() and not destinations.is_key(self.after()):
            raise Problem("invalid", "after must be the `next` of another page.")
        listed = destinations.page(query.get("search", ""), sort, self.after(), self.limit(), temporary=self.flag("temporary"), within=self.sight)
        return page(shapes.Destination, (listed.destinations, listed.after))

    @says("Create a destination", shapes.ControlRequest, status=201, asks=True, body=bodies.CreateDestinationBody)
    def post(self, request: Request) -> Response:
        given = self.body(bodies.CreateDestinationBody)
        outcome = service.create(self.actor, given["address"], given.get("settings"))
        made = destinations.by_address(given["address"]) if outcome.done else None
        return told(outcome, 201, f"/api/v1/destinations/{made.number}" if made else "")


class OneDestination(OfDestination):
    @says("Query a destination", shapes.QueriedDestination)
    def get(self, request: Request, number: str) -> Response:
        it = self.found(number)
        since = resets.of_destination(it)
        return Response({**shapes.Destination(it).data, "since": None if since is None else shapes.SinceReset(since).data})

    @says("Change settings of a destination", shapes.ControlRequest, asks=True, body=bodies.UpdateDestinationBody)
    def patch(self, request: Request, number: str) -> Response:
        it = self.found(number)
        return told(service.update(self.actor, it.address, self.body(bodies.UpdateDestinationBody)["settings"]))

    @says("Destroy a destination with its messages; with dry_run, a Preview", shapes.DISCARDED, asks=True, once=True, parameters=[DRY_RUN, DEPTH])
    @idempotent
    def delete(self, request: Request, number: str) -> Response:
        it = self.found(number)
        if self.flag("dry_run"):
            return one(shapes.Preview, service.preview_destroy(self.actor, it))
        depth = self.whole("depth", -1, 0, DEPTH_MAX)
        if depth < 0:
            raise Problem("invalid", "Give the depth that you saw: nobody should discard messages without knowing how many.")
        return told(service.destroy(self.actor, it.address, depth))


class ResetTotals(OfDestination):
    @says("Reset the totals of a destination: what is told `since` begins at zero", shapes.Done, writes=True, once=True)
    @idempotent
    def post(self, request: Request, number: str) -> Response:
        resetting.reset(self.actor, self.found(number))
        return done()


class Pause(OfDestination):
    @says("Pause a destination, by direction", shapes.ControlRequest, asks=True, body=bodies.DirectionBody)
    def post(self, request: Request, number: str) -> Response:
        it = self.found(number)
        return told(service.pause(self.actor, it.address, self.body(bodies.DirectionBody)["direction"]))


class Resume(OfDestination):
    @says("Resume a destination, by direction", shapes.ControlRequest, asks=True, body=bodies.DirectionBody)
    def post(self, request: Request, number: str) -> Response:
        it = self.found(number)
        return told(service.resume(self.actor, it.address, self.body(bodies.DirectionBody)["direction"]))


class Purge(OfDestination):
    @says("Discard the messages of a destination; with dry_run, a Preview", shapes.DISCARDED, asks=True, body=bodies.DepthBody, once=True, parameters=[DRY_RUN])
    @idempotent
    def post(self, request: Request, number: str) -> Response:
        it = self.found(number)
        depth = self.body(bodies.DepthBody)["depth"]
        if self.flag("dry_run"):
            return one(shapes.Preview, service.preview_purge(self.actor, it))
        return told(service.purge(self.actor, it.address, depth))
