"""The command `dtq`. It talks to Redis. JSON on stdout, messages on stderr.

Exit codes: 0 done, 1 refused, 2 usage or configuration, 3 Redis unreachable.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from typing import Any

import msgspec
import redis.exceptions

from dtq_reference import handlers, settings, worker
from dtq_reference.errors import BrokerUnreachable, DtqError, SettingsError
from dtq_reference.queue import Queue
from dtq_reference.settings import Settings
from dtq_reference.task import QueueName, TaskId

DONE, REFUSED, USAGE, UNREACHABLE, INTERRUPTED = 0, 1, 2, 3, 130


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    arguments = _parser().parse_args(argv)
    try:
        code: int = arguments.execute(arguments, settings.load())
    except SettingsError as error:
        return _complain(error, USAGE)
    except DtqError as error:
        return _complain(f"{error.code}: {error.message}",
                         UNREACHABLE if error.code == "BROKER_UNAVAILABLE" else REFUSED)
    except (BrokerUnreachable, redis.exceptions.ConnectionError,
            redis.exceptions.TimeoutError) as error:
        return _complain(f"Redis cannot be reached: {error}. Is DTQ_REDIS_URL right?", UNREACHABLE)
    except redis.exceptions.RedisError as error:
        return _complain(f"Redis refused: {error}", REFUSED)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return _complain(f"What Redis holds there is not the engine's: {error}. "
                         "Is DTQ_KEY_PREFIX right?", REFUSED)
    except KeyboardInterrupt:
        return _complain("Interrupted; what was asked may or may not have happened.", INTERRUPTED)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dtq", description="Work with a task queue on Redis. Settings come from DTQ_* "
        "environment variables, DTQ_REDIS_URL first among them.",
        epilog="Exit codes: 0 done, 1 refused, 2 usage or configuration, 3 Redis unreachable.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    submit = commands.add_parser("submit", help="submit a task and print its id")
    submit.add_argument("task_type", help="the handler's name, for example echo_task")
    submit.add_argument("payload", nargs="?", default="{}", help="a JSON object (default {})")
    submit.add_argument("--task-id", help="32 lower-case hex digits, to be able to send again")
    submit.add_argument("--queue")
    submit.add_argument("--priority", type=int, help="0 to 9, 9 first (default 5)")
    submit.add_argument("--max-attempts", type=int, help="default 5; 1 means at most once")
    submit.add_argument("--timeout-ms", type=int, help="time limit of an attempt")
    submit.add_argument("--delay-ms", type=int, help="not before this many milliseconds")
    submit.set_defaults(execute=_submit)

    get = commands.add_parser("get", help="show one task")
    get.add_argument("task_id")
    get.set_defaults(execute=_get)

    listing = commands.add_parser("list", help="show the newest tasks")
    listing.add_argument("--limit", type=_limit, default=100, help="1 to 10,000 (default 100)")
    listing.set_defaults(execute=_list)

    dead = commands.add_parser("dlq", help="dead letters").add_subparsers(
        required=True, metavar="COMMAND")
    dead_list = dead.add_parser("list", help="show the dead letters, newest first")
    dead_list.add_argument("--limit", type=_limit, default=100, help="1 to 10,000 (default 100)")
    dead_list.set_defaults(execute=_dlq_list)

    work = commands.add_parser("worker", help="workers").add_subparsers(
        required=True, metavar="COMMAND")
    run = work.add_parser("run", help="run a worker in the foreground; SIGTERM drains it")
    run.add_argument("--concurrency", type=int, help="instead of DTQ_WORKER_CONCURRENCY")
    run.add_argument("--queue", default="default")
    run.add_argument("--tasks", action="append", metavar="MODULE", default=[],
                     help="a module with handlers, beside the demonstration tasks; repeatable")
    run.set_defaults(execute=_worker_run)
    return parser


def _limit(text: str) -> int:
    limit = int(text)
    if not 1 <= limit <= 10_000:
        raise argparse.ArgumentTypeError(f"{limit} is not a number from 1 to 10,000")
    return limit


def _submit(arguments: argparse.Namespace, known: Settings) -> int:
    try:
        payload = msgspec.json.decode(arguments.payload.encode())
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        return _complain(f"The payload is not JSON: {error}.", USAGE)
    fields = {name: value for name in ("task_id", "queue", "priority", "max_attempts",
                                       "timeout_ms", "delay_ms")
              if (value := getattr(arguments, name)) is not None}
    queue = Queue(known)
    task_id, state = queue.submit(task_type=arguments.task_type, payload=payload, **fields)
    return _show({"task_id": task_id, "status": state})


def _get(arguments: argparse.Namespace, known: Settings) -> int:
    if not _is(TaskId, arguments.task_id):
        return _complain(f"There is no task {arguments.task_id!r}; a task's id is 32 lower-case "
                         "hexadecimal digits.", REFUSED)
    task = Queue(known).get(arguments.task_id)
    if task is None:
        return _complain(f"There is no task {arguments.task_id}.", REFUSED)
    return _show(task)


def _list(arguments: argparse.Namespace, known: Settings) -> int:
    return _show(Queue(known).recent(arguments.limit))


def _dlq_list(arguments: argparse.Namespace, known: Settings) -> int:
    return _show(Queue(known).dead_letters(arguments.limit))


def _worker_run(arguments: argparse.Namespace, known: Settings) -> int:
    if arguments.concurrency is not None:
        known = settings.with_concurrency(known, arguments.concurrency)
    if not _is(QueueName, arguments.queue):
        raise SettingsError(f"--queue is {arguments.queue!r}; a queue's name is 1 to 64 of "
                            "a-z, 0-9, _ and -, and begins with a letter or a digit.")
    logging.basicConfig(level=known.log_level, stream=sys.stderr,
                        format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for name in ("dtq_reference.demo_tasks", *arguments.tasks):
        _load(name)
    worker.run(known, arguments.queue)
    return DONE


def _load(module: str) -> None:
    try:
        handlers.load_modules([module])
    except SettingsError:
        raise
    except Exception as error:  # whatever a module does at its import
        raise SettingsError(f"The task module {module!r} cannot be imported: "
                            f"{type(error).__name__}: {error}.") from error


def _is(kind: Any, value: str) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


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


if __name__ == "__main__":
    sys.exit(main())
