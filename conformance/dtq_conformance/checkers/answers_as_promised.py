"""The HTTP API answers as promised: what cases expected of it, and what holds for every answer.

A case says what it expects of an answer; the routes, the codes and the form of a refusal are the
contract's own, and every answer of the run is held against them.
"""

from __future__ import annotations

import re
from typing import Any

from dtq_conformance import expectations, front_tables
from dtq_conformance.evidence import at
from dtq_conformance.exchange import Exchange, code_of, text_of, words_of
from dtq_conformance.expectations import accuse, is_troubled
from dtq_conformance.history import History
from dtq_conformance.verdict import Ledger, Verdict

TRACEBACK = "Traceback (most recent call last)"
ECHOED = r"[A-Za-z0-9._-]{1,64}"
"""What a request's id may be; any other is replaced."""

DOCUMENT = "/openapi.json"
SUBMISSION = ["POST", "/api/v1/tasks"]

PROMISES = {
    "API-01": "All {n} requests to routes of the table found their route.",
    "API-02": "All {n} submissions were answered as promised.",
    "API-03": "All {n} refusals had a code of the table, with its status.",
    "API-04": "All {n} answers that were no success had the one form.",
    "API-05": "All {n} batches were answered item by item.",
    "API-06": "All {n} looks at a task showed what the contract says of it.",
    "API-07": "All {n} lists showed what was asked for, newest first.",
    "API-08": "All {n} cancels were answered by the state of the task.",
    "API-09": "All {n} looks at queues were answered as promised.",
    "API-10": "All {n} looks at workers were answered as promised.",
    "API-11": "All {n} requests about dead letters and pauses were answered as promised.",
    "API-12": "/health told {n} times that the process serves.",
    "API-13": "/ready told the truth {n} times.",
    "API-14": "All {n} answers had a request's id, its own where it had one.",
    "API-15": "None of the {n} answers was a 5xx without a cause, or held a traceback.",
    "API-16": "The document describes all {n} routes, with answers and an example.",
    "IDEM-01": "In all {n} submissions the header beat the field.",
    "BACK-04": "All {n} refusals of a full queue said when to try again.",
}


def check(history: History) -> list[Verdict]:
    """Judge every answer of the HTTP API."""
    ledger = Ledger("answers_as_promised", PROMISES)
    expectations.judge(history, ledger, PROMISES)
    for exchange in expectations.exchanges(history, "http"):
        if exchange.status is None:
            continue
        _finds_its_route(history, ledger, exchange)
        _is_refused_in_form(history, ledger, exchange)
        if exchange.words == SUBMISSION and exchange.status < 400:
            _accepts_or_says_duplicate(history, ledger, exchange)
        _has_its_id(history, ledger, exchange)
        _is_no_failure(history, ledger, exchange)
        if code_of(exchange) == "QUEUE_FULL":
            _says_when_to_try_again(history, ledger, exchange)
        if exchange.words == ["GET", DOCUMENT]:
            _describes_every_route(ledger, exchange)
    return ledger.verdicts()


def _finds_its_route(history: History, ledger: Ledger, exchange: Exchange) -> None:
    method, path = exchange.words
    if front_tables.route_of(method, path) is None:
        return
    ledger.judged("API-01")
    if code_of(exchange) in ("NOT_FOUND", "METHOD_NOT_ALLOWED") or exchange.status == 405:
        accuse(ledger, "API-01", exchange, f"{words_of(exchange)} is a route of the "
               f"table, and was answered {exchange.status} {code_of(exchange)} "
               f"{at(history, exchange.answered_ns)}.")


def _accepts_or_says_duplicate(history: History, ledger: Ledger, exchange: Exchange) -> None:
    body = exchange.body if isinstance(exchange.body, dict) else {}
    ledger.judged("API-02")
    is_duplicate = body.get("duplicate") is True
    if exchange.status != (200 if is_duplicate else 202) or not (
            body.get("task_id") and body.get("status")):
        accuse(ledger, "API-02", exchange, f"A submission was answered {exchange.status} "
               f"{at(history, exchange.answered_ns)} with {str(exchange.body)[:200]}.")


def _is_refused_in_form(history: History, ledger: Ledger, exchange: Exchange) -> None:
    status, body = exchange.status or 0, exchange.body
    if status < 400:
        return
    ledger.judged("API-04")
    missing = [name for name in ("code", "message", "request_id")
               if not (isinstance(body, dict) and isinstance(body.get(name), str) and body[name])]
    if missing:
        accuse(ledger, "API-04", exchange, f"{words_of(exchange)} was answered {status} "
               f"{at(history, exchange.answered_ns)} without {' and '.join(missing)}.")
        return
    ledger.judged("API-03")
    known = front_tables.codes().get(body["code"])
    if known != status:
        accuse(ledger, "API-03", exchange, f"{words_of(exchange)} was refused with "
               f"{body['code']} and status {status} {at(history, exchange.answered_ns)}; "
               + (f"the table gives it {known}." if known else "the table has no such code."))


def _has_its_id(history: History, ledger: Ledger, exchange: Exchange) -> None:
    given = _header(exchange, "x-request-id")
    given = given if re.fullmatch(ECHOED, given) else ""
    ledger.judged("API-14")
    answered = exchange.headers.get("x-request-id", "")
    told = exchange.body.get("request_id") if isinstance(exchange.body, dict) else None
    if not answered or (given and answered != given) or (
            (exchange.status or 0) >= 400 and told not in (None, answered)):
        accuse(ledger, "API-14", exchange,
               f"{words_of(exchange)}, with the request id {given or '(none)'}, was answered "
               f"{at(history, exchange.answered_ns)} with {answered or 'none'} in its header"
               + (f" and {told} in its body." if told is not None else "."))


def _header(exchange: Exchange, name: str) -> str:
    """A header that was sent; nothing if there was none."""
    headers: dict[str, str] = exchange.sent.get("headers") or {}
    return next((value for key, value in headers.items() if key.lower() == name), "")


def _is_no_failure(history: History, ledger: Ledger, exchange: Exchange) -> None:
    status = exchange.status or 0
    ledger.judged("API-15")
    if TRACEBACK in text_of(exchange):
        accuse(ledger, "API-15", exchange, f"{words_of(exchange)} was answered "
               f"{at(history, exchange.answered_ns)} with a traceback.")
    elif status >= 500 and code_of(exchange) != "NOT_READY" and not is_troubled(history, exchange):
        accuse(ledger, "API-15", exchange, f"{words_of(exchange)} was answered {status} "
               f"{at(history, exchange.answered_ns)}, and nothing had befallen the broker.")


def _says_when_to_try_again(history: History, ledger: Ledger, exchange: Exchange) -> None:
    ledger.judged("BACK-04")
    if not exchange.headers.get("retry-after", "").isdecimal():
        accuse(ledger, "BACK-04", exchange, f"{words_of(exchange)} was refused with "
               f"QUEUE_FULL {at(history, exchange.answered_ns)}, and Retry-After was "
               f"{exchange.headers.get('retry-after', 'missing')!r}.")


def _describes_every_route(ledger: Ledger, exchange: Exchange) -> None:
    paths = exchange.body.get("paths", {}) if isinstance(exchange.body, dict) else {}
    for route in front_tables.routes():
        ledger.judged("API-16")
        told = paths.get(route.path, {}).get(route.method.lower(), {})
        answers = told.get("responses", {})
        missing = [str(status) for status in route.statuses if str(status) not in answers]
        if missing or not (_holds_an_example(told) or route.path == "/metrics"):
            accuse(ledger, "API-16", exchange, f"The OpenAPI document describes "
                   f"{route.method} {route.path} "
                   + (f"without its answer {', '.join(missing)}." if missing
                      else "without an example."))


def _holds_an_example(told: Any) -> bool:
    if isinstance(told, dict):
        return "example" in told or "examples" in told or any(
            map(_holds_an_example, told.values()))
    return isinstance(told, list) and any(map(_holds_an_example, told))
