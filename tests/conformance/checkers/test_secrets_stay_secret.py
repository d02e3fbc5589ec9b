"""secrets_stay_secret: keys, traces, logs, and signatures that nobody may believe."""

from __future__ import annotations

from typing import Any

from dtq_conformance.checkers.secrets_stay_secret import AUDIT, FORGED, check

from tests.conformance.exchanges import expects, http, inspected, log, refusal
from tests.conformance.histories import T, dead, look, ran, says, submit

CANCEL = f"/api/v1/tasks/{T}/cancel"


def trace(**fields: Any) -> dict[str, Any]:
    return {"actor": "api:key", "action": "cancel", "task_id": T, "ts": "1",
            "request_id": "r-1"} | fields


def audit(*entries: dict[str, Any]) -> Any:
    return inspected("audit", [AUDIT], list(entries), at=500)


def test_an_answer_to_a_wrong_key_is_a_refusal() -> None:
    asked = [expects("SEC-02", 403, code="FORBIDDEN")]
    refused = http("POST", CANCEL, 403, refusal("FORBIDDEN"), expects=asked)
    assert says(check, refused)["SEC-02"] == "holds 1"
    assert says(check, http("POST", CANCEL, 202, {}, expects=asked))["SEC-02"] == "violated 1"


def test_what_was_done_left_one_trace_and_what_was_not_left_none() -> None:
    done, denied = http("POST", CANCEL, 202, {}), http("POST", CANCEL, 401, refusal("X"))
    assert says(check, done, audit(trace()))["SEC-05"] == "holds 1"
    assert says(check, denied, audit(trace(request_id="r-2")))["SEC-05"] == "holds 1"
    for entries in ([], [trace(), trace()], [trace(action="pause")], [trace(actor="")],
                    [{"request_id": "r-1", "action": "cancel"}]):
        assert says(check, done, audit(*entries))["SEC-05"] == "violated 1"
    assert says(check, denied, audit(trace()))["SEC-05"] == "violated 1"


def test_a_purge_may_leave_a_trace_for_each_letter_and_a_look_leaves_none() -> None:
    purge = http("POST", "/api/v1/dlq/purge", 200, {"purged": 2})
    entries = [trace(action="purge_dlq"), trace(action="purge_dlq")]
    assert says(check, purge, audit(*entries))["SEC-05"] == "holds 1"
    assert "SEC-05" not in says(check, http("GET", "/api/v1/tasks", 200, {}), audit())


def test_a_log_that_shows_what_it_must_not_is_a_violation() -> None:
    assert says(check, log("payload"), log("secret")) == {"SEC-06": "holds 2"}
    assert says(check, log("secret", "key=x"))["SEC-06"] == "violated 1"
    assert says(check, log("forged line")) == {"SEC-07": "holds 1"}
    assert says(check, log("forged line", "x")) == {"SEC-07": "violated 1"}


def test_a_task_with_a_wrong_signature_is_settled_and_never_run() -> None:
    forged = [submit(), inspected("harness", [FORGED, T], {})]
    assert says(check, forged, dead(error_class="BadSignature"))["SEC-08"] == "holds 1"
    assert says(check, forged, dead())["SEC-08"] == "violated 1"
    assert says(check, forged)["SEC-08"] == "violated 1"
    assert says(check, forged, ran(20, 30), look())["SEC-08"] == "violated 1"
