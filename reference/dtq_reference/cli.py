"""The command `dtq`. It talks to Redis. JSON on stdout, messages on stderr.

Exit codes: 0 done, 1 refused, 2 usage or configuration, 3 Redis unreachable.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from typing import Any

import msgspec
import redis.exceptions

from dtq_reference import handlers, settings, worker
from dtq_reference.errors import BrokerUnreachable, DtqError, SettingsError
from dtq_reference.queue import Queue
from dtq_reference.settings import Settings

DONE, REFUSED, USAGE, UNREACHABLE = 0, 1, 2, 3


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    arguments = _parser().parse_args(argv)
    try:
        code: int = arguments.execute(arguments, settings.load())
    except SettingsError as error:
        return _complain(error, USAGE)
    except DtqError as error:
        return _complain(f"{error.code}: {error.message}", REFUSED)
    except (BrokerUnreachable, redis.exceptions.ConnectionError,
            redis.exceptions.TimeoutError) as error:
        return _complain(f"Redis cannot be reached: {error}. Is DTQ_REDIS_URL right?", UNREACHABLE)
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
    listing.add_argument("--limit", type=int, default=100)
    listing.set_defaults(execute=_list)

    dead = commands.add_parser("dlq", help="dead letters").add_subparsers(
        required=True, metavar="COMMAND")
    dead_list = dead.add_parser("list", help="show the dead letters, newest first")
    dead_list.add_argument("--limit", type=int, default=100)
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


def _submit(arguments: argparse.Namespace, known: Settings) -> int:
    try:
        payload = json.loads(arguments.payload)
    except ValueError as error:
        return _complain(f"The payload is not JSON: {error}.", USAGE)
    fields = {name: value for name in ("task_id", "queue", "priority", "max_attempts",
                                       "timeout_ms", "delay_ms")
              if (value := getattr(arguments, name)) is not None}
    queue = Queue(known)
    task_id, state = queue.submit(task_type=arguments.task_type, payload=payload, **fields)
    return _show({"task_id": task_id, "status": state})


def _get(arguments: argparse.Namespace, known: Settings) -> int:
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
    logging.basicConfig(level=known.log_level, stream=sys.stderr,
                        format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    handlers.load_modules(["dtq_reference.demo_tasks", *arguments.tasks])
    worker.run(known, arguments.queue)
    return DONE


def _show(value: Any) -> int:
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value)).decode() + "\n")
    return DONE


def _complain(message: object, code: int) -> int:
    sys.stderr.write(f"dtq: {message}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
