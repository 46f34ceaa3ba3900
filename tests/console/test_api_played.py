"""Whatever is sent, as the OpenAPI document allows or as it does not, the answer is one of the document: no 5xx, no other status, type or form."""

from typing import Any

import hypothesis
import pytest
import schemathesis
from django.contrib.auth.models import User
from django.core.wsgi import get_wsgi_application
from django.test import override_settings
from django_celery_beat.models import PeriodicTask
from hypothesis import strategies
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import content_type_conformance, response_headers_conformance, response_schema_conformance, status_code_conformance

from console.services import schedule
from tests.console import facts
from tests.console.api import person, token
from tests.console.conftest import OPERATOR
from tests.console.engine_node import EngineNode

schemathesis.serializer.alias("application/x-ndjson", "text/plain")
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_headers_conformance, response_schema_conformance]


NAMES = {
    "policies": "queue/a", "aliases": "queue/a", "objects": "a", "links": "a", "accounts": "a", "operators": "vera", "schedule": "expire", "node": "amqp",
    "nodes": "node-2", "alerts": "a",
}  # fmt: skip
"""What is there at first, beside destination, request and branch 1."""


@pytest.fixture
def things(database):
    facts.one_of_each(database)
    person("vera")
    yield database
    PeriodicTask.objects.filter(task__startswith="console.").delete()  # it may have changed how often they run
    schedule.establish()


@pytest.mark.parametrize("examples", [3, pytest.param(60, marks=pytest.mark.slow)])
def test_every_answer_is_one_of_the_document(examples, things, database):
    with EngineNode(database, {"queue/orders": 3}), override_settings(CONTROL_WAIT_SECONDS=2.0):
        shown = {"Authorization": f"Bearer {token(User.objects.get(username=OPERATOR))}"}
        document = schemathesis.openapi.from_wsgi("/api/v1/schema/", get_wsgi_application(), headers=shown)
        broken = []
        for found in document.get_all_operations():
            try:
                _play(found.ok(), shown, examples)
            except BaseExceptionGroup as failures:
                broken.append(str(failures))
    assert not broken, "\n".join(broken)


def _play(operation: Any, headers: dict[str, str], examples: int) -> None:
    """Half of the calls as the document allows, the others not. Seeded: what is found once is found again."""
    cases = strategies.one_of(*(operation.as_strategy(generation_mode=mode) for mode in GenerationMode))

    @hypothesis.seed(1)
    @hypothesis.settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck))
    @hypothesis.given(cases, strategies.booleans())
    def played(case: Any, there: bool) -> None:
        first = case.path.removeprefix("/api/v1/").partition("/")[0]
        if there and "{name}" in case.path:
            case.path_parameters["name"] = NAMES[first]
        elif first == "tokens" and "{number}" in case.path:
            case.path_parameters["number"] = "999"  # or it would revoke the token that it shows
        elif there and "{number}" in case.path:
            case.path_parameters["number"] = "1"
        case.call_and_validate(headers=headers, checks=CHECKS)

    played()
