"""An answer is compared with what was expected of it, place by place."""

from __future__ import annotations

import pytest
from dtq_conformance.exchange import Expected, lacks, text_of

from tests.conformance.exchanges import command, expects, http, refusal


@pytest.mark.parametrize(("expected", "told"), [
    (expects("API-02", 200, 409), []),
    (expects("API-02", 202), ["the status was 409, not 202"]),
    (expects("API-02", code="CANCEL_REQUESTED"), []),
    (expects("API-02", code="TASK_TERMINAL"), ["the code was CANCEL_REQUESTED, not TASK_TERMINAL"]),
    (expects("API-02", has=["a.0.b", "message"]), []),
    (expects("API-02", has=["a.1", "a.0.c", "code.x"]),
     ["a.1 was missing", "a.0.c was missing", "code.x was missing"]),
    (expects("API-02", holds={"a.0.b": 7}), []),
    (expects("API-02", holds={"a.0.b": 8, "c": 1}), ["a.0.b was 7, not 8", "c was missing"]),
    (expects("API-02", says=["CANCEL"], hides=["password"]), []),
    (expects("API-02", says=["password"], hides=["CANCEL"]),
     ["it did not say 'password'", "it showed 'CANCEL'"])])
def test_what_is_lacking_is_told(expected: Expected, told: list[str]) -> None:
    answer = http("GET", "/x", 409, refusal("CANCEL_REQUESTED", a=[{"b": 7}]))
    assert lacks(answer, expected) == told


def test_without_an_answer_nothing_can_be_there() -> None:
    assert lacks(http("GET", "/x", None), expects("API-02", 200)) == ["no answer came"]


def test_a_command_names_the_code_in_its_message() -> None:
    refused = command("get", "x", status=1, messages="dtq: TASK_NOT_FOUND: There is none.")
    assert lacks(refused, expects("CLI-04", 1, code="TASK_NOT_FOUND")) == []
    assert lacks(refused, expects("CLI-04", 1, code="QUEUE_FULL")) == [
        "the message did not name QUEUE_FULL"]


def test_the_text_of_an_answer_is_all_that_came_back() -> None:
    assert "one" in text_of(command(body="one")) and "two" in text_of(command(messages="two"))
    assert "r-1" in text_of(http("GET", "/x", 200, {"a": "b"}))
