"""The REST API as its clients call it. Every answer is compared with what the OpenAPI document says of the call."""

import json
import re
from functools import cache
from typing import Any

import jsonschema
from django.contrib.auth.models import Permission, User
from django.test import Client

from console.api.state import document
from console.models import Grant, OperatorRole
from console.services import tokens
from console.services.audit import Actor

ROOT = "/api/v1/"


def call(client: Client, method: str, path: str, body: Any = None, **headers: str) -> Any:
    """The response; its `document` is the parsed body. A text is sent as YAML. Header names with _ for -."""
    kind, sent = ("application/yaml", body) if isinstance(body, str) else ("application/json", json.dumps(body))
    data = {} if body is None else {"data": sent, "content_type": kind}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    response = client.generic(method, ROOT + path, headers=named, **data)
    streams = response.streaming
    response.document = None if streams or not response.content else json.loads(response.content)
    _check(method, path, response)
    return response


def _check(method: str, path: str, response: Any) -> None:
    """The document has this answer, if it has the call."""
    told = [found for matches, operations in _paths() if matches.fullmatch(ROOT + path.partition("?")[0]) and (found := operations.get(method.lower()))]
    if not told:
        assert response.status_code in (401, 404, 405), (method, path, response.status_code)
        return
    content = told[0]["responses"][str(response.status_code)]["content"]
    media_type = response["Content-Type"].partition(";")[0]
    if response.streaming:
        assert media_type in content
        return
    schema = content[media_type]["schema"]
    jsonschema.validate(response.document, {**schema, "components": _components()})


FORMS = {"{number}": "-?[0-9]+", "{verb}": "(commit|rollback|forget)", "{name}": ".+", "{key}": "[0-9-]+", "{delayed}": "[0-9]+"}


@cache
def _paths() -> list[tuple[re.Pattern[str], dict[str, Any]]]:
    """A number is no name: it may not hold a slash."""
    found = []
    for path, operations in document()["paths"].items():
        pattern = path
        for name, form in FORMS.items():
            pattern = pattern.replace(name, form)
        found.append((re.compile(pattern), operations))
    return found


@cache
def _components() -> dict[str, Any]:
    return _plain(document()["components"])


def _plain(part: Any) -> Any:
    """A schema of OpenAPI 3.0 as one of JSON Schema, which has no `nullable`."""
    if isinstance(part, list):
        return [_plain(each) for each in part]
    if not isinstance(part, dict):
        return part
    plain = {name: _plain(value) for name, value in part.items() if name != "nullable"}
    return {"anyOf": [plain, {"type": "null"}]} if part.get("nullable") is True else plain


def person(name: str, *rights: str, role: str = "viewer") -> User:
    user = User.objects.create_user(name, password="long enough 17")
    user.user_permissions.set(Permission.objects.filter(codename__in=rights))
    if role != "viewer":
        OperatorRole.objects.create(user=user, role=role)
    return user


def granted(user: User, pattern: str, *verbs: str) -> None:
    Grant.objects.create(user=user, pattern=pattern, verbs=list(verbs))


def token(user: User, scope: str = "write", name: str = "ci", **limits: list[str]) -> str:
    return tokens.create(Actor(user), name, scope, **limits).token


def logged_in(user: User) -> Client:
    """In a browser's session."""
    client = Client()
    client.force_login(user)
    return client


def bearer(text: str) -> Client:
    return Client(headers={"Authorization": f"Bearer {text}"})


def problem(response: Any, status: int, code: str) -> str:
    """The detail of what must be this problem."""
    assert (response.status_code, response.document.get("code")) == (status, code), response.document
    assert response["Content-Type"] == "application/problem+json"
    assert {"type", "title", "status", "detail"} <= set(response.document)
    return response.document["detail"]
