"""The contract's tables of its fronts are read row by row."""

from __future__ import annotations

import pytest
from dtq_conformance import front_tables


@pytest.mark.parametrize(("method", "path", "route"), [
    ("GET", "/api/v1/tasks?limit=2", "/api/v1/tasks"), ("GET", "/health", "/health"),
    ("POST", "/api/v1/tasks/batch", "/api/v1/tasks/batch"),
    ("POST", "/api/v1/dlq/purge", "/api/v1/dlq/purge"),
    ("POST", "/api/v1/dlq/x/requeue", "/api/v1/dlq/{task_id}/requeue"),
    ("GET", "/api/v1/dlq/x", "/api/v1/dlq/{task_id}")])
def test_a_request_is_of_the_route_that_fits_best(method: str, path: str, route: str) -> None:
    found = front_tables.route_of(method, path)
    assert found is not None
    assert found.path == route


def test_what_fits_no_route_is_of_none() -> None:
    assert front_tables.route_of("DELETE", "/api/v1/tasks") is None
    assert front_tables.route_of("GET", "/api/v1/tasks/a/b") is None


def test_the_tables_have_their_rows() -> None:
    assert front_tables.codes()["QUEUE_FULL"] == 429
    assert "--idempotency-key" in front_tables.commands()[("submit",)]
    assert ("dlq", "list") in front_tables.commands()
    assert "TASK_EXPIRED" in front_tables.events()
    assert front_tables.metrics()["dtq_tasks_completed_total"].labels == (
        "queue", "task_type", "status")
    assert front_tables.metrics()["dtq_dlq_depth"].labels == ()
    assert front_tables.settings()["DTQ_API_PORT"].default == "8000"
