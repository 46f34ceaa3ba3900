"""Whatever is sent, as the OpenAPI document allows or as it does not, the answer is one of the document: no 5xx, no other status, type or form."""

from typing import Any

import hypothesis
import pytest
import schemathesis
from django.contrib.auth.models import User
from django.core.wsgi import get_wsgi_application
from django.test import override_settings
from hypothesis import strategies
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import content_type_conformance, response_headers_conformance, response_schema_conformance, status_code_conformance

from tests.console.api import token
from tests.console.conftest import OPERATOR
from tests.console.engine_node import EngineNode

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_headers_conformance, response_schema_conformance]


@pytest.mark.parametrize("examples", [3, pytest.param(100, marks=pytest.mark.slow)])
def test_every_answer_is_one_of_the_document(examples, database):
    with EngineNode(database, {"queue/orders": 3}), override_settings(CONTROL_WAIT_SECONDS=2.0):
        shown = {"Authorization": f"Bearer {token(User.objects.get(username=OPERATOR))}"}
        document = schemathesis.openapi.from_wsgi("/api/v1/schema/", get_wsgi_application(), headers=shown)
        for found in document.get_all_operations():
            _play(found.ok(), shown, examples)


def _play(operation: Any, headers: dict[str, str], examples: int) -> None:
    """Half of the calls as the document allows, the others not. Seeded: what is found once is found again."""
    cases = strategies.one_of(*(operation.as_strategy(generation_mode=mode) for mode in GenerationMode))

    @hypothesis.seed(1)
    @hypothesis.settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck))
    @hypothesis.given(cases)
    def played(case: Any) -> None:
        case.call_and_validate(headers=headers, checks=CHECKS)

    played()
