"""settings_checked_at_the_start: a bad setting is named, and a secret is not shown."""

from __future__ import annotations

from dtq_conformance.checkers.settings_checked_at_the_start import check

from tests.conformance.exchanges import command, expects
from tests.conformance.histories import says

URL = "redis://user:pass@word@host:port"


def test_a_bad_setting_ends_the_command_with_its_name() -> None:
    asked = [expects("CONF-02", 2, says=["DTQ_API_PORT"])]
    good = command("x", status=2, messages="dtq: DTQ_API_PORT is 'x'", expects=asked)
    assert says(check, good) == {"CONF-02": "holds 1"}
    for bad in (command("x", status=0, expects=asked),
                command("x", status=2, messages="dtq: a setting is bad", expects=asked)):
        assert says(check, bad) == {"CONF-02": "violated 1"}


def test_a_secret_is_not_shown() -> None:
    named = command("x", status=2, messages="dtq: DTQ_REDIS_URL is bad", DTQ_REDIS_URL=URL)
    assert says(check, named) == {"CONF-05": "holds 1"}
    shown = command("x", status=2, messages=f"dtq: DTQ_REDIS_URL is {URL}", DTQ_REDIS_URL=URL)
    assert says(check, shown) == {"CONF-05": "violated 1"}
    done = command("x", status=0, DTQ_REDIS_URL=URL)
    assert says(check, done) == {}
