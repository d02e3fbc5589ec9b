"""What a target is judged by: its claims decide what is run and what is counted as untested.

These hold CLAIM-01 and CLAIM-03: what is not claimed, and what has no test, is never a pass.
"""

from __future__ import annotations

import pytest
from dtq_conformance.cases import CASES
from dtq_conformance.claims import not_claimed, untested
from dtq_conformance.clauses import load_clauses
from dtq_conformance.target import CLAIMS
from dtq_conformance.untested import UNTESTED


def test_a_trial_about_nothing_that_is_claimed_is_not_run_and_says_so() -> None:
    assert not_claimed({"it": CASES["outside_the_limits_is_refused"]},
                       frozenset({"retry", "submission"})) == {}
    assert not_claimed({"it": CASES["idle_workers_stop"]}, frozenset({"retry"})) == {
        "it": "It is about shutdown and delivery, which the target does not claim."}


def test_a_trial_whose_steps_need_another_claim_is_not_run_and_says_so() -> None:
    assert not_claimed({"it": CASES["sent_again_is_one_task"]}, frozenset({"delivery"})) == {
        "it": "It needs a target that claims submission."}


def test_claimed_clauses_that_no_trial_tests_are_counted_with_their_reasons() -> None:
    found = untested(frozenset({"priority", "dlq"}))
    assert found == {clause.id: UNTESTED[clause.id] for clause in load_clauses().values()
                     if clause.claim in ("priority", "dlq") and clause.id in UNTESTED}
    assert untested(frozenset()) == {}


@pytest.mark.slow
def test_what_binds_the_judge_is_no_targets_burden() -> None:
    assert {clause.claim for name, clause in load_clauses().items()
            if name in untested(frozenset(CLAIMS))} <= set(CLAIMS)
