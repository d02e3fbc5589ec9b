"""metrics_count_right: counters of all processes add up, gauges and labels are as the contract
says."""

from __future__ import annotations

from typing import Any

from dtq_conformance import front_tables
from dtq_conformance.checkers.metrics_count_right import check
from dtq_conformance.exchange import Exchange

from tests.conformance.exchanges import http, inspected
from tests.conformance.histories import LATE, T, born, killed, look, ran, says, submit

WELL = [born(1), submit(), http("POST", "/api/v1/tasks", 202, {"task_id": T}, at=10),
        ran(20, 30), look(at=40)]
TASK = 'queue="default",task_type="probe_task"'
SUBMITTED = f"dtq_tasks_submitted_total{{{TASK}}} 1.0\n"
ACTIVE = "dtq_workers_active 1.0\n"
COUNTED = f"""dtq_tasks_started_total{{{TASK}}} 1.0
dtq_task_attempts_total{{{TASK},result="success"}} 1.0
dtq_worker_tasks_total{{worker_id="worker-1",task_type="probe_task",result="success"}} 1.0
dtq_tasks_succeeded_total{{{TASK}}} 1.0
dtq_tasks_completed_total{{{TASK},status="succeeded"}} 1.0
dtq_task_execution_seconds_count{{{TASK}}} 1.0
dtq_task_wait_seconds_count{{{TASK}}} 1.0
"""
TYPES = "".join(f"# TYPE {each.name} {each.type}\n" for each in front_tables.metrics().values())


def api(text: str, *, at: int = 1000) -> Exchange:
    return http("GET", "/metrics", 200, text, at=at)


def worker(text: str) -> Exchange:
    return inspected("worker-1", ["GET", "/metrics"], text, at=1010)


def judged(*parts: Any, api_text: str = TYPES + SUBMITTED + ACTIVE,
           worker_text: str = COUNTED) -> dict[str, str]:
    return says(check, WELL, parts, api(api_text), worker(worker_text))


def test_counters_that_add_up_are_well() -> None:
    verdict = judged()
    assert {name: each.partition(" ")[0] for name, each in verdict.items()} == {
        "MET-01": "holds", "MET-02": "holds", "MET-03": "holds", "MET-04": "holds"}


def test_a_count_too_many_or_too_few_is_a_violation() -> None:
    for text in (COUNTED.replace("started_total{", "other_total{"), COUNTED + COUNTED,
                 COUNTED.replace('status="succeeded"', 'status="failed"')):
        assert judged(worker_text=text)["MET-03"].startswith("violated")
    assert judged(api_text=TYPES + ACTIVE)["MET-03"].startswith("violated")


def test_sums_are_not_judged_where_a_process_died() -> None:
    assert "MET-03" not in judged(born(2), killed(2, 50))


def test_a_metric_that_is_missing_or_of_another_type_is_a_violation() -> None:
    for text in (TYPES.replace("# TYPE dtq_dlq_depth gauge\n", ""),
                 TYPES.replace("dtq_dlq_depth gauge", "dtq_dlq_depth counter"),
                 TYPES + 'dtq_dlq_depth{queue="default"} 0.0\n'):
        assert judged(api_text=text + SUBMITTED + ACTIVE)["MET-01"].startswith("violated")


def test_labels_hold_nothing_that_grows() -> None:
    for labels in (f'queue="{T}"', 'request_id="x"', 'queue="the-secret-of-a-payload"'):
        bad = TYPES + SUBMITTED + ACTIVE + f"dtq_queue_depth{{{labels}}} 0.0\n"
        asked = submit(label="the-secret-of-a-payload")
        assert says(check, asked, api(bad))["MET-02"].startswith("violated")
    foreign = api(f'process_open_fds{{id="{T}"}} 3.0\n')
    assert "MET-02" not in says(check, foreign)


def test_gauges_tell_what_is_there() -> None:
    assert judged(api_text=TYPES + SUBMITTED)["MET-04"].startswith("violated")
    waiting = [submit(at=10), look(at=LATE)]
    full = api('dtq_queue_depth{queue="default"} 1.0\ndtq_retry_scheduled 0.0\n', at=20)
    assert says(check, waiting, full)["MET-04"] == "holds 2"
    assert says(check, waiting, api("dtq_retry_scheduled 0.0\n", at=20))["MET-04"] == "violated 2"
