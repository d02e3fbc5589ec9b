"""Settings are checked at the start: a bad value ends the command, and the message names it.

What a case expects of a command with certain settings is drawn from the contract's table; that no
secret is shown holds for each message about a setting.
"""

from __future__ import annotations

from dtq_conformance import expectations
from dtq_conformance.evidence import at
from dtq_conformance.exchange import words_of
from dtq_conformance.history import History
from dtq_conformance.verdict import Ledger, Verdict

SECRETS = ("DTQ_REDIS_URL", "DTQ_API_KEY", "DTQ_SIGNING_KEY")

USAGE = 2

PROMISES = {
    "CONF-01": "All {n} settings were known, with the default of the table where it showed.",
    "CONF-02": "All {n} bad settings ended the command with a message that names them.",
    "CONF-03": "All {n} heartbeats that are too slow for their lease were refused.",
    "CONF-04": "All {n} fractions of seconds were accepted.",
    "CONF-05": "None of the {n} messages about a bad secret showed it.",
}


def check(history: History) -> list[Verdict]:
    """Judge every command that was run with settings of its own."""
    ledger = Ledger("settings_checked_at_the_start", PROMISES)
    expectations.judge(history, ledger, PROMISES)
    for exchange in expectations.exchanges(history, "command"):
        settings: dict[str, str] = exchange.sent.get("settings") or {}
        for name in SECRETS:
            if exchange.status != USAGE or len(settings.get(name, "")) < len("secret"):
                continue
            ledger.judged("CONF-05")
            if settings[name] in exchange.messages:
                expectations.accuse(ledger, "CONF-05", exchange, f"The command "
                                    f"{words_of(exchange)!r} was given a bad {name}, and showed "
                                    f"its value {at(history, exchange.answered_ns)}.")
    return ledger.verdicts()
