"""What every checker of answers has in common: each expectation that an exchange carries is judged.

Comes in: a history, and the promises of a checker. Goes out, into the ledger: one thing judged for
each expectation of these clauses, and a violation where the answer lacks something.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec

from dtq_conformance.evidence import at
from dtq_conformance.exchange import Exchange, lacks, words_of
from dtq_conformance.history import History
from dtq_conformance.verdict import Ledger

SHOWN = 500
"""How many characters of an answer are kept as evidence."""


def exchanges(history: History, *via: str) -> list[Exchange]:
    """The exchanges of the run, in order; of these kinds, if any are named."""
    found: list[Exchange] = history.of(Exchange)
    return sorted((each for each in found if not via or each.via in via),
                  key=lambda each: each.asked_ns)


def judge(history: History, ledger: Ledger, clauses: Iterable[str], *via: str) -> None:
    """Judge each expectation of these clauses."""
    wanted = set(clauses)
    for exchange in exchanges(history, *via):
        for expected in exchange.expects:
            if expected.clause not in wanted:
                continue
            if exchange.status is None and is_troubled(history, exchange):
                continue
            ledger.judged(expected.clause)
            if problems := lacks(exchange, expected):
                accuse(ledger, expected.clause, exchange,
                       f"{expected.told[0].upper()}{expected.told[1:]} ({words_of(exchange)}), "
                       f"asked of {exchange.server} {at(history, exchange.asked_ns)}: "
                       f"{'; '.join(problems)}.")


def accuse(ledger: Ledger, clause: str, exchange: Exchange, sentence: str) -> None:
    """A violation, with the answer as evidence."""
    ledger.violated(clause, None, sentence, **data(exchange))


def data(exchange: Exchange) -> dict[str, Any]:
    """An exchange as evidence, cut to what a page can show."""
    body = json.dumps(msgspec.to_builtins(exchange.body))
    return {"words": exchange.words, "status": exchange.status, "body": body[:SHOWN],
            "messages": exchange.messages[-SHOWN:], "headers": exchange.headers}


def is_troubled(history: History, exchange: Exchange) -> bool:
    """Whether a fault may have befallen the broker or a process while this was asked, or shortly
    before, so that a refusal or a silence is no wonder."""
    late_ns = history.header.timing.recovery_ms * 1_000_000
    return any(spell.from_ns <= exchange.answered_ns
               and exchange.asked_ns <= (spell.to_ns or history.end_ns) + late_ns
               for spell in history.spells)
