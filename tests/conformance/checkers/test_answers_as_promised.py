"""answers_as_promised: each answer of the API is held against the contract's tables and clauses."""

from __future__ import annotations

from dtq_conformance.checkers.answers_as_promised import check
from dtq_conformance.front_tables import routes

from tests.conformance.exchanges import expects, http, refusal
from tests.conformance.histories import T, accuses, fault, says


def test_what_a_case_expected_is_compared_with_the_answer() -> None:
    asked = [expects("API-06", 200, has=["task_id"])]
    good = http("GET", "/api/v1/tasks/x", 200, {"task_id": T}, expects=asked)
    assert says(check, good)["API-06"] == "holds 1"
    for status, body in ((202, {"task_id": T}), (200, {}), (200, "queued")):
        bad = http("GET", "/api/v1/tasks/x", status, body, expects=asked)
        assert says(check, bad)["API-06"] == "violated 1"
    assert accuses(check, "API-06", http("GET", "/api/v1/tasks/x", 202, {}, expects=asked)) == (
        "A request (GET /api/v1/tasks/x), asked of api-1 at 100 ms: the status was 202, not 200; "
        "task_id was missing.")


def test_a_submission_is_accepted_or_a_duplicate() -> None:
    new, known = {"task_id": T, "status": "queued"}, {"task_id": T, "status": "succeeded",
                                                      "duplicate": True}
    for status, body, verdict in ((202, new, "holds 1"), (200, known, "holds 1"),
                                  (200, new, "violated 1"), (202, known, "violated 1"),
                                  (202, {"task_id": T}, "violated 1"), (202, "ok", "violated 1")):
        assert says(check, http("POST", "/api/v1/tasks", status, body))["API-02"] == verdict


def test_a_route_of_the_table_is_there() -> None:
    assert says(check, http("GET", "/health", 200))["API-01"] == "holds 1"
    lost = http("GET", f"/api/v1/tasks/{T}", 404, refusal("NOT_FOUND"))
    assert says(check, lost)["API-01"] == "violated 1"
    unknown_task = http("GET", f"/api/v1/tasks/{T}", 404, refusal("TASK_NOT_FOUND"))
    assert says(check, unknown_task)["API-01"] == "holds 1"
    assert "API-01" not in says(check, http("GET", "/elsewhere", 404, refusal("NOT_FOUND")))


def test_a_code_has_its_status() -> None:
    assert says(check, http("GET", "/x", 404, refusal("NOT_FOUND")))["API-03"] == "holds 1"
    for status, code in ((400, "NOT_FOUND"), (404, "LOST")):
        assert says(check, http("GET", "/x", status, refusal(code)))["API-03"] == "violated 1"


def test_a_refusal_has_the_one_form() -> None:
    assert says(check, http("GET", "/x", 404, refusal("NOT_FOUND")))["API-04"] == "holds 1"
    for body in ({"detail": "Not Found"}, "Not Found", {"code": "NOT_FOUND", "message": "No."}):
        assert says(check, http("GET", "/x", 404, body))["API-04"] == "violated 1"


def test_a_request_keeps_its_id_or_is_given_one() -> None:
    assert says(check, http("GET", "/health", 200))["API-14"] == "holds 1"
    sent = {"X-Request-ID": "mine"}
    echoed = http("GET", "/health", 200, sent=sent, x_request_id="mine")
    assert says(check, echoed)["API-14"] == "holds 1"
    unfit = {"X-Request-ID": "two words"}
    assert says(check, http("GET", "/health", 200, sent=unfit))["API-14"] == "holds 1"
    for bad in (http("GET", "/health", 200, sent=sent),
                http("GET", "/health", 200, x_request_id=""),
                http("GET", "/x", 404, {**refusal("NOT_FOUND"), "request_id": "other"})):
        assert says(check, bad)["API-14"] == "violated 1"


def test_a_failure_needs_a_cause_and_a_traceback_has_none() -> None:
    failed = http("GET", "/api/v1/tasks", 500, refusal("INTERNAL_ERROR"))
    assert says(check, failed)["API-15"] == "violated 1"
    away = http("GET", "/api/v1/tasks", 503, refusal("BROKER_UNREACHABLE"))
    assert says(check, away)["API-15"] == "violated 1"
    assert says(check, away, fault("broker_away", 50, 200))["API-15"] == "holds 1"
    not_ready = http("GET", "/ready", 503, refusal("NOT_READY"))
    assert says(check, not_ready)["API-15"] == "holds 1"
    shown = http("GET", "/x", 404, "Traceback (most recent call last):\n  File")
    assert says(check, shown)["API-15"] == "violated 1"


def test_a_full_queue_says_when_to_try_again() -> None:
    full = refusal("QUEUE_FULL")
    assert says(check, http("POST", "/api/v1/tasks", 429, full,
                            retry_after="1"))["BACK-04"] == "holds 1"
    for headers in ({}, {"retry_after": "soon"}):
        answer = http("POST", "/api/v1/tasks", 429, full, **headers)
        assert says(check, answer)["BACK-04"] == "violated 1"


def test_the_document_describes_each_route() -> None:
    told = {"responses": {str(status): {"example": 1} for status in (200, 202)}}
    paths: dict[str, dict[str, object]] = {}
    for route in routes():
        paths.setdefault(route.path, {})[route.method.lower()] = told
    whole = http("GET", "/openapi.json", 200, {"paths": paths})
    assert says(check, whole)["API-16"] == f"holds {len(routes())}"
    for lacking in ({}, {"responses": {"200": {}, "202": {}}}, {"responses": {"400": {}}}):
        other = {**paths, "/api/v1/dlq": {"get": lacking}}
        assert says(check, http("GET", "/openapi.json", 200, {"paths": other}))["API-16"] == (
            f"violated {len(routes())}")
