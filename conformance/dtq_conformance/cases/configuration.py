"""Cases of the configuration: bad values are refused by name, good ones and defaults are taken."""

from __future__ import annotations

import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from dtq_conformance import front_tables
from dtq_conformance.bench import Bench
from dtq_conformance.exchange import Expected, place
from dtq_conformance.front import run_command, want
from dtq_conformance.front_tables import Setting
from dtq_conformance.trial import Trial

DRAWN = 8
"""How many variables are given a bad value in one run; the seed draws which."""

QUESTION = ("queue", "stats")
"""A command that does nothing but read."""

PASSWORD = "hunter2-of-the-judge"

WORDS = {"DTQ_REDIS_URL": f"redis://user:{PASSWORD}@host:port/0", "DTQ_WS_PATH": "no slash",
         "DTQ_WORKER_ID": "a worker", "DTQ_LOG_LEVEL": "LOUD", "DTQ_KEY_PREFIX": ""}
"""Bad values of variables that are not numbers."""


def bad_value(setting: Setting) -> str | None:
    """A value that the table does not allow; None if it allows all that a variable can hold."""
    if setting.name in WORDS:
        return WORDS[setting.name]
    if setting.accepts == "true or false":
        return "perhaps"
    limits = re.match(r"([\d.]+) to (\d+)\Z", setting.accepts)
    return None if limits is None else str(int(limits.group(2)) + 1)


def _a_bad_setting_names_itself(bench: Bench) -> None:
    """Some variables are given what the table does not allow, the broker's URL always."""
    bad = {setting.name: value for setting in front_tables.settings().values()
           if (value := bad_value(setting)) is not None}
    names = {"DTQ_REDIS_URL", *bench.random.sample(sorted(bad), DRAWN)}

    def refuse(name: str) -> None:
        expects = [want("CONF-02", f"a command with a bad {name}", 2, says=[name])]
        if name == "DTQ_REDIS_URL":
            expects.append(want("CONF-05", "a message about a bad URL", 2, hides=[PASSWORD]))
        run_command(bench, *QUESTION, expects=expects, settings={name: bad[name]})

    with ThreadPoolExecutor(2) as hands:
        for done in [hands.submit(refuse, name) for name in sorted(names)]:
            done.result()
    good = {"DTQ_HEARTBEAT_INTERVAL_S": "0.2", "DTQ_VISIBILITY_TIMEOUT_S": "1"}
    for name, value in (("DTQ_HEARTBEAT_INTERVAL_S", "0.9"), ("DTQ_VISIBILITY_TIMEOUT_S", "0.3")):
        run_command(bench, *QUESTION, expects=[want(
            "CONF-03", f"a lease that outlives no two heartbeats ({name}={value})", 2,
            says=["DTQ_HEARTBEAT_INTERVAL_S"])], settings={**good, name: value})


def _good_settings_are_taken(bench: Bench) -> None:
    """The least that the table allows, fractions, and the defaults that a task shows."""
    least = {setting.name: found.group(1) for setting in front_tables.settings().values()
             if (found := re.match(r"([\d.]+) to (\d+)\Z", setting.accepts))
             and setting.name not in ("DTQ_VISIBILITY_TIMEOUT_S", "DTQ_HEARTBEAT_INTERVAL_S")}
    run_command(bench, *QUESTION, expects=[want(
        "CONF-01", "a command with the least of all that is allowed", 0)], settings=least)
    run_command(bench, *QUESTION, expects=[want("CONF-04", "fractions of seconds", 0)],
                settings={"DTQ_DRAIN_TIMEOUT_S": "0.25", "DTQ_REAP_INTERVAL_S": "0.125",
                          "DTQ_HEARTBEAT_INTERVAL_S": "0.3", "DTQ_VISIBILITY_TIMEOUT_S": "1.5"})
    shows_default = want("CONF-01", "a task that was submitted without a time limit", 0, holds={
        "timeout_ms": int(front_tables.settings()["DTQ_TASK_TIMEOUT_MS"].default)})
    _submitted_and_seen(bench, shows_default)
    _submitted_and_seen(bench, want(
        "CONF-01", "a task that was submitted with another default", 0,
        holds={"timeout_ms": 1234}), settings={"DTQ_TASK_TIMEOUT_MS": "1234"})
    most = int(front_tables.settings()["DTQ_MAX_ATTEMPTS"].default)
    for attempts, expected in ((most, want("CONF-01", "as many attempts as allowed", 0)),
                               (most + 1, want("CONF-01", "one more than allowed", 1,
                                               code="INVALID_TASK"))):
        run_command(bench, "submit", "probe_task", "--delay-ms", "600000", "--max-attempts",
                    str(attempts), expects=[expected])
    run_command(bench, "purge", "--queue", "default", "--yes")


def _submitted_and_seen(bench: Bench, expected: Expected,
                        settings: Mapping[str, str] | None = None) -> None:
    said = run_command(bench, "submit", "probe_task", "--delay-ms", "600000", settings=settings)
    run_command(bench, "get", str(place(said.body, "task_id")), expects=[expected])


CASES = (
    Trial("conformance", "a_bad_setting_names_itself",
          "Variables are given what the contract's table does not allow.",
          ("CONF-02", "CONF-03", "CONF-05"), _a_bad_setting_names_itself,
          needs=("cli", "configuration")),
    Trial("conformance", "good_settings_are_taken",
          "The least of all that is allowed, fractions of seconds, and defaults that show.",
          ("CONF-01", "CONF-04"), _good_settings_are_taken, needs=("cli", "configuration")),
)
