"""Metrics count right: what all processes counted adds up to what happened, under bounded labels.

The last scrape of each process was made when everything was over. What happened is told by the
answers to submissions, the witness file and the looks. A run in which a process died before is not
judged by its sums.
"""

from __future__ import annotations

import re
from collections import Counter

from dtq_conformance import evidence, expectations, exposition, front_tables
from dtq_conformance.evidence import at
from dtq_conformance.exchange import Exchange
from dtq_conformance.exposition import Scrape
from dtq_conformance.history import History
from dtq_conformance.verdict import Ledger, Verdict

PAGE = "/metrics"
LABELS = frozenset({"queue", "task_type", "status", "result", "operation", "reason", "worker_id",
                    "le"})
VALUE_LENGTH = 200
"""A task type may be so long, and no other label is longer."""

PROMISES = {
    "MET-01": "All {n} metrics of the table were served, with their types and labels.",
    "MET-02": "All {n} samples had bounded labels.",
    "MET-03": "All {n} sums of counters were what had happened.",
    "MET-04": "All {n} gauges told what was there.",
    "MET-05": "All {n} workers served their metrics where they were told to, or nowhere.",
}


def check(history: History) -> list[Verdict]:
    """Judge every scrape of the run."""
    ledger = Ledger("metrics_count_right", PROMISES)
    expectations.judge(history, ledger, PROMISES)
    pages = [each for each in expectations.exchanges(history, "http", "inspection")
             if each.words == ["GET", PAGE] and isinstance(each.body, str)]
    for page in pages:
        _labels_are_bounded(history, ledger, page)
        if page.via == "http":
            _depth_tells_what_waits(history, ledger, page)
    last = {page.server: page for page in pages}
    workers = {life.name for life in history.lives if life.role == "worker"
               and any(execution.worker_id == life.name
                       for runs in history.executions.values() for execution in runs)}
    if workers and workers <= last.keys() and any(page.via == "http" for page in pages):
        _are_all_there(ledger, last)
        _add_up(history, ledger, last)
        _gauges_are_at_rest(history, ledger, last)
    return ledger.verdicts()


def _labels_are_bounded(history: History, ledger: Ledger, page: Exchange) -> None:
    secret = [str(request.get("payload", {}).get("label"))
              for asked in history.submissions.values() for request in [asked[0].request]]
    for sample in exposition.read(str(page.body)).samples:
        if not sample.name.startswith("dtq_"):
            continue
        ledger.judged("MET-02")
        odd = [name for name, value in sample.labels.items() if name not in LABELS
               or re.search("[0-9a-f]{32}", value) or len(value) > VALUE_LENGTH
               or any(len(each) > len("label") and each in value for each in secret)]
        if odd:
            ledger.violated("MET-02", None, f"{page.server} served {sample.name} "
                            f"{at(history, page.asked_ns)} with the label {odd[0]}="
                            f"{sample.labels[odd[0]]!r}.", labels=sample.labels)


def _are_all_there(ledger: Ledger, last: dict[str, Exchange]) -> None:
    scrapes = [exposition.read(str(page.body)) for page in last.values()]
    for metric in front_tables.metrics().values():
        ledger.judged("MET-01")
        types = {scrape.types[name] for scrape in scrapes
                 for name in (metric.name, metric.name.removesuffix("_total"))
                 if name in scrape.types}
        if types != {metric.type}:
            ledger.violated("MET-01", None, f"{metric.name} is served "
                            + (f"as {' and '.join(types)}, not as a {metric.type}."
                               if types else "by nobody."), metric=metric.name)
            continue
        for sample in [each for scrape in scrapes for each in scrape.of(metric.name)]:
            if sample.labels.keys() - {"le"} != set(metric.labels):
                ledger.violated("MET-01", None, f"{metric.name} has the labels "
                                f"{', '.join(sample.labels) or '(none)'}; the table gives it "
                                f"{', '.join(metric.labels) or '(none)'}.", labels=sample.labels)
                break


def _add_up(history: History, ledger: Ledger, last: dict[str, Exchange]) -> None:
    first_ns = min(page.asked_ns for page in last.values())
    if any(life.role in ("worker", "api") and life.exit_ns is not None and life.exit_ns < first_ns
           for life in history.lives) or history.spells:
        return
    scrapes = [exposition.read(str(page.body)) for page in last.values()]
    for metric, expected in _happened(history).items():
        name, _, status = metric.partition(" ")
        labels = {"status": status} if status else {}
        counted = exposition.total(scrapes, name, **labels)
        ledger.judged("MET-03")
        if counted != expected:
            ledger.violated("MET-03", None, f"The processes count {counted:g} for {metric}, and "
                            f"{expected} happened.", metric=metric, counted=counted,
                            happened=expected)


def _happened(history: History) -> dict[str, int]:
    """What each counter must come to. Submissions count where the API accepted them."""
    runs = [execution for each in history.executions.values() for execution in each]
    ends = Counter(str(look.answer.get("status")) for task_id in history.accepted
                   if evidence.terminal(look := evidence.last_look(history, task_id))
                   and look is not None)
    asked = [each for each in expectations.exchanges(history, "http")
             if each.words == ["POST", "/api/v1/tasks"]]
    return {
        "dtq_tasks_submitted_total": sum(each.status == 202 for each in asked),
        "dtq_ingest_rejected_total": sum((each.status or 0) >= 400 for each in asked),
        "dtq_tasks_started_total": len(runs),
        "dtq_task_attempts_total": len(runs),
        "dtq_worker_tasks_total": len(runs),
        "dtq_tasks_retried_total": sum(
            execution.attempt > 1 for execution in runs),
        "dtq_tasks_succeeded_total": ends["succeeded"],
        "dtq_tasks_dead_lettered_total": ends["dead_lettered"],
        "dtq_tasks_superseded_total": 0,
        **{f"dtq_tasks_completed_total {status}": count for status, count in ends.items()},
        "dtq_task_execution_seconds_count": len(runs),
        "dtq_task_wait_seconds_count": len(runs)}


def _gauges_are_at_rest(history: History, ledger: Ledger, last: dict[str, Exchange]) -> None:
    scrapes = [exposition.read(str(page.body)) for page in last.values()]
    at_ns = max(page.asked_ns for page in last.values())
    looks = [evidence.last_look(history, task_id) for task_id in history.accepted]
    if not all(evidence.terminal(look) for look in looks):
        return
    living = sum(life.role == "worker" and (life.exit_ns or at_ns) >= at_ns > life.start_ns
                 for life in history.lives)
    dead = sum(look is not None and look.answer.get("status") == "dead_lettered"
               for look in looks)
    for name, expected in (("dtq_queue_depth", 0), ("dtq_queue_pending", 0),
                           ("dtq_retry_scheduled", 0), ("dtq_dlq_depth", dead),
                           ("dtq_workers_active", living), ("dtq_worker_inflight", 0)):
        _tells(history, ledger, name, scrapes, expected, at_ns)


def _depth_tells_what_waits(history: History, ledger: Ledger, page: Exchange) -> None:
    """Before there is a worker, everything that was accepted waits."""
    if any(life.role == "worker" and life.start_ns < page.answered_ns for life in history.lives):
        return
    waiting = [history.submissions[task_id][0].request for task_id in history.accepted
               if history.submissions[task_id][0].answered_ns < page.asked_ns]
    scrapes = [exposition.read(str(page.body))]
    _tells(history, ledger, "dtq_queue_depth", scrapes, len(waiting), page.asked_ns)
    _tells(history, ledger, "dtq_retry_scheduled", scrapes,
           sum(bool(request.get("delay_ms")) for request in waiting), page.asked_ns)


def _tells(history: History, ledger: Ledger, name: str, scrapes: list[Scrape], expected: int,
           at_ns: int) -> None:
    told = exposition.total(scrapes, name)
    ledger.judged("MET-04")
    if told != expected:
        ledger.violated("MET-04", None, f"{name} was {told:g} {at(history, at_ns)}, when "
                        f"{expected} were there.", metric=name, told=told, there=expected)
