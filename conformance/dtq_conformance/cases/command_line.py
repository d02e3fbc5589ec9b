"""Cases of the command: each explains itself, answers in JSON, and ends with a code that says how
it went."""

from __future__ import annotations

import contextlib
import signal
from concurrent.futures import ThreadPoolExecutor

import psutil

from dtq_conformance import front_tables
from dtq_conformance.bench import READY_LIMIT_S, Bench
from dtq_conformance.exchange import Exchange, Expected, place
from dtq_conformance.front import (
    inspected,
    run_command,
    send,
    start_command,
    unused_port,
    want,
)
from dtq_conformance.operation import Operation
from dtq_conformance.trial import Trial
from dtq_conformance.waiting import WaitedTooLong, wait_for

LATER_MS = "600000"
NOBODY = "0123456789abcdef" * 2
NOWHERE = "redis://127.0.0.1:1/0"


def _each_command_explains_itself(bench: Bench) -> None:
    """Every row of the table, with the options that it names."""
    _side_by_side(bench, [
        ([*words, "--help"], want("CLI-01", "a request for help", 0, says=["usage", *options]))
        for words, options in front_tables.commands().items()])


def _commands_answer_in_json(bench: Bench) -> None:
    """A task is submitted, looked at, listed, cancelled; what is wrong is refused with its code."""
    said = run_command(
        bench, "submit", "probe_task", '{"steps":[],"label":""}', "--delay-ms", LATER_MS,
        "--priority", "7", "--max-attempts", "2", "--task-id", bench.new_id(),
        expects=[want("CLI-03", "a submission", 0, has=["task_id"])])
    task_id = str(place(said.body, "task_id"))
    for words, expected in (
            (["get", task_id], {"status": "pending", "priority": 7, "max_attempts": 2}),
            (["list", "--status", "pending"], {"0.task_id": task_id}),
            (["queue", "stats", "default"], {"depth": 1, "paused": False}),
            (["queue", "stats"], {"0.queue": "default"}),
            (["queue", "pause", "default"], {}), (["queue", "resume", "default"], {}),
            (["dlq", "list"], {}),
            (["cancel", task_id], {"task_id": task_id, "status": "cancelled"})):
        run_command(bench, *words, expects=[want("CLI-03", f"dtq {words[0]}", 0, holds=expected)])
    refused = (
        (["cancel", task_id], "TASK_TERMINAL"), (["get", NOBODY], "TASK_NOT_FOUND"),
        (["cancel", NOBODY], "TASK_NOT_FOUND"), (["retry-dlq", task_id], "NOT_REQUEUEABLE"),
        (["discard-dlq", task_id], "NOT_REQUEUEABLE"),
        (["queue", "stats", "nobodys"], "QUEUE_NOT_FOUND"),
        (["submit", "probe_task", "--priority", "10"], "INVALID_TASK"))
    misused = (["nothing"], ["submit"], ["list", "--limit", "many"], ["get", "a", "b"])
    _side_by_side(bench, [
        *((words, want("CLI-04", f"dtq {words[0]} that is refused", 1, code=code))
          for words, code in refused),
        *((words, want("CLI-03", "wrong usage", 2)) for words in misused)])
    run_command(bench, "queue", "stats", settings={"DTQ_REDIS_URL": NOWHERE}, expects=[
        want("CLI-03", "a command without a Redis", 3)])


def _side_by_side(bench: Bench, asked: list[tuple[list[str], Expected]]) -> None:
    """Commands that change nothing, two at a time: each takes as long as a Python takes to start.
    """
    def run(words: list[str], expected: Expected) -> None:
        run_command(bench, *words, expects=[expected])

    with ThreadPoolExecutor(2) as hands:
        for done in [hands.submit(run, *each) for each in asked]:
            done.result()


def _a_purge_asks_first(bench: Bench) -> None:
    """A purge without an answer, with a no, with a yes, and with --yes."""
    waiting = bench.submit(delay_ms=int(LATER_MS))
    for told, typed in (("without an answer", ""), ("that is answered no", "no\n")):
        for words in (["purge", "--queue", "default"], ["purge-dlq"]):
            run_command(bench, *words, typed=typed, expects=[want(
                "CLI-05", f"a purge {told}", 1)])
    run_command(bench, "get", waiting, expects=[want(
        "CLI-05", "a look at the task after purges that were not confirmed", 0,
        holds={"status": "pending"})])
    purged = run_command(bench, "purge", "--queue", "default", typed="yes\n", expects=[want(
        "CLI-05", "a purge that is answered yes", 0, holds={"purged": 1})])
    _note_purge(bench, purged)
    run_command(bench, "purge-dlq", "--yes", expects=[want(
        "CLI-05", "a purge of the dead letters with --yes", 0, holds={"purged": 0})])


def _note_purge(bench: Bench, exchange: Exchange) -> None:
    """The history has it as the operation that it is."""
    bench.records.append(Operation(
        name="purge", asked_ns=exchange.asked_ns, answered_ns=exchange.answered_ns,
        outcome="ok" if exchange.status == 0 else "unknown"))


def _a_demonstration_leaves_nothing(bench: Bench) -> None:
    """It is started without a Redis, asked how it is, and stopped as by Ctrl-C."""
    port = unused_port()
    demo = start_command(bench, "demo", settings={
        "DTQ_API_PORT": str(port), "DTQ_REDIS_URL": NOWHERE})
    with contextlib.suppress(WaitedTooLong):  # whatever is missing then is judged
        wait_for(lambda: not demo.alive or send(port, "GET", "/ready", None, {})[0] == 200,
                 reason="the demonstration to be ready", limit_s=READY_LIMIT_S, every_s=0.1)
    status, *_ = send(port, "GET", "/health", None, {})
    processes = [psutil.Process(pid) for pid in demo.pids() if psutil.pid_exists(pid)]
    demo.send(signal.SIGINT, asked="terminate")
    with contextlib.suppress(WaitedTooLong):
        demo.wait(READY_LIMIT_S)
        wait_for(lambda: not any(map(_lives, processes)), reason="its processes to be gone",
                 limit_s=READY_LIMIT_S)
    left = [process for process in processes if _lives(process)]
    inspected(bench, demo.name, ["a demonstration"], {
        "health": status, "exit_code": demo.exit_code,
        "processes left": [process.pid for process in left]}, want(
            "CLI-07", "a demonstration without a Redis, stopped as by Ctrl-C", 0,
            holds={"health": 200, "exit_code": 0, "processes left": []}))
    for process in left:  # they have sessions of their own, of which the guard knows nothing
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def _lives(process: psutil.Process) -> bool:
    """Whether it runs; one that only waits for its parent to look does not."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


CASES = (
    Trial("conformance", "each_command_explains_itself",
          "Every command of the table is asked for help.",
          ("CLI-01",), _each_command_explains_itself, needs=("cli",)),
    Trial("conformance", "commands_answer_in_json",
          "Commands that are done, refused, used wrongly, and without a Redis.",
          ("CLI-02", "CLI-03", "CLI-04"), _commands_answer_in_json, needs=("cli",)),
    Trial("conformance", "a_purge_asks_first",
          "Purges that are confirmed, and purges that are not.",
          ("CLI-05", "DLV-01"), _a_purge_asks_first, needs=("cli", "cancel")),
    Trial("conformance", "a_demonstration_leaves_nothing",
          "The demonstration is started without a Redis, and stopped.",
          ("CLI-07",), _a_demonstration_leaves_nothing, needs=("cli",)),
)
