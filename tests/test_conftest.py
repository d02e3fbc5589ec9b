"""What all tests share: a missing tool is a counted skip here, and an error in CI."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Need = Callable[[object, str], None]


def test_what_is_there_is_not_skipped(need: Need) -> None:
    need("/usr/bin/env", "env is not on the PATH")


def test_what_is_missing_is_skipped_with_its_reason(
        need: Need, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="not run: x is not on the PATH"):
        need(None, "x is not on the PATH")


def test_what_is_missing_in_ci_is_an_error(need: Need, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="x is not on the PATH"):
        need(None, "x is not on the PATH")
