"""Secrets stay secret: keys open what they are for, actions leave a trace, logs show nothing.

What a case expects of an answer with or without a key stands in the exchange. The audit stream is
held against every destructive request of the run that was carried out, and none that was not. Logs
were searched for payloads, for secrets, and for lines that begin with what somebody had sent.
"""

from __future__ import annotations

from typing import Any

from dtq_conformance import evidence, expectations
from dtq_conformance.evidence import at
from dtq_conformance.exchange import Exchange, LogSearch, words_of
from dtq_conformance.history import History
from dtq_conformance.verdict import Ledger, Verdict

AUDIT = "the audit stream"
"""How an inspection is named that holds its entries."""

FORGED = "submitted with another signing key"
"""How an inspection begins that names a task which the workers must not believe."""

ACTIONS = ("cancel", "requeue", "discard", "purge", "pause", "resume")
TRACE = ("actor", "action", "task_id", "ts", "request_id")

PROMISES = {
    "SEC-01": "Nothing of the {n} things that looked like code was taken for code.",
    "SEC-02": "All {n} destructive requests needed the key.",
    "SEC-04": "All {n} requests that read or submit needed no key.",
    "SEC-05": "All {n} destructive requests left the trace that they must.",
    "SEC-06": "In none of the {n} logs a payload or a secret was found.",
    "SEC-07": "In none of the {n} logs a line began with what somebody had sent.",
    "SEC-08": "All {n} tasks with a wrong signature or none were settled, and never run.",
}


def check(history: History) -> list[Verdict]:
    """Judge keys, traces, logs and signatures."""
    ledger = Ledger("secrets_stay_secret", PROMISES)
    expectations.judge(history, ledger, PROMISES)
    for page in expectations.exchanges(history, "inspection"):
        if page.words == [AUDIT]:
            _are_traced(history, ledger, page)
        elif page.words[0] == FORGED:
            _was_not_believed(history, ledger, page.words[1])
    searches: list[LogSearch] = history.of(LogSearch)
    for search in searches:
        clause = "SEC-07" if search.what == "forged line" else "SEC-06"
        ledger.judged(clause)
        if search.found:
            ledger.violated(clause, None, f"The log of {search.process} holds a {search.what}: "
                            f"{search.found[0]!r}.", process=search.process, lines=search.found)
    return ledger.verdicts()


def _are_traced(history: History, ledger: Ledger, page: Exchange) -> None:
    entries: list[dict[str, Any]] = page.body
    for exchange in expectations.exchanges(history, "http"):
        action = exchange.words[1].rpartition("/")[2]
        if exchange.words[0] != "POST" or action not in ACTIONS or \
                exchange.answered_ns > page.asked_ns or exchange.status is None:
            continue
        request_id = exchange.headers.get("x-request-id", "")
        traces = [entry for entry in entries if entry.get("request_id") == request_id]
        done = exchange.status < 400 or exchange.status == 409
        ledger.judged("SEC-05")
        wrong = _wrong_with(traces, action, done=done, at_least=action == "purge")
        if wrong:
            ledger.violated("SEC-05", None, f"{words_of(exchange)} was answered {exchange.status} "
                            f"{at(history, exchange.answered_ns)}; in the audit stream {wrong}.",
                            traces=traces, **expectations.data(exchange))


def _wrong_with(traces: list[dict[str, Any]], action: str, *, done: bool, at_least: bool) -> str:
    """What is wrong with the traces of one request; nothing if they are as they must be."""
    if not done:
        return "it has an entry" if traces else ""
    if not traces or (len(traces) > 1 and not at_least):
        return f"it has {len(traces)} entries"
    missing = [name for name in TRACE if name not in traces[0]]
    if missing:
        return f"its entry has no {' and no '.join(missing)}"
    if action not in str(traces[0]["action"]):
        return f"its entry says {traces[0]['action']!r}"
    return "" if traces[0]["actor"] else "its entry names no actor"


def _was_not_believed(history: History, ledger: Ledger, task_id: str) -> None:
    ledger.judged("SEC-08")
    executions = history.executions.get(task_id, [])
    last = evidence.last_look(history, task_id)
    error_class = last.answer.get("error_class") if last is not None else None
    if executions:
        ledger.violated("SEC-08", task_id, f"Task {task_id}, whose signature was wrong or missing, "
                        f"was executed {at(history, executions[0].start_ns)}.")
    elif error_class != "BadSignature":
        status = last.answer.get("status") if last is not None else "not known"
        ledger.violated("SEC-08", task_id, f"Task {task_id}, whose signature was wrong or missing, "
                        f"is {status!r} with the error class {error_class}, not BadSignature.")
