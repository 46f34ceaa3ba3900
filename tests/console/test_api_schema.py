"""The OpenAPI document is valid and complete. That it is true: test_api_played.py."""

import re
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver
from drf_spectacular.validation import validate_schema

from console.api.state import Nothing, document
from tests.console.api import call


def _routes(resolver: Any, prefix: str = "") -> list[tuple[str, Any]]:
    found = []
    for each in resolver.url_patterns:
        whole = prefix + str(each.pattern).lstrip("^")
        found += _routes(each, whole) if isinstance(each, URLResolver) else [(whole, each)]
    return found


def test_the_document_is_valid_and_has_every_route_and_method():
    validate_schema(document())
    told = {re.sub(r"\{\w+\}", "*", path): set(methods) - {"parameters"} for path, methods in document()["paths"].items()}
    routed = {}
    for route, pattern in _routes(get_resolver()):
        if not route.startswith("api/v1/") or not isinstance(pattern, URLPattern):
            continue
        view = pattern.callback.view_class
        if view is not Nothing:
            path = re.sub(r"<path:\w+>|\(\?P<\w+>[^()]*\)", "*", route).rstrip("$")
            routed["/" + path] = {name for name in view.http_method_names if name not in ("head", "options") and hasattr(view, name)}
    assert told == routed


def test_the_document_is_served_as_it_is(operator):
    assert call(operator, "GET", "schema/").document == document()


def test_every_answer_of_a_call_is_in_the_document_with_its_media_type():
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            problems = {status for status, answer in operation["responses"].items() if "application/problem+json" in answer.get("content", {})}
            assert {"400", "401", "403", "404", "429", "503"} <= problems, (path, method)
            assert operation["summary"]


def test_each_call_has_an_id_of_its_own():
    ids = [operation["operationId"] for methods in document()["paths"].values() for name, operation in methods.items() if name != "parameters"]
    assert [each for each in ids if each[-1].isdigit()] == [], "two had the same, and one was numbered"
