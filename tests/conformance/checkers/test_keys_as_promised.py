"""keys_as_promised: what the harness has read in the keys, against what the contract says."""

from __future__ import annotations

from typing import Any

import pytest
from dtq_conformance.checkers.keys_as_promised import PROMISES, check
from dtq_conformance.exchange import Exchange
from dtq_conformance.front import want

from tests.conformance.histories import accuses, ns, says


def seen(clause: str, via: str = "inspection", **found: Any) -> Exchange:
    """A reading of which these things were expected: that nothing is missing."""
    return Exchange(
        asked_ns=ns(100), answered_ns=ns(100), via=via,  # type: ignore[arg-type]
        server="the broker", words=["a key"], status=0, body=found,
        expects=[want(clause, "a reading", holds={"missing": []})])


@pytest.mark.parametrize("clause", PROMISES)
def test_a_reading_is_as_expected_or_a_violation(clause: str) -> None:
    assert says(check, seen(clause, missing=[])) == {clause: "holds 1"}
    assert says(check, seen(clause, missing=["queue"])) == {clause: "violated 1"}
    assert says(check, seen(clause)) == {clause: "violated 1"}


def test_the_accusation_says_what_was_read_and_what_was_expected() -> None:
    assert accuses(check, "KEY-14", seen("KEY-14", missing=["queue"])) == (
        "A reading (a key), asked of the broker at 100 ms: missing was ['queue'], not [].")


def test_answers_of_fronts_are_the_business_of_others() -> None:
    assert says(check, seen("KEY-14", via="http", missing=["queue"])) == {}
