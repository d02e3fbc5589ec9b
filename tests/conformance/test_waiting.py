"""Waiting for a condition."""

from __future__ import annotations

import time

import pytest
from dtq_conformance.waiting import WaitedTooLong, let_pass, wait_for


def test_the_first_true_value_is_returned() -> None:
    values = iter([None, 0, "", "there", "later"])
    assert wait_for(lambda: next(values), reason="a value", limit_s=10) == "there"


def test_what_is_true_already_needs_no_time() -> None:
    assert wait_for(lambda: 7, reason="seven", limit_s=0) == 7


def test_a_limit_that_is_over_names_the_reason_and_the_seconds() -> None:
    with pytest.raises(WaitedTooLong, match=r"^waited 0\.02 s for a miracle$"):
        wait_for(lambda: None, reason="a miracle", limit_s=0.02)


def test_a_condition_is_asked_at_least_once() -> None:
    asked: list[int] = []
    with pytest.raises(WaitedTooLong):
        wait_for(lambda: asked.append(1), reason="nothing", limit_s=-1)
    assert asked


def test_what_a_condition_raises_is_passed_on() -> None:
    with pytest.raises(ZeroDivisionError):
        wait_for(lambda: 1 // 0, reason="nothing", limit_s=10)


def test_time_that_is_let_pass_has_passed() -> None:
    began_ns = time.monotonic_ns()
    let_pass(20)
    assert time.monotonic_ns() - began_ns >= 20_000_000
