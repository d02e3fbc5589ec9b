"""Every case as a plain pytest test: `pytest --pyargs dtq_conformance.pytest_cases`.

Comes in: the options of `pytest_plugin`. Goes out: one test for each case, named after it.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dtq_conformance.cases import CASES


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, dtq_case: Callable[[str], None]) -> None:
    """The target keeps the clauses that this case is about."""
    dtq_case(name)
