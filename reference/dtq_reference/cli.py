"""The command `dtq`. It talks to Redis. JSON on stdout, messages on stderr.

Exit codes: 0 done, 1 refused, 2 usage or configuration, 3 Redis unreachable.
"""

from __future__ import annotations

import argparse
import getpass
import inspect
import logging
import os
import sys
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
from redis.exceptions import RedisError

from dtq_reference import settings
from dtq_reference.calls import Actor
from dtq_reference.errors import BrokerUnreachable, DtqError, SettingsError
from dtq_reference.offered import Limit, Offered
from dtq_reference.operations import Steps
from dtq_reference.queue import Queue
from dtq_reference.settings import Settings
from dtq_reference.task import QueueName
from dtq_reference.transport import UNANSWERED

DONE, REFUSED, USAGE, UNREACHABLE, INTERRUPTED = 0, 1, 2, 3, 130

DEMO_TASKS = "dtq_reference.demo_tasks"

LIMIT_S = 2.0
"""For how long a command tries to reach Redis."""


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    try:
        given = vars(_parser().parse_args(argv))
        code: int = given.pop("execute")(settings.load(), **given)
    except SettingsError as error:
        return _complain(error, USAGE)
    except (BrokerUnreachable, DtqError, RedisError) as error:
        if any(isinstance(each, (BrokerUnreachable, *UNANSWERED))
               for each in (error, error.__cause__)):
            again = " To send it again without making it a second task, add --task-id " \
                f"{given['task_id']}." if "task_type" in given else ""
            return _complain(f"Redis cannot be reached: {error} Is DTQ_REDIS_URL right?{again}",
                             UNREACHABLE)
        said = error.code if isinstance(error, DtqError) else "Redis refused"
        return _complain(f"{said}: {error}", REFUSED)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return _complain(f"What Redis holds there is not the engine's: {error}. "
                         "Is DTQ_KEY_PREFIX right?", REFUSED)
    except KeyboardInterrupt:
        return _complain("Interrupted; what was asked may or may not have happened.", INTERRUPTED)
    return code


# What argparse makes of a word --------------------------------------------------------------------

def _json(text: str) -> Any:
    try:
        return msgspec.json.decode(text.encode())
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise SettingsError(f"The payload is not JSON: {error}.") from error


def task_id(text: str) -> str:
    """The id as it was given, or a new one."""
    return text or uuid.uuid4().hex


def limit(text: str) -> int:
    """The number; argparse names this function when it is none."""
    return msgspec.convert(text, Limit, strict=False)


def seconds(text: str) -> dict[str, float]:
    """A time to live as a task's metadata has it."""
    return {"ttl_seconds": float(text)}


# What a command does ------------------------------------------------------------------------------

def _operate(operation: Callable[..., Steps[Any]], known: Settings, **given: Any) -> int:
    """Carry out an operation, a purge only after a yes, and show what it answers."""
    if not given.pop("yes", True):
        sys.stderr.write(f"dtq: {inspect.getdoc(operation)} Answer yes, or give --yes: ")
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            return _complain("Nothing was purged.", REFUSED)
    if "by" in inspect.signature(operation).parameters:
        given["by"] = Actor(f"cli:{getpass.getuser()}")
    # what becomes of a command is its own last line
    logging.getLogger("dtq").addHandler(logging.NullHandler())
    return _show(Queue(known).do(operation(Offered(known), **given), limit_s=LIMIT_S))


def _run_worker(known: Settings, *, tasks: list[str], queue: str = "default",
                concurrency: int | None = None) -> int:
    """Run a worker in the foreground; SIGTERM drains it."""
    from dtq_reference import handlers, logs, worker
    if concurrency is not None:
        known = settings.with_concurrency(known, concurrency)
    try:
        msgspec.convert(queue, QueueName)
    except msgspec.ValidationError:
        raise SettingsError(f"--queue is {queue!r}; a queue's name is 1 to 64 of a-z, 0-9, _ "
                            "and -, and begins with a letter or a digit.") from None
    logs.configure(known)
    handlers.load_modules([DEMO_TASKS, *tasks])
    worker.run(known, queue)
    return DONE


def _run_api(known: Settings, *, tasks: list[str]) -> int:
    """Serve the HTTP API in the foreground. With --tasks, types without a handler are refused."""
    from dtq_reference import handlers
    try:
        from dtq_reference import api
    except ImportError as error:
        raise SettingsError(f"The API needs {error.name}: pip install 'dtq-contract[api]'."
                            ) from error
    handlers.load_modules([DEMO_TASKS, *tasks] if tasks else [])
    api.run(known, handlers.names() if tasks else None)
    return DONE


def _run_demo(known: Settings) -> int:
    """Run a broker, the API and a worker; Ctrl-C ends all three."""
    from dtq_reference import demo
    return demo.run(known, _show)


def _show(value: Any) -> int:
    try:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(value)).decode() + "\n")
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough; nothing is left to flush at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return DONE


def _complain(message: object, code: int) -> int:
    sys.stderr.write(f"dtq: {message}\n")
    return code


# The commands -------------------------------------------------------------------------------------

Commands = dict[str, tuple[Callable[..., Any], str]]
"""What a command does, and its arguments."""

OPERATIONS: Commands = {
    "submit": (Offered.submit, "task_type payload --task-id --queue --idempotency-key --priority "
                               "--max-attempts --timeout-ms --delay-ms --ttl-seconds"),
    "get": (Offered.task, "task_id"),
    "list": (Offered.tasks, "--queue --status --limit"),
    "cancel": (Offered.cancel_task, "task_id"),
    "dlq list": (Offered.dead_letters, "--limit"),
    "retry-dlq": (Offered.requeue_task, "task_id"),
    "discard-dlq": (Offered.discard_task, "task_id"),
    "purge-dlq": (Offered.purge_all_letters, "--yes"),
    "purge": (Offered.purge_all_waiting, "--queue --yes"),
    "queue pause": (Offered.pause_queue, "queue"),
    "queue resume": (Offered.resume_queue, "queue"),
    "queue stats": (Offered.stats, "queue")}

PROCESSES: Commands = {
    "worker run": (_run_worker, "--concurrency --queue --tasks"),
    "api run": (_run_api, "--tasks"),
    "demo": (_run_demo, "")}

ARGUMENTS: dict[str, dict[str, Any]] = {
    "task_type": {"help": "the handler's name, for example echo_task"},
    "payload": {"nargs": "?", "default": {}, "type": _json, "help": "a JSON object (default {})"},
    "--task-id": {"type": task_id, "default": "",
                  "help": "32 lower-case hex digits, to be able to send again"},
    "--idempotency-key": {"help": "one unfinished task has it at a time"},
    "--priority": {"type": int, "help": "0 to 9, 9 first (default 5)"},
    "--max-attempts": {"type": int, "help": "default 5; 1 means at most once"},
    "--timeout-ms": {"type": int, "help": "time limit of an attempt"},
    "--delay-ms": {"type": int, "help": "not before this many milliseconds"},
    "--ttl-seconds": {"type": seconds, "dest": "metadata", "metavar": "SECONDS",
                      "help": "no attempt begins after this time"},
    "--status": {"help": "only in this state"},
    "--limit": {"type": limit, "help": "1 to 10,000 (default 100)"},
    "--yes": {"action": "store_true", "default": False, "help": "do not ask"},
    "--concurrency": {"type": int, "help": "instead of DTQ_WORKER_CONCURRENCY"},
    "--tasks": {"action": "append", "metavar": "MODULE", "default": [],
                "help": "a module with handlers, beside the demonstration tasks; repeatable"},
    "purge --queue": {"required": True},
    "queue stats queue": {"nargs": "?"}}
"""How argparse reads an argument, of any command or of one."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dtq", description="Work with a task queue on Redis. Settings come from DTQ_* "
        "environment variables, DTQ_REDIS_URL first among them.",
        epilog="Exit codes: 0 done, 1 refused, 2 usage or configuration, 3 Redis unreachable.")
    groups = {"": parser.add_subparsers(required=True, metavar="COMMAND")}
    for words, (does, arguments) in (OPERATIONS | PROCESSES).items():
        group, _, name = words.rpartition(" ")
        if group not in groups:
            groups[group] = groups[""].add_parser(group, help=f"dtq {group} --help").add_subparsers(
                required=True, metavar="COMMAND")
        about = (inspect.getdoc(does) or "").split(". ")[0]
        command = groups[group].add_parser(name, help=about, description=about,
                                           argument_default=argparse.SUPPRESS)
        for argument in arguments.split():
            command.add_argument(argument, **ARGUMENTS.get(f"{words} {argument}",
                                                           ARGUMENTS.get(argument, {})))
        command.set_defaults(execute=partial(_operate, does) if words in OPERATIONS else does)
    return parser


if __name__ == "__main__":
    sys.exit(main())
