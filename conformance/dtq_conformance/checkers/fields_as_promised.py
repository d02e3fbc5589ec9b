"""Fields are as promised: their limits and defaults when a task is submitted, their values when it
is looked at.

What a case expects of an answer stands in the exchange. That an id which nobody gave is random
holds for every submission without one.
"""

from __future__ import annotations

import re

from dtq_conformance import expectations
from dtq_conformance.evidence import at
from dtq_conformance.exchange import Exchange, place
from dtq_conformance.history import History
from dtq_conformance.operation import Operation
from dtq_conformance.target import STATUSES
from dtq_conformance.verdict import Ledger, Verdict

RANDOM_ID = re.compile("[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}")
"""A UUID of version 4, without its hyphens."""

ALIKE = 8
"""Two random ids that begin with so many equal digits are no coincidence."""

PROMISES = {
    "STATE-04": "All {n} statuses that were shown are among the nine.",
    "TTL-04": "All {n} tasks that were too old were expired within a second of their turn.",
    "TTL-06": "All {n} tasks that grew too old while they ran expired when they were redelivered.",
    "TASK-05": "All {n} ids that nobody gave were random.",
    "TASK-06": "All {n} tasks showed the defaults of what was left out.",
    "TASK-07": "All {n} payloads at the limit and beyond were answered by their size.",
    "TASK-08": "All {n} payloads that JSON cannot say were refused.",
    "TASK-09": "All {n} metadata beyond the limit were refused.",
    "TASK-10": "All {n} task types without a handler were refused.",
    "TASK-11": "All {n} tasks showed the number of their attempt.",
    "TASK-12": "All {n} tasks showed when they were accepted, and from when on they may run.",
    "TASK-13": "All {n} tasks showed their last attempt.",
    "TASK-14": "All {n} error messages were clean and short.",
    "SCHED-06": "All {n} promoted tasks had the number of their next attempt.",
    "TTL-07": "All {n} times to live that are none were refused.",
    "RETRY-09": "All {n} tasks without a handler ended after one attempt.",
    "RETRY-10": "With dead-lettering off, {n} tasks failed and left no letter.",
    "DLQ-05": "All {n} dead letters were found by the id of their task.",
    "DLQ-07": "All {n} requeued tasks kept the attempts before.",
    "DLQ-10": "All {n} discarded tasks stayed dead-lettered, without their letter.",
    "DLQ-11": "All {n} purges told how many letters there were.",
    "IDEM-02": "All {n} keys were each queue's own.",
    "IDEM-06": "All {n} duplicates of finished tasks were answered while the queue was full.",
    "IDEM-09": "All {n} submissions of a key with another payload got the stored task.",
}


def check(history: History) -> list[Verdict]:
    """Judge the fields of submissions and of tasks."""
    ledger = Ledger("fields_as_promised", PROMISES)
    expectations.judge(history, ledger, PROMISES)
    for looks in history.looks.values():
        for look in looks:
            _is_one_of_nine(history, ledger, look)
    before = ""
    for exchange in expectations.exchanges(history, "http"):
        if not _drew_an_id(exchange):
            continue
        task_id = str(place(exchange.body, "task_id"))
        ledger.judged("TASK-05")
        if RANDOM_ID.fullmatch(task_id) is None or task_id[:ALIKE] == before[:ALIKE]:
            ledger.violated("TASK-05", task_id, f"A task without an id was accepted "
                            f"{at(history, exchange.answered_ns)} as {task_id}"
                            + (f", after {before}." if before else "."), before=before)
        before = task_id
    return ledger.verdicts()


def _is_one_of_nine(history: History, ledger: Ledger, look: Operation) -> None:
    if not look.answer:
        return
    ledger.judged("STATE-04")
    status = look.answer.get("status")
    if status not in STATUSES:
        ledger.violated("STATE-04", look.task_id, f"Task {look.task_id} was shown as {status!r} "
                        f"{at(history, look.answered_ns)}, which is none of "
                        f"{', '.join(STATUSES)}.", answer=look.answer)


def _drew_an_id(exchange: Exchange) -> bool:
    body = exchange.sent.get("body")
    return (exchange.words == ["POST", "/api/v1/tasks"] and exchange.status == 202
            and isinstance(body, dict) and "task_id" not in body)
