"""Each expectation is judged once, by the checker of its clause."""

from __future__ import annotations

from dtq_conformance import expectations
from dtq_conformance.exchange import Exchange
from dtq_conformance.verdict import Ledger

from tests.conformance.exchanges import command, expects, http
from tests.conformance.histories import Part, fault, history


def judged(*parts: Part) -> dict[str, str]:
    ledger = Ledger("c", {"CLI-01": "{n}", "API-02": "{n}"})
    expectations.judge(history(*parts), ledger, {"CLI-01", "API-02"})
    return {each.clause: f"{each.status} {each.judged}" for each in ledger.verdicts()}


def test_an_expectation_is_judged_under_its_clause() -> None:
    asked = [expects("CLI-01", 0), expects("API-02", 1), expects("CLI-02", 5)]
    assert judged(command("list", expects=asked)) == {
        "CLI-01": "holds 1", "API-02": "violated 1"}


def test_silence_in_an_outage_is_no_answer_to_judge() -> None:
    silent = http("GET", "/x", None, expects=[expects("API-02", 200)])
    assert judged(silent)["API-02"] == "violated 1"
    assert judged(silent, fault("broker_away", 50, 90))["API-02"] == "unknown 0"
    assert judged(silent, fault("broker_away", 9_000, 9_100))["API-02"] == "violated 1"


def test_exchanges_come_in_the_order_in_which_they_were_asked() -> None:
    found = expectations.exchanges(history(http("GET", "/b", 200, at=9), command("a", at=5)))
    assert [each.words for each in found] == [["a"], ["GET", "/b"]]
    assert [each.via for each in expectations.exchanges(history(*found), "http")] == ["http"]


def test_evidence_is_cut_to_what_a_page_can_show() -> None:
    exchange: Exchange = command("x", body="y" * 9_000, messages="z" * 9_000)
    assert {len(str(value)) for name, value in expectations.data(exchange).items()
            if name in ("body", "messages")} == {expectations.SHOWN}
