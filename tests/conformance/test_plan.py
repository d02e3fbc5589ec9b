"""A payload says how the handler of each attempt is bound to end."""

from __future__ import annotations

from typing import Any

import pytest
from dtq_conformance import plan


def request(*steps: dict[str, Any], task_type: str = "probe_task") -> dict[str, Any]:
    return {"task_type": task_type, "payload": {"steps": list(steps), "label": "x"}}


@pytest.mark.parametrize(("step", "held_up"), [
    ({"block": 5}, True), ({"busy": 5}, True), ({"sleep": 5}, False),
    ({"block": 5, "until_attempt": 1}, False)])
def test_what_blocks_the_loop_or_holds_the_interpreter_holds_up_its_worker(
        step: dict[str, Any], held_up: bool) -> None:
    assert plan.holds_up_its_worker(request({"sleep": 1}, step), 2) is held_up


@pytest.mark.parametrize(("steps", "endings"), [
    ([], ["ok", "ok"]),
    ([{"fail": "retryable"}], ["retryable", "retryable"]),
    ([{"fail": "retryable", "until_attempt": 1}], ["retryable", "ok"]),
    ([{"fail": "permanent"}], ["permanent", "permanent"]),
    ([{"fail": "unknown", "until_attempt": 1}, {"fail": "retryable"}], ["permanent", "retryable"]),
    ([{"kill": True, "until_attempt": 1}], ["dies", "ok"]),
    ([{"exit": 0}, {"fail": "retryable"}], ["dies", "dies"]),
    ([{"return": None}, {"fail": "permanent"}], ["ok", "ok"]),
    ([{"return_unserialisable": True}], ["permanent", "permanent"])])
def test_the_first_step_that_applies_to_the_attempt_ends_it(
        steps: list[dict[str, Any]], endings: list[str]) -> None:
    assert [plan.ending(request(*steps), attempt) for attempt in (1, 2)] == endings


def test_nothing_is_expected_of_another_task() -> None:
    other = request({"fail": "permanent"}, task_type="echo_task")
    assert (plan.ending(other, 1), plan.duration_ms(other, 1)) == (None, None)
    assert not plan.tells_its_holder(other)


def test_a_handler_works_until_the_step_that_ends_it() -> None:
    steps = [{"sleep": 100}, {"busy": 20}, {"fail": "retryable", "until_attempt": 1}, {"block": 3}]
    assert [plan.duration_ms(request(*steps), attempt) for attempt in (1, 2)] == [120, 123]


def test_the_result_names_the_holder_unless_a_step_returns_something_else() -> None:
    assert plan.tells_its_holder(request({"sleep": 1}))
    assert not plan.tells_its_holder(request({"return": 7}))
    assert (plan.returns(request({"return": 7})), plan.returns(request())) == ([7], [])


@pytest.mark.parametrize(("steps", "says"), [
    ([{"fail": "permanent"}], True), ([{"fail": "unknown"}], False),
    ([{"return_unserialisable": True}], False), ([{"fail": "retryable"}], False),
    ([{"fail": "retryable", "until_attempt": 1}, {"fail": "permanent"}], True)])
def test_a_handler_says_itself_what_is_permanent(steps: list[dict[str, Any]], says: bool) -> None:
    assert plan.says_permanent(request(*steps), 2) is says
