"""What the API says of itself is what it does: requests are drawn from its own document."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
from dtq_reference import api, openapi
from dtq_reference.errors import HTTP_STATUS
from dtq_reference.settings import Settings
from hypothesis import HealthCheck, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.openapi import from_dict
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.reference.engine import Engine
from tests.reference.http import served

CHECKS: list[Any] = [not_a_server_error, status_code_conformance, content_type_conformance,
                     response_headers_conformance, response_schema_conformance,
                     negative_data_rejection]

DOCUMENT: dict[str, Any] = json.loads(json.dumps(api.create_app(Settings()).openapi()))
OPERATIONS = [(method, path, operation) for path, methods in DOCUMENT["paths"].items()
              for method, operation in methods.items()]


@pytest.fixture
def address(engine: Engine) -> Iterator[str]:
    with served(engine.settings) as url:
        yield url


def draw(engine: Engine, address: str, *, paths: str, examples: int) -> None:
    """Ask operations with drawn requests, fit and unfit ones, and compare the answers."""
    engine.submit(task_id=openapi.EXAMPLES["Task"]["task_id"])
    for found in from_dict(DOCUMENT).include(path_regex=paths).get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()
        ask(operation, GenerationMode.POSITIVE, address, examples)
        if operation.query or operation.body:  # any path is fit to be asked for
            ask(operation, GenerationMode.NEGATIVE, address, examples)


def ask(operation: APIOperation[Any, Any, Any, Any], mode: GenerationMode, address: str,
        examples: int) -> None:
    checks = list(CHECKS)
    if operation.path.endswith("/batch"):  # what is unfit in it is refused item by item
        checks.remove(negative_data_rejection)

    @settings(max_examples=examples, deadline=None, database=None,
              suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy(generation_mode=mode))
    def answers_as_documented(case: Case[Any]) -> None:
        case.validate_response(case.call(base_url=address, timeout=20), checks=checks)

    answers_as_documented()


@pytest.mark.slow
def test_a_few_drawn_requests_are_answered_as_documented(engine: Engine, address: str) -> None:
    draw(engine, address, paths="/tasks$|/dlq", examples=3)


@pytest.mark.slow
def test_many_drawn_requests_are_answered_as_documented(engine: Engine, address: str) -> None:
    draw(engine, address, paths="", examples=40)


# The document -----------------------------------------------------------------------------------

def test_every_refusal_is_documented_with_the_error() -> None:
    documented = set()
    for method, path, operation in OPERATIONS:
        for status, response in operation["responses"].items():
            if status >= "400":
                schema = response["content"]["application/json"]["schema"]
                assert schema == {"$ref": "#/components/schemas/Error"}, (method, path, status)
                for code in response["description"].split(" or "):
                    assert openapi.STATUS[code] == int(status)
                    documented.add(code)
        assert "422" not in operation["responses"], (method, path)
        assert operation["description"].endswith((".", "?")), (method, path)
    assert HTTP_STATUS.keys() <= documented


def test_every_body_and_answer_has_an_example_that_fits() -> None:
    fitting = 0
    for *_, operation in OPERATIONS:
        for holder in (*operation["responses"].values(), operation.get("requestBody", {})):
            content = holder.get("content", {}).get("application/json")
            if content:
                schema = {**content["schema"], "components": DOCUMENT["components"]}
                jsonschema_rs.validate(schema, content["example"])
                fitting += 1
    assert fitting > 3 * len(OPERATIONS)


def test_every_name_that_is_referred_to_exists() -> None:
    text = json.dumps(DOCUMENT)
    named = set(re.findall(r'"#/components/schemas/(\w+)"', text))
    assert named <= DOCUMENT["components"]["schemas"].keys()
    assert r"\\Z" not in text


def test_the_key_is_asked_for_where_there_is_one() -> None:
    with_key = api.create_app(Settings(api_key="secret")).openapi()
    guarded = {path for path, methods in with_key["paths"].items()
               for operation in methods.values() if "security" in operation}
    assert guarded == {"/api/v1/tasks/{task_id}/cancel", "/api/v1/dlq/{task_id}/requeue",
                       "/api/v1/dlq/{task_id}/discard", "/api/v1/dlq/purge",
                       "/api/v1/queue/{queue}/pause", "/api/v1/queue/{queue}/resume"}
    assert "secret" not in json.dumps(with_key)
    assert not [path for _, path, operation in OPERATIONS if "security" in operation]
