"""workers_as_promised: what was seen of workers, against what the contract says."""

from __future__ import annotations

import pytest
from dtq_conformance.checkers.workers_as_promised import PROMISES, check

from tests.conformance.checkers.test_keys_as_promised import seen
from tests.conformance.histories import accuses, says


@pytest.mark.parametrize("clause", PROMISES)
def test_what_was_seen_is_as_expected_or_a_violation(clause: str) -> None:
    assert says(check, seen(clause, missing=[])) == {clause: "holds 1"}
    assert says(check, seen(clause, missing=["one"])) == {clause: "violated 1"}


def test_the_accusation_says_what_was_seen() -> None:
    assert accuses(check, "STOP-05", seen("STOP-05", missing=[7])).endswith(
        "missing was [7], not [].")
