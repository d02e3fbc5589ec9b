"""Every refusal has a code with an HTTP status, and a sentence."""

from __future__ import annotations

import ast
from pathlib import Path

import dtq_reference
import pytest
from dtq_reference.errors import HTTP_STATUS, DtqError
from dtq_reference.openapi import STATUS

SOURCES = [ast.parse(path.read_text()) for path in
           Path(str(dtq_reference.__file__)).parent.glob("*.py")]


def test_every_code_that_is_raised_anywhere_has_a_status() -> None:
    raised = {node.args[0].value for source in SOURCES for node in ast.walk(source)
              if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("DtqError")
              and node.args and isinstance(node.args[0], ast.Constant)}
    assert raised
    assert raised <= set(STATUS)


@pytest.mark.parametrize("code", HTTP_STATUS)
def test_a_refusal_carries_its_code_its_sentence_and_what_stands_in_the_way(code: str) -> None:
    refusal = DtqError(code, "It is so.", task_id="a")
    assert (refusal.code, refusal.message, str(refusal), refusal.details) == (
        code, "It is so.", "It is so.", {"task_id": "a"})
    assert 400 <= HTTP_STATUS[code] < 600
