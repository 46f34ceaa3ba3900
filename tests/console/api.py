"""The REST API as its clients call it."""

import json
from typing import Any

from django.contrib.auth.models import Permission, User
from django.test import Client

from console.services import tokens
from console.services.audit import Actor

ROOT = "/api/v1/"


def call(client: Client, method: str, path: str, body: Any = None, **headers: str) -> Any:
    """The response; its `document` is the parsed body. Header names with _ for -."""
    data = {} if body is None else {"data": json.dumps(body), "content_type": "application/json"}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    response = client.generic(method, ROOT + path, headers=named, **data)
    response.document = json.loads(response.content) if response.content else None
    return response


def person(name: str, *rights: str) -> User:
    user = User.objects.create_user(name, password="long enough 17")
    user.user_permissions.set(Permission.objects.filter(codename__in=rights))
    return user


def token(user: User, scope: str = "write", name: str = "ci") -> str:
    return tokens.create(Actor(user), name, scope).token


def bearer(text: str) -> Client:
    return Client(headers={"Authorization": f"Bearer {text}"})


def problem(response: Any, status: int, code: str) -> str:
    """The detail of what must be this problem."""
    assert (response.status_code, response.document.get("code")) == (status, code), response.document
    assert response["Content-Type"] == "application/problem+json"
    assert {"type", "title", "status", "detail"} <= set(response.document)
    return response.document["detail"]
