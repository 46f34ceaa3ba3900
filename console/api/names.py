"""What operators name and set up: settings by pattern, aliases, administered objects, links to other brokers."""

from urllib.parse import quote

from rest_framework.request import Request
from rest_framework.response import Response

from console.selectors import names
from console.services import destinations, foreign, objects, policies

from . import bodies, shapes
from .documented import says
from .view import View, done, idempotent, one, page, told


class Policies(View):
    @says("List settings by name pattern", shapes.Policy, paged=True)
    def get(self, request: Request) -> Response:
        self.look("policy list")
        return page(shapes.Policy, names.POLICIES.page(self.after(), self.limit()))


class OnePolicy(View):
    @says("Query the settings of a pattern", shapes.Policy)
    def get(self, request: Request, name: str) -> Response:
        self.look("policy query")
        return one(shapes.Policy, names.POLICIES.one(name))

    @says("Set what destinations of a pattern begin with", shapes.ControlRequest, asks=True, body=bodies.PolicyBody)
    def put(self, request: Request, name: str) -> Response:
        return told(policies.put(self.actor, name, self.body(bodies.PolicyBody)["settings"]))

    @says("Forget the settings of a pattern", shapes.ControlRequest, asks=True, once=True)
    @idempotent
    def delete(self, request: Request, name: str) -> Response:
        return told(policies.drop(self.actor, name))


class Aliases(View):
    @says("List aliases", shapes.Alias, paged=True)
    def get(self, request: Request) -> Response:
        self.look("alias list")
        return page(shapes.Alias, names.ALIASES.page(self.after(), self.limit()))

    @says("Create an alias", shapes.ControlRequest, status=201, asks=True, body=bodies.CreateAliasBody)
    def post(self, request: Request) -> Response:
        given = self.body(bodies.CreateAliasBody)
        address, target = given.pop("address"), given.pop("target")
        return told(destinations.create_alias(self.actor, address, target, given), 201, f"/api/v1/aliases/{quote(address)}")


class OneAlias(View):
    @says("Query an alias", shapes.Alias)
    def get(self, request: Request, name: str) -> Response:
        self.look("alias query")
        return one(shapes.Alias, names.ALIASES.one(name))

    @says("Change an alias", shapes.ControlRequest, asks=True, body=bodies.UpdateAliasBody)
    def patch(self, request: Request, name: str) -> Response:
        return told(destinations.update_alias(self.actor, name, self.body(bodies.UpdateAliasBody)))

    @says("Delete an alias; its target stays", shapes.ControlRequest, asks=True, once=True)
    @idempotent
    def delete(self, request: Request, name: str) -> Response:
        return told(destinations.delete_alias(self.actor, name))


class Objects(View):
    @says("List administered objects", shapes.AdministeredObject, paged=True)
    def get(self, request: Request) -> Response:
        self.look("object list")
        return page(shapes.AdministeredObject, names.OBJECTS.page(self.after(), self.limit()))

    @says("Create an administered object", shapes.Done, status=201, body=bodies.CreateObjectBody)
    def post(self, request: Request) -> Response:
        given = self.body(bodies.CreateObjectBody)
        attributes, read_only = given.get("attributes", {}), given.get("read_only", False)
        warnings = objects.create(self.actor, given["name"], given["kind"], attributes, read_only=read_only)
        return done(warnings, 201, f"/api/v1/objects/{quote(given['name'])}")


class OneObject(View):
    @says("Query an administered object", shapes.AdministeredObject)
    def get(self, request: Request, name: str) -> Response:
        self.look("object query")
        return one(shapes.AdministeredObject, names.OBJECTS.one(name))

    @says("Change an administered object", shapes.Done, body=bodies.ObjectBody)
    def put(self, request: Request, name: str) -> Response:
        given = self.body(bodies.ObjectBody)
        return done(objects.update(self.actor, name, given["attributes"], read_only=given.get("read_only", False)))

    @says("Delete an administered object", shapes.Done, writes=True, once=True)
    @idempotent
    def delete(self, request: Request, name: str) -> Response:
        objects.delete(self.actor, name)
        return done()


class Links(View):
    @says("List links to other brokers", shapes.Link, paged=True)
    def get(self, request: Request) -> Response:
        self.look("link list")
        return page(shapes.Link, names.LINKS.page(self.after(), self.limit()))

    @says("Create a link to another broker", shapes.Done, status=201, body=bodies.CreateLinkBody)
    def post(self, request: Request) -> Response:
        given = self.body(bodies.CreateLinkBody)
        warnings = foreign.create(self.actor, given["name"], given["attributes"])
        return done(warnings, 201, f"/api/v1/links/{quote(given['name'])}")


class OneLink(View):
    @says("Query a link to another broker", shapes.Link)
    def get(self, request: Request, name: str) -> Response:
        self.look("link query")
        return one(shapes.Link, names.LINKS.one(name))

    @says("Change a link to another broker", shapes.Done, body=bodies.LinkBody)
    def put(self, request: Request, name: str) -> Response:
        given = self.body(bodies.LinkBody)
        return done(foreign.update(self.actor, name, given["attributes"]))

    @says("Delete a link to another broker", shapes.Done, writes=True, once=True)
    @idempotent
    def delete(self, request: Request, name: str) -> Response:
        return done(foreign.delete(self.actor, name))
