"""fields_as_promised: limits and defaults of a submission, and ids that nobody can guess."""

from __future__ import annotations

import msgspec
from dtq_conformance.checkers.fields_as_promised import check
from dtq_conformance.exchange import Exchange

from tests.conformance.exchanges import expects, http, refusal
from tests.conformance.histories import T, accuses, look, says

RANDOM = ("0f3b1c5d9e8a4b7c8d6e5f4a3b2c1d0e", "9a8b7c6d5e4f4a3bb2c1d0e9f8a7b6c5")


def accepted(drawn: str, *, at: int = 100, **fields: str) -> Exchange:
    answer = http("POST", "/api/v1/tasks", 202, {"task_id": drawn, "status": "queued"}, at=at)
    body = {"task_type": "probe_task", **fields}
    return msgspec.structs.replace(answer, sent={"headers": {}, "body": body})


def test_an_id_that_nobody_gave_is_random() -> None:
    first, second = (accepted(each, at=at) for at, each in enumerate(RANDOM))
    assert says(check, first, second) == {"TASK-05": "holds 2"}
    assert says(check, accepted(T, task_id=T)) == {}
    for bad in ("0" * 31 + "1", T, RANDOM[0].replace("4b7c", "1b7c"), RANDOM[0][:-1]):
        assert says(check, accepted(bad))["TASK-05"] == "violated 1"


def test_ids_do_not_follow_each_other() -> None:
    follower = RANDOM[0][:-1] + "f"
    assert says(check, accepted(RANDOM[0], at=1), accepted(follower, at=2)) == {
        "TASK-05": "violated 2"}


def test_what_a_case_expected_is_compared_with_the_answer() -> None:
    asked = [expects("TASK-07", 413, code="PAYLOAD_TOO_LARGE")]
    refused = http("POST", "/api/v1/tasks", 413, refusal("PAYLOAD_TOO_LARGE"), expects=asked)
    assert says(check, refused)["TASK-07"] == "holds 1"
    taken = msgspec.structs.replace(accepted(T, task_id=T), expects=asked)
    assert says(check, taken)["TASK-07"] == "violated 1"


def test_a_status_is_one_of_the_nine() -> None:
    assert says(check, look(), look(status="pending", by=None)) == {"STATE-04": "holds 2"}
    assert says(check, look(status="active", by=None)) == {"STATE-04": "violated 1"}
    assert accuses(check, "STATE-04", look(status="active", by=None)).startswith(
        f"Task {T} was shown as 'active' at 60 000 ms, which is none of pending,")
