"""The command answers as promised: JSON on standard output, messages on standard error, exit codes.

A case says what it expects of a command; that the answer stands where it belongs holds for every
command of the run, but for one that explains itself.
"""

from __future__ import annotations

import json

from dtq_conformance import expectations
from dtq_conformance.evidence import at
from dtq_conformance.exchange import Exchange, words_of
from dtq_conformance.expectations import accuse
from dtq_conformance.history import History
from dtq_conformance.verdict import Ledger, Verdict

EXIT_CODES = (0, 1, 2, 3)

PROMISES = {
    "CLI-01": "All {n} commands explained themselves, with their options.",
    "CLI-02": "All {n} commands had their answer on standard output, and nothing else there.",
    "CLI-03": "All {n} exit codes were as promised.",
    "CLI-04": "All {n} refusals named the code of the API.",
    "CLI-05": "All {n} purges asked first, or were told not to.",
    "CLI-07": "The demonstration needed nothing and left nothing, {n} times.",
}


def check(history: History) -> list[Verdict]:
    """Judge every command of the run."""
    ledger = Ledger("commands_as_promised", PROMISES)
    expectations.judge(history, ledger, PROMISES)
    for exchange in expectations.exchanges(history, "command"):
        if "--help" not in exchange.words:
            _answers_on_standard_output(history, ledger, exchange)
            _ends_with_a_code(history, ledger, exchange)
    return ledger.verdicts()


def _answers_on_standard_output(history: History, ledger: Ledger, exchange: Exchange) -> None:
    ledger.judged("CLI-02")
    is_text = isinstance(exchange.body, str)
    if exchange.status == 0 and is_text:
        wrong = f"what it printed is not JSON: {json.dumps(exchange.body)[:100]}"
    elif exchange.status != 0 and exchange.body != "":
        wrong = "it printed an answer"
    elif exchange.status != 0 and not exchange.messages.strip():
        wrong = "it gave no message"
    else:
        return
    accuse(ledger, "CLI-02", exchange, f"The command {words_of(exchange)!r} exited with code "
           f"{exchange.status} {at(history, exchange.answered_ns)}, and {wrong}.")


def _ends_with_a_code(history: History, ledger: Ledger, exchange: Exchange) -> None:
    ledger.judged("CLI-03")
    if exchange.status not in EXIT_CODES:
        accuse(ledger, "CLI-03", exchange, f"The command {words_of(exchange)!r} exited with code "
               f"{exchange.status} {at(history, exchange.answered_ns)}, which is none of "
               f"{', '.join(map(str, EXIT_CODES))}.")
