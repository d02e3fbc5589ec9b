"""The settings: every variable's bad values name the variable and what it accepts."""

from __future__ import annotations

import pytest
from dtq_reference.errors import SettingsError
from dtq_reference.settings import Settings, load, with_concurrency
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

NOT_A_NUMBER = ["", "many", "4.5", "null", "0", "-1", "1" + "0" * 30]
NOT_SECONDS = ["", "soon", "nan", "inf", "0", "-1", "1e300", "null"]
NOT_A_SHARE = ["", "some", "nan", "inf", "-0.1", "null"]

BAD: dict[str, list[str]] = {
    "redis_url": ["", "localhost", "http://localhost", "redis://host:port", "redis://host:99999",
                  "redis://[::1", "redis://host?db=one", "redis://host?colour=red"],
    "key_prefix": ["", "x" * 101, "\udcff:"],
    "worker_concurrency": [*NOT_A_NUMBER, "1001", "\udcff"],
    "worker_id": ["a.b", "a b", "a\n", "ä", "x" * 65],
    "visibility_timeout_s": NOT_SECONDS,
    "heartbeat_interval_s": NOT_SECONDS,
    "reap_interval_s": NOT_SECONDS,
    "scheduler_interval_s": NOT_SECONDS,
    "max_payload_bytes": NOT_A_NUMBER,
    "task_timeout_ms": [*NOT_A_NUMBER, "3600001"],
    "max_attempts": [*NOT_A_NUMBER, "1001"],
    "retry_base_delay": [*NOT_A_SHARE, "86401"],
    "retry_max_delay": [*NOT_A_SHARE, "86401"],
    "retry_jitter": [*NOT_A_SHARE, "1.1"],
    "task_retention_s": NOT_A_NUMBER,
    "result_retention_s": NOT_A_NUMBER,
    "result_max_bytes": [*NOT_A_NUMBER, "63"],
    "drain_timeout_s": [*NOT_A_SHARE, "86401"],
    "dlq_enabled": ["", "yes", "2", "null"],
    "dlq_maxlen": NOT_A_NUMBER,
    "log_level": ["", "info", "LOUD", "INFO\n"],
    "api_host": ["", "x" * 256, "\udcff"],
    "api_port": ["", "http", "-1", "65536", "80.5"],
    "ws_path": ["", "events", "/a b", "/a\n", "/" + "x" * 200],
    "max_queue_depth": NOT_A_NUMBER,
    "idem_ttl_s": NOT_A_NUMBER,
    "api_key": ["\udcff"],
    "log_json": ["", "yes", "2", "null"],
    "worker_metrics_port": ["", "http", "-1", "65536"],
    "signing_key": ["\udcff"],
    "process_pool": ["", "yes", "2", "null"],
}


def test_every_variable_has_bad_values_here_but_the_one_that_takes_any_path() -> None:
    assert set(BAD) == set(Settings.__struct_fields__) - {"witness"}


@pytest.mark.parametrize(("field", "value"),
                         [(field, value) for field, values in BAD.items() for value in values])
def test_a_bad_value_is_refused_and_names_its_variable(field: str, value: str) -> None:
    with pytest.raises(SettingsError, match=rf"^DTQ_{field.upper()} is "):
        load({f"DTQ_{field.upper()}": value})


def test_a_bad_redis_url_is_not_repeated_since_it_may_hold_a_password() -> None:
    for url in ("rediss//:secret@host", "redis://:secret@host:port"):
        with pytest.raises(SettingsError) as refused:
            load({"DTQ_REDIS_URL": url})
        assert "secret" not in str(refused.value)


def test_nothing_set_means_the_defaults_of_the_contract() -> None:
    assert load({"PATH": "/bin", "DTQ_SOMETHING_ELSE": "1"}) == Settings()
    assert Settings().lease_ms == 30_000


def test_values_are_read_and_times_accept_fractions() -> None:
    found = load({"DTQ_REDIS_URL": "rediss://user:word@host:1/2", "DTQ_KEY_PREFIX": "{ä}:",
                  "DTQ_VISIBILITY_TIMEOUT_S": "1.5", "DTQ_HEARTBEAT_INTERVAL_S": "0.25",
                  "DTQ_DLQ_ENABLED": "false", "DTQ_WORKER_CONCURRENCY": "8",
                  "DTQ_DRAIN_TIMEOUT_S": "0"})
    assert (found.redis_url, found.key_prefix, found.lease_ms) == (
        "rediss://user:word@host:1/2", "{ä}:", 1500)
    assert (found.dlq_enabled, found.worker_concurrency, found.drain_timeout_s) == (False, 8, 0)


@pytest.mark.parametrize(("heartbeat_s", "lease_s", "is_allowed"), [
    ("5", "30", True), ("0.3", "1", True), ("0.31", "1", False), ("10", "30", False)])
def test_a_lease_must_survive_two_heartbeats_that_come_late(
        heartbeat_s: str, lease_s: str, is_allowed: bool) -> None:
    given = {"DTQ_HEARTBEAT_INTERVAL_S": heartbeat_s, "DTQ_VISIBILITY_TIMEOUT_S": lease_s}
    if is_allowed:
        load(given)
        return
    with pytest.raises(SettingsError, match=rf"DTQ_HEARTBEAT_INTERVAL_S is {heartbeat_s}.*"
                                            rf"DTQ_VISIBILITY_TIMEOUT_S \({lease_s} s\)"):
        load(given)


@pytest.mark.parametrize("concurrency", [0, -1, 1001])
def test_a_bad_concurrency_of_the_command_line_is_named(concurrency: int) -> None:
    with pytest.raises(SettingsError, match=f"--concurrency is {concurrency}"):
        with_concurrency(Settings(), concurrency)
    assert with_concurrency(Settings(), 1000).worker_concurrency == 1000


def test_no_part_of_a_password_is_repeated_wherever_it_breaks_the_url() -> None:
    for password in ("hun/ter2", "hun?ter2", "hun#ter2", "hun[ter2", "hunter2@ter:x"):
        for url in (f"redis://:{password}@host", f"redis://user:{password}@host:port/0",
                    f"redis+cluster://:{password}@host:port"):
            try:
                load({"DTQ_REDIS_URL": url, "DTQ_KEY_PREFIX": "{x}:"})
            except SettingsError as error:
                assert "hun" not in str(error)
                assert "ter2" not in str(error)


WORDS = st.text(st.characters(), max_size=12) | st.sampled_from([
    "0", "1", "-1", "1e400", "nan", "inf", "true", "false", "null", "[]", "{}", "0x10", "1_000",
    "٣", " 1", "1 ", "\x00", "\udcff", "9" * 400, "redis://", "redis://h", "rediss://h?ssl_x=1",
    "redis+cluster://", "redis+cluster://a:1,b:2", "unix:///x", "unix://", "redis://[::1]:1/x",
    "redis://h/9?db=1&socket_timeout=x", "redis://%zz@h", "redis://h:1?max_connections=-1"])


@given(st.dictionaries(
    st.sampled_from([f"DTQ_{name.upper()}" for name in Settings.__struct_fields__]),
    WORDS, max_size=4), st.sampled_from(["", "redis://:hunter2@", "redis+cluster://u:hunter2@"]))
@hypothesis_settings(deadline=None, max_examples=200)
def test_whatever_is_set_it_is_taken_or_refused_by_a_variables_name_and_no_secret_is_shown(
        environment: dict[str, str], secret_url: str) -> None:
    if secret_url:
        environment["DTQ_REDIS_URL"] = secret_url + environment.get("DTQ_REDIS_URL", "")
    environment |= {"DTQ_API_KEY": "hunter2" + environment.get("DTQ_API_KEY", ""),
                    "DTQ_SIGNING_KEY": "hunter2" + environment.get("DTQ_SIGNING_KEY", "")}
    try:
        load(environment)
    except SettingsError as error:
        names = [f"DTQ_{name.upper()}" for name in Settings.__struct_fields__]
        assert str(error).partition(" ")[0] in names
        assert "hunter2" not in str(error)
        str(error).encode()
