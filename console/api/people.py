"""Client accounts, operators of the console, and their tokens."""

from typing import Any
from urllib.parse import quote

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from broker_core.control import Rule
from console.permissions import VIEWER
from console.selectors import accounts, operators, tokens
from console.services import access as access_service
from console.services import accounts as account_service
from console.services import grants as grant_service
from console.services import operators as operator_service
from console.services import tokens as token_service

from . import bodies, shapes
from .documented import says
from .problems import Problem
from .view import View, done, idempotent, one, page


SEARCH = OpenApiParameter("search", OpenApiTypes.STR, description="Part of the name, whatever its case.")
SEARCH_GRANTS = OpenApiParameter("search", OpenApiTypes.STR, description="Part of the pattern, of the role or of the operator's name, whatever its case.")
PRINCIPAL = OpenApiParameter("principal", OpenApiTypes.STR, description="Only those for this account or group, or for `*`.")
EVERYBODY = OpenApiParameter("everybody", OpenApiTypes.BOOL, description="Those of all operators; for administrators.")


class Accounts(View):
    @says("List client accounts", shapes.Account, paged=True, parameters=[SEARCH])
    def get(self, request: Request) -> Response:
        self.look("account list")
        return page(shapes.Account, accounts.page(self.after(), self.limit(), search=request.query_params.get("search", "")))

    @says("Create a client account", shapes.Done, status=201, body=bodies.CreateAccountBody)
    def post(self, request: Request) -> Response:
        given = self.body(bodies.CreateAccountBody)
        account_service.create(self.actor, given["name"], given["password"], loopback_only=given.get("loopback_only", False))
        return done(status=201, location=f"/api/v1/accounts/{quote(given['name'])}")


class OneAccount(View):
    @says("Query a client account", shapes.Account)
    def get(self, request: Request, name: str) -> Response:
        self.look("account query")
        return one(shapes.Account, accounts.by_name(name))

    @says("Change a client account: password, disabled, limits, groups, levels of reliability", shapes.Done, body=bodies.AccountBody)
    def patch(self, request: Request, name: str) -> Response:
        given = self.body(bodies.AccountBody)
        account_service.check(self.actor, name)
        it = accounts.by_name(name)
        if it is None:
            raise Problem("not-found")
        levels = None
        if "persistent_reliability" in given or "nonpersistent_reliability" in given:
            levels = (given.get("persistent_reliability", it.persistent_reliability), given.get("nonpersistent_reliability", it.nonpersistent_reliability))
        others = {each: value for each, value in given.items() if not each.endswith("_reliability")}
        return done(account_service.update(self.actor, name, levels=levels, **others))

    @says("Delete a client account", shapes.Done, writes=True, once=True)
    @idempotent
    def delete(self, request: Request, name: str) -> Response:
        account_service.delete(self.actor, name)
        return done()


class AccessRules(View):
    @says("List rules of access: which accounts may do what with which destinations", shapes.AccessRule, paged=True, parameters=[PRINCIPAL])
    def get(self, request: Request) -> Response:
        self.look("access list")
        return page(shapes.AccessRule, accounts.access_page(self.number_after(), self.limit(), principal=request.query_params.get("principal", "")))

    @says("Make a rule of access", shapes.Done, status=201, body=bodies.AccessBody)
    def post(self, request: Request) -> Response:
        given = self.body(bodies.AccessBody)
        made = access_service.create(self.actor, Rule(given["resource"], given["operation"], given["allow"], given["principal"], given.get("group", False)))
        return done(made.warnings, 201, f"/api/v1/access/{made.number}")


class OneAccessRule(View):
    @says("Query a rule of access", shapes.AccessRule)
    def get(self, request: Request, number: str) -> Response:
        self.look("access query")
        return one(shapes.AccessRule, accounts.access_rule(int(number)))

    @says("Delete a rule of access", shapes.Done, writes=True, once=True)
    @idempotent
    def delete(self, request: Request, number: str) -> Response:
        return done(access_service.delete(self.actor, int(number)))


class Operators(View):
    @says("List operators; for superusers", shapes.Operator, paged=True, parameters=[SEARCH])
    def get(self, request: Request) -> Response:
        return page(shapes.Operator, operators.page_for(self.actor, self.after(), self.limit(), search=request.query_params.get("search", "")))

    @says("Create an operator", shapes.Done, status=201, body=bodies.CreateOperatorBody)
    def post(self, request: Request) -> Response:
        given = self.body(bodies.CreateOperatorBody)
        superuser = given.get("superuser", False)
        operator_service.create(self.actor, given["name"], given["password"], given.get("rights", ()), superuser=superuser, role=given.get("role", VIEWER))
        return done(status=201, location=f"/api/v1/operators/{quote(given['name'])}")


class OneOperator(View):
    @says("Query an operator; for superusers", shapes.Operator)
    def get(self, request: Request, name: str) -> Response:
        return one(shapes.Operator, operators.by_name_for(self.actor, name))

    @says("Change an operator: password, disabled, rights", shapes.Done, body=bodies.OperatorBody)
    def patch(self, request: Request, name: str) -> Response:
        given: dict[str, Any] = self.body(bodies.OperatorBody)
        operator_service.update(self.actor, name, **given)
        return done()


class Grants(View):
    @says("List what roles and operators may do with destinations; for administrators", shapes.Grant, paged=True, parameters=[SEARCH_GRANTS])
    def get(self, request: Request) -> Response:
        return page(shapes.Grant, operators.grants_for(self.actor, self.number_after(), self.limit(), search=request.query_params.get("search", "")))

    @says("Grant verbs with destinations of a pattern to a role or an operator", shapes.Done, status=201, body=bodies.CreateGrantBody)
    def post(self, request: Request) -> Response:
        given = self.body(bodies.CreateGrantBody)
        subject = {"role": given.get("role", ""), "operator": given.get("operator", "")}
        made = grant_service.create(self.actor, given["pattern"], given["verbs"], **subject)
        return done(status=201, location=f"/api/v1/grants/{made}")


class OneGrant(View):
    @says("Query a grant; for administrators", shapes.Grant)
    def get(self, request: Request, number: str) -> Response:
        return one(shapes.Grant, operators.grant_for(self.actor, int(number)))

    @says("Change the verbs of a grant", shapes.Done, body=bodies.GrantBody)
    def patch(self, request: Request, number: str) -> Response:
        grant_service.update(self.actor, int(number), self.body(bodies.GrantBody)["verbs"])
        return done()

    @says("Take a grant back", shapes.Done, writes=True, once=True)
    @idempotent
    def delete(self, request: Request, number: str) -> Response:
        grant_service.delete(self.actor, int(number))
        return done()


class Tokens(View):
    @says("List one's own tokens", shapes.Token, paged=True, parameters=[EVERYBODY])
    def get(self, request: Request) -> Response:
        if self.flag("everybody"):
            return page(shapes.Token, tokens.all_for(self.actor, self.number_after(), self.limit()))
        return page(shapes.Token, tokens.of(request.user, self.number_after(), self.limit()))

    @says("Make a token of one's own", shapes.MadeToken, status=201, body=bodies.CreateTokenBody)
    def post(self, request: Request) -> Response:
        given = self.body(bodies.CreateTokenBody)
        limits = {"verbs": given.get("verbs", ()), "patterns": given.get("patterns", ())}
        made = token_service.create(self.actor, given["name"], given["scope"], given["days"], **limits, by_token=request.auth is not None)
        return Response(shapes.MadeToken(made).data, 201, headers={"Location": "/api/v1/tokens"})


class OneToken(View):
    @says("Revoke a token", shapes.Done, writes=True, once=True)
    @idempotent
    def delete(self, request: Request, number: str) -> Response:
        token_service.revoke(self.actor, int(number))
        return done()
