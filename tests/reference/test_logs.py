"""The log: one record a line, no control characters, no secrets, as text or as JSON."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from typing import Any

import pytest
from dtq_reference import logs
from dtq_reference.settings import Settings
from hypothesis import given
from hypothesis import strategies as st

SECRETS: dict[str, Any] = {"api_key": "open-sesame", "signing_key": "sign-me",
                           "redis_url": "redis://user:pass%20word@host:6379/0"}


def line(message: str, *args: object, as_json: bool = False, exc_info: Any = None,
         **settings: Any) -> str:
    record = logging.LogRecord("dtq.test", logging.WARNING, __file__, 1, message, args, exc_info)
    return logs.Formatter(Settings(log_json=as_json, **settings)).format(record)


def test_a_record_says_when_how_bad_who_and_what() -> None:
    text = line("task %s", "x")
    assert text.endswith(" WARNING dtq.test: task x")
    told = json.loads(line("task %s", "x", as_json=True))
    assert (told["level"], told["logger"], told["message"]) == ("WARNING", "dtq.test", "task x")
    assert told["ts"].endswith("+00:00")
    assert text.startswith(told["ts"][:13])


@given(st.text(st.characters()), st.booleans())
def test_whatever_is_logged_stays_on_its_line(field: str, as_json: bool) -> None:
    text = line("field %s", field, as_json=as_json)
    assert len(text.splitlines()) == 1
    assert not logs.UNSAFE.search(text)
    text.encode()


def test_a_line_end_in_a_field_is_written_as_an_escape() -> None:
    assert line("id %s", "a\nERROR forged").endswith(r"id a\nERROR forged")
    assert logs.clean("a\r\x1b[31m\u2028\x85\0ü") == r"a\r\x1b[31m\u2028\x85\x00ü"


@pytest.mark.parametrize("as_json", [False, True])
def test_a_traceback_cannot_look_like_a_record(as_json: bool) -> None:
    try:
        raise ValueError("bad\n2026-01-01 ERROR dtq: forged\x1b[31m")
    except ValueError:
        text = line("it failed", exc_info=sys.exc_info(), as_json=as_json)
    first, *others = text.splitlines()
    assert "it failed" in first
    assert "ValueError: bad" in text
    assert "\x1b" not in text
    assert not [other for other in others if not other.startswith("    ")]
    assert as_json != bool(others)


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("secret", ["open-sesame", "sign-me", "pass%20word", "pass word"])
def test_no_secret_is_shown(secret: str, as_json: bool) -> None:
    text = line("it said %s", f"'{secret}'", as_json=as_json, **SECRETS)
    assert secret not in text
    assert f"'{logs.HIDDEN}'" in text
    try:
        raise ValueError(secret)
    except ValueError:
        assert secret not in line("x", exc_info=sys.exc_info(), as_json=as_json, **SECRETS)


@pytest.mark.parametrize(("level", "expected"), [
    ("WARNING", ["dtq.x warning", "other warning"]),
    ("DEBUG", ["dtq.x debug", "dtq.x info", "dtq.x warning", "other info", "other warning"])])
def test_a_configured_process_logs_to_stderr_from_its_level_on(
        level: str, expected: list[str]) -> None:
    """Others say no more than INFO, whatever is asked for."""
    code = ("import logging; from dtq_reference import logs, settings; "
            "logs.configure(settings.load())\n"
            "for name in ('dtq.x', 'other'):\n"
            "  for level in ('debug', 'info', 'warning'):\n"
            "    getattr(logging.getLogger(name), level)(level + '\\ud800')")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                          env={"DTQ_LOG_JSON": "true", "DTQ_LOG_LEVEL": level})
    told = [json.loads(line) for line in done.stderr.splitlines()]
    assert [f"{each['logger']} {each['message']}" for each in told] == [
        f"{line}\ud800" for line in expected]
    assert done.stdout == ""
