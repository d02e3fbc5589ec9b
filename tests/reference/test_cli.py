"""The command `dtq`: JSON on stdout, messages on stderr, and exit codes that mean something."""

from __future__ import annotations

import io
import json
import logging
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import psutil
import pytest
from dtq_conformance.broker import free_port
from dtq_conformance.waiting import wait_for
from dtq_reference import cli
from dtq_reference.cli import DONE, REFUSED, UNREACHABLE, USAGE

from tests.reference.engine import Engine, failed

TASK_ID = "0123456789abcdef" * 2
DEEP = '{"a":' * 10_000 + "1" + "}" * 10_000


class Dtq:
    """The command, called in this process with an installation's environment."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self._capfd = capfd

    def __call__(self, *arguments: str) -> tuple[int, Any, str]:
        """Exit code, what stdout holds as JSON (None when it is empty), and stderr."""
        self._capfd.readouterr()
        try:
            code = cli.main(list(arguments))
        except SystemExit as ended:
            code = int(ended.code or 0)
        out, err = self._capfd.readouterr()
        return code, json.loads(out) if out else None, err


@pytest.fixture
def dtq(engine: Engine, monkeypatch: pytest.MonkeyPatch,
        capfd: pytest.CaptureFixture[str]) -> Dtq:
    monkeypatch.setenv("DTQ_REDIS_URL", engine.settings.redis_url)
    monkeypatch.setenv("DTQ_KEY_PREFIX", engine.keys.prefix)
    monkeypatch.setattr(logging.root, "handlers", list(logging.root.handlers))
    return Dtq(capfd)


def is_a_sentence(message: str) -> bool:
    """One line that says who speaks; no traceback."""
    return message.startswith("dtq: ") and message.count("\n") == 1


# Done -------------------------------------------------------------------------------------------

def test_a_submitted_task_is_shown_and_listed(engine: Engine, dtq: Dtq) -> None:
    code, answer, err = dtq("submit", "echo_task", '{"to": "ü"}', "--task-id", TASK_ID,
                            "--queue", "mail", "--priority", "9", "--max-attempts", "2",
                            "--timeout-ms", "500")
    assert (code, answer, err) == (DONE, {"task_id": TASK_ID, "status": "queued"}, "")
    code, task, err = dtq("get", TASK_ID)
    assert (code, err) == (DONE, "")
    assert (task["task_id"], task["payload"], task["queue"], task["priority"],
            task["max_attempts"], task["timeout_ms"], task["status"]) == (
        TASK_ID, {"to": "ü"}, "mail", 9, 2, 500, "queued")
    assert dtq("list") == (DONE, [task], "")


def test_a_delayed_submission_is_pending_and_a_repeated_one_is_answered_alike(
        engine: Engine, dtq: Dtq) -> None:
    for _ in range(2):
        assert dtq("submit", "echo_task", "--delay-ms", "60000", "--task-id", TASK_ID) == (
            DONE, {"task_id": TASK_ID, "status": "pending"}, "")
    assert len(engine.tasks()) == 1


def test_dead_letters_are_listed_newest_first_and_limited(engine: Engine, dtq: Dtq) -> None:
    worker = engine.worker()
    for _ in range(2):
        engine.submit()
        engine.settle(worker, failed(engine.take_one(worker), retryable=False))
    code, letters, err = dtq("dlq", "list")
    assert (code, err) == (DONE, "")
    assert [letter["task_id"] for letter in letters] == engine.letters()[::-1]
    assert dtq("dlq", "list", "--limit", "1")[1] == letters[:1]
    assert len(dtq("list", "--limit", "1")[1]) == 1


def test_an_empty_installation_lists_nothing(dtq: Dtq) -> None:
    assert dtq("list") == (DONE, [], "")
    assert dtq("dlq", "list") == (DONE, [], "")


# Refused ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("task_id", [TASK_ID, "", "x", "*", TASK_ID + "\n", "\udcff", "../etc"])
def test_an_unknown_task_is_said_to_be_unknown(dtq: Dtq, task_id: str) -> None:
    code, out, err = dtq("get", task_id)
    assert (code, out) == (REFUSED, None)
    assert "There is no task" in err
    assert is_a_sentence(err)


@pytest.mark.parametrize(("arguments", "field"), [
    (["", "{}"], "task_type"), (["x" * 201], "task_type"), (["\udcff"], "task_type"),
    (["t", "[]"], "payload"), (["t", '"text"'], "payload"), (["t", "null"], "payload"),
    (["t", "5"], "payload"), (["t", "--task-id", TASK_ID.upper()], "task_id"),
    (["t", "--task-id", "5"], "task_id"), (["t", "--queue", "A"], "queue"),
    (["t", "--queue", ""], "queue"), (["t", "--queue", "a\n"], "queue"),
    (["t", "--queue", "\udcff"], "queue"), (["t", "--priority", "10"], "priority"),
    (["t", "--priority", "-1"], "priority"), (["t", "--max-attempts", "0"], "max_attempts"),
    (["t", "--max-attempts", "11"], "max_attempts"),
    (["t", "--max-attempts", "9" * 40], "max_attempts"),
    (["t", "--timeout-ms", "0"], "timeout_ms"), (["t", "--timeout-ms", "3600001"], "timeout_ms"),
    (["t", "--delay-ms", "-1"], "delay_ms"), (["t", "--delay-ms", "9" * 30], "delay_ms")])
def test_a_submission_with_a_field_outside_its_limits_is_refused_and_nothing_is_kept(
        engine: Engine, dtq: Dtq, arguments: list[str], field: str) -> None:
    code, out, err = dtq("submit", *arguments)
    assert (code, out) == (REFUSED, None)
    assert err.startswith(f"dtq: INVALID_TASK: {field}")
    assert is_a_sentence(err)
    assert engine.dump() == {}


def test_a_payload_that_is_too_large_is_refused_with_a_code_of_its_own(
        engine: Engine, dtq: Dtq, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DTQ_MAX_PAYLOAD_BYTES", "10")
    code, _, err = dtq("submit", "t", '{"a":"12345"}')
    assert code == REFUSED
    assert err == "dtq: PAYLOAD_TOO_LARGE: payload has 13 bytes; at most 10 are allowed.\n"
    assert engine.dump() == {}


@pytest.mark.slow
def test_what_redis_refuses_is_said_and_nothing_is_kept(engine: Engine, dtq: Dtq) -> None:
    engine.redis.config_set("maxmemory", 1)
    try:
        code, out, err = dtq("submit", "t")
    finally:
        engine.redis.config_set("maxmemory", 0)
    assert (code, out) == (REFUSED, None)
    assert "maxmemory" in err
    assert is_a_sentence(err)
    assert engine.dump() == {}


def test_a_key_of_another_type_is_not_the_engines(engine: Engine, dtq: Dtq) -> None:
    engine.redis.set(engine.keys.task_prefix + TASK_ID, "a string")
    for arguments in (["get", TASK_ID], ["submit", "t", "--task-id", TASK_ID]):
        code, _, err = dtq(*arguments)
        assert (code, is_a_sentence(err)) == (REFUSED, True)
        assert "WRONGTYPE" in err


def test_a_record_that_is_not_the_engines_is_said_not_to_be(engine: Engine, dtq: Dtq) -> None:
    task_id = engine.submit()
    engine.redis.hset(engine.keys.task_prefix + task_id, "priority", b"\xff")
    code, _, err = dtq("get", task_id)
    assert (code, is_a_sentence(err)) == (REFUSED, True)
    assert "is not the engine's" in err


# Administration ---------------------------------------------------------------------------------

def test_a_waiting_task_is_cancelled_and_a_running_one_is_asked(engine: Engine, dtq: Dtq) -> None:
    task_id = engine.submit()
    assert dtq("cancel", task_id)[:2] == (DONE, {"task_id": task_id, "status": "cancelled"})
    code, _, err = dtq("cancel", task_id)
    assert (code, is_a_sentence(err)) == (REFUSED, True)
    assert "TASK_TERMINAL" in err
    running = engine.submit()
    engine.take_one(engine.worker())
    assert "CANCEL_REQUESTED" in dtq("cancel", running)[2]
    assert "TASK_NOT_FOUND" in dtq("cancel", TASK_ID)[2]


def test_a_dead_letter_is_requeued_or_discarded_and_all_are_purged(
        engine: Engine, dtq: Dtq) -> None:
    worker = engine.worker()
    ids = [engine.submit() for _ in range(3)]
    for _ in ids:
        engine.settle(worker, failed(engine.take_one(worker), retryable=False))
    assert dtq("retry-dlq", ids[0])[:2] == (DONE, {"task_id": ids[0], "status": "queued"})
    assert "NOT_REQUEUEABLE" in dtq("retry-dlq", ids[0])[2]
    assert dtq("discard-dlq", ids[1])[:2] == (DONE, {
        "task_id": ids[1], "status": "dead_lettered"})
    assert dtq("purge-dlq", "--yes")[:2] == (DONE, {"purged": 1})
    assert engine.letters() == []


def test_a_purge_asks_and_no_answer_is_no(
        engine: Engine, dtq: Dtq, monkeypatch: pytest.MonkeyPatch) -> None:
    task_id = engine.submit()
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    code, out, err = dtq("purge", "--queue", "default")
    assert (code, out) == (REFUSED, None)
    assert "Nothing was purged" in err
    assert engine.status(task_id) == "queued"
    monkeypatch.setattr("sys.stdin", io.StringIO("yes\n"))
    assert dtq("purge", "--queue", "default")[:2] == (DONE, {"purged": 1})
    assert engine.status(task_id) == "cancelled"


def test_a_queue_is_paused_resumed_and_counted(engine: Engine, dtq: Dtq) -> None:
    engine.submit()
    assert dtq("queue", "pause", "default")[:2] == (DONE, {"queue": "default", "paused": True})
    stats = dtq("queue", "stats", "default")[1]
    assert (stats["depth"], stats["paused"]) == (1, True)
    assert dtq("queue", "resume", "default")[0] == DONE
    assert [each["paused"] for each in dtq("queue", "stats")[1]] == [False]
    assert "QUEUE_NOT_FOUND" in dtq("queue", "stats", "nobodys")[2]


def test_each_destructive_command_is_audited_with_who_gave_it(engine: Engine, dtq: Dtq) -> None:
    task_id = engine.submit()
    dtq("queue", "pause", "default")
    dtq("cancel", task_id)
    audited = [(fields[b"action"], fields[b"actor"].startswith(b"cli:"))
               for _, fields in engine.redis.xrange(engine.keys.audit)]
    assert audited == [(b"pause", True), (b"cancel", True)]


def test_a_key_a_time_to_live_and_filters(engine: Engine, dtq: Dtq) -> None:
    first = dtq("submit", "echo_task", "--idempotency-key", "k", "--ttl-seconds", "60")[1]
    code, _, err = dtq("submit", "echo_task", "--idempotency-key", "k")
    assert (code, "IDEMPOTENCY_IN_PROGRESS" in err) == (REFUSED, True)
    assert dtq("get", first["task_id"])[1]["metadata"] == {"ttl_seconds": 60}
    assert [task["task_id"] for task in dtq("list", "--status", "queued")[1]] == [first["task_id"]]
    assert dtq("list", "--queue", "mail")[1] == []


@pytest.mark.slow
def test_the_demo_starts_a_broker_an_api_and_a_worker_and_leaves_nothing(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-m", "dtq_reference.cli", "demo"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          env={**os.environ, "TMPDIR": str(tmp_path)}) as demo:
        assert demo.stdout is not None
        addresses = json.loads(b"".join(iter(demo.stdout.readline, b"}\n")) + b"}")
        children = psutil.Process(demo.pid).children(recursive=True)
        body = json.dumps({"task_type": "echo_task", "payload": {"hello": "world"}}).encode()
        request = urllib.request.Request(addresses["api"] + "/tasks", body,
                                         {"Content-Type": "application/json"})
        task_id = json.load(urllib.request.urlopen(request))["task_id"]

        def result() -> Any:
            return json.load(urllib.request.urlopen(
                f"{addresses['api']}/tasks/{task_id}"))["result"]

        assert wait_for(result, reason="the result", limit_s=20) == {"hello": "world"}
        demo.send_signal(signal.SIGINT)
        assert demo.wait(30) == 0
    assert psutil.wait_procs(children, timeout=5)[1] == []
    assert list(tmp_path.iterdir()) == []


# Usage and configuration ------------------------------------------------------------------------

@pytest.mark.parametrize("payload", [
    "", "{", "text", '{"a": NaN}', '{"a": 1e999}', '{"a": Infinity}', '{"a": "\\ud800"}',
    "\udcff", DEEP], ids=lambda payload: ascii(payload[:20]))
def test_a_payload_that_is_not_json_is_a_matter_of_usage(
        engine: Engine, dtq: Dtq, payload: str) -> None:
    code, out, err = dtq("submit", "t", payload)
    assert (code, out) == (USAGE, None)
    assert err.startswith("dtq: The payload is not JSON: ")
    assert is_a_sentence(err)
    assert engine.dump() == {}


@pytest.mark.parametrize("arguments", [
    [], ["frobnicate"], ["submit"], ["get"], ["dlq"], ["worker"], ["list", "--limit", "0"],
    ["list", "--limit", "-1"], ["list", "--limit", "10001"], ["list", "--limit", "many"],
    ["dlq", "list", "--limit", "0"], ["dlq", "list", "--limit", "-1"],
    ["submit", "t", "--priority", "high"], ["submit", "t", "--delay-ms", "1.5"]])
def test_a_command_that_is_not_understood_ends_with_the_usage(
        dtq: Dtq, arguments: list[str]) -> None:
    code, out, err = dtq(*arguments)
    assert (code, out) == (USAGE, None)
    assert err.startswith("usage: dtq")


def test_a_bad_setting_ends_every_command_and_names_the_variable(
        dtq: Dtq, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DTQ_VISIBILITY_TIMEOUT_S", "soon")
    for arguments in (["list"], ["get", TASK_ID], ["submit", "t"], ["dlq", "list"],
                      ["worker", "run"]):
        code, out, err = dtq(*arguments)
        assert (code, out) == (USAGE, None)
        assert err.startswith("dtq: DTQ_VISIBILITY_TIMEOUT_S is 'soon'")


@pytest.mark.parametrize(("arguments", "named"), [
    (["--concurrency", "0"], "--concurrency is 0"), (["--queue", "A"], "--queue is 'A'"),
    (["--queue", "\udcff"], "--queue is"), (["--tasks", "no_such_module"], "'no_such_module'"),
    (["--tasks", ""], "''"), (["--tasks", ".relative"], "'.relative'"),
    (["--tasks", "tests.reference.breaks_at_import"], "ZeroDivisionError")])
def test_a_worker_that_cannot_run_as_asked_does_not_start(
        dtq: Dtq, arguments: list[str], named: str) -> None:
    code, out, err = dtq("worker", "run", *arguments)
    assert (code, out) == (USAGE, None)
    assert named in err
    assert is_a_sentence(err)


# Out of reach -----------------------------------------------------------------------------------

@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["get", TASK_ID], ["list"], ["dlq", "list"],
                                       ["submit", "t"]])
def test_a_redis_that_cannot_be_reached_is_said(
        dtq: Dtq, monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    held, port = free_port()
    monkeypatch.setenv("DTQ_REDIS_URL", f"redis://127.0.0.1:{port}")
    monkeypatch.setenv("DTQ_TASK_RETENTION_S", "1")  # a submission is sent again no longer
    code, out, err = dtq(*arguments)
    if held is not None:
        held.close()
    assert (code, out) == (UNREACHABLE, None)
    assert "DTQ_REDIS_URL" in err
    assert ("add --task-id" in err) == (arguments[0] == "submit")
    assert is_a_sentence(err)


def test_a_wrong_password_is_said_and_not_repeated(
        engine: Engine, dtq: Dtq, monkeypatch: pytest.MonkeyPatch) -> None:
    url = engine.settings.redis_url.replace("redis://", "redis://somebody:secret@")
    monkeypatch.setenv("DTQ_REDIS_URL", url)
    code, out, err = dtq("list")
    assert (code, out) == (UNREACHABLE, None)
    assert "password" in err
    assert "secret" not in err


# As a process -----------------------------------------------------------------------------------

def test_the_command_is_installed_and_ends_quietly_when_its_reader_has_seen_enough(
        engine: Engine) -> None:
    for _ in range(100):
        engine.submit(payload={"x": "y" * 2000})
    environment = {**os.environ, "DTQ_REDIS_URL": engine.settings.redis_url,
                   "DTQ_KEY_PREFIX": engine.keys.prefix}
    command = Path(sys.executable).with_name("dtq")
    process = subprocess.Popen([command, "list"], env=environment, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.read(1) == b"["
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    assert process.wait(20) == DONE


def test_neither_the_command_nor_a_worker_loads_what_only_the_api_needs() -> None:
    code = ("import sys; from dtq_reference import cli, demo, demo_tasks, worker; "
            "print([name for name in ('fastapi', 'uvicorn', 'pydantic', 'prometheus_client', "
            "'websockets') if name in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
