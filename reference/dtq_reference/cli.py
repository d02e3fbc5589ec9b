"""The command `dtq`. It talks to Redis. JSON on stdout, messages on stderr.

Exit codes: 0 done, 1 refused, 2 usage or configuration, 3 Redis unreachable.
"""

from __future__ import annotations

import argparse
import getpass
import logging
import os
import sys
import uuid
from collections.abc import Callable
from typing import Any

import msgspec
import redis.exceptions

from dtq_reference import handlers, logs, settings, worker
from dtq_reference.calls import Actor
from dtq_reference.errors import BrokerUnreachable, DtqError, SettingsError
from dtq_reference.operations import Operations, Steps
from dtq_reference.queue import Queue
from dtq_reference.settings import Settings
from dtq_reference.task import QueueName

DONE, REFUSED, USAGE, UNREACHABLE, INTERRUPTED = 0, 1, 2, 3, 130

DEMO_TASKS = "dtq_reference.demo_tasks"

LIMIT_S = 2.0
"""For how long a command tries to reach Redis."""

Execute = Callable[[argparse.Namespace, Settings], int]
Operate = Callable[[Operations, argparse.Namespace], Steps[Any]]


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    arguments = _parser().parse_args(argv)
    try:
        code: int = arguments.execute(arguments, settings.load())
    except SettingsError as error:
        return _complain(error, USAGE)
    except (BrokerUnreachable, redis.exceptions.ConnectionError,
            redis.exceptions.TimeoutError) as error:
        return _complain(f"Redis cannot be reached: {error} Is DTQ_REDIS_URL right?", UNREACHABLE)
    except DtqError as error:
        if isinstance(error.__cause__, redis.exceptions.ConnectionError):
            return _complain(f"{error.code}: {error.message} Is DTQ_REDIS_URL right?", UNREACHABLE)
        return _complain(f"{error.code}: {error.message}", REFUSED)
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

    def group(name: str, about: str) -> Any:
        return commands.add_parser(name, help=about, description=about).add_subparsers(
            required=True, metavar="COMMAND")

    def command(name: str, about: str, execute: Execute, *positional: str, of: Any = commands,
                **options: dict[str, Any]) -> None:
        added = of.add_parser(name, help=about, description=about)
        for argument in positional:
            added.add_argument(argument)
        for option, details in options.items():
            added.add_argument(f"--{option.replace('_', '-')}", **details)
        added.set_defaults(execute=execute)

    yes = {"action": "store_true", "help": "do not ask"}
    newest = {"type": _limit, "default": 100, "help": "1 to 10,000 (default 100)"}
    modules = {"action": "append", "metavar": "MODULE", "default": [],
               "help": "a module with handlers, beside the demonstration tasks; repeatable"}
    _add_submit(commands.add_parser("submit", help="submit a task and print its id"))
    command("get", "show one task", _get, "task_id")
    command("list", "show the newest tasks, newest first",
            _shows(lambda do, given: do.tasks(queue=given.queue, status=given.status,
                                              limit=given.limit)),
            queue={"help": "only of this queue"}, status={"help": "only in this state"},
            limit=newest)
    command("cancel", "cancel a task; while it runs that is a request", _cancel, "task_id")
    command("list", "show the dead letters, newest first",
            _shows(lambda do, given: do.dead_letters(given.limit)),
            of=group("dlq", "dead letters"), limit=newest)
    command("retry-dlq", "requeue a dead letter", _says(
        "queued", lambda do, given: do.requeue(given.task_id, _actor())), "task_id")
    command("discard-dlq", "throw a dead letter away", _says(
        "discarded", lambda do, given: do.discard(given.task_id, _actor())), "task_id")
    command("purge-dlq", "throw all dead letters away", _purges(
        "all dead letters", lambda do, _: do.purge_dead_letters(_actor())), yes=yes)
    command("purge", "cancel all that waits in a queue", _purges(
        "all that waits in the queue", lambda do, given: do.purge_queue(given.queue, _actor())),
        queue={"required": True}, yes=yes)
    queue = group("queue", "queues")
    command("pause", "let nothing be taken from a queue", _says(
        "paused", lambda do, given: do.pause(given.queue, _actor())), "queue", of=queue)
    command("resume", "let it be taken again", _says(
        "resumed", lambda do, given: do.resume(given.queue, _actor())), "queue", of=queue)
    stats = queue.add_parser("stats", help="show depth and more, of one queue or of all")
    stats.add_argument("queue", nargs="?")
    stats.set_defaults(execute=_shows(
        lambda do, given: do.queue_stats(given.queue) if given.queue else do.queues()))
    command("run", "run a worker in the foreground; SIGTERM drains it", _worker_run,
            of=group("worker", "workers"), queue={"default": "default"}, tasks=modules,
            concurrency={"type": int, "help": "instead of DTQ_WORKER_CONCURRENCY"})
    command("run", "serve the HTTP API in the foreground", _api_run, of=group("api", "the API"),
            tasks={**modules, "help": "a module with handlers: types that none has are refused"})
    command("demo", "run a broker, the API and a worker; Ctrl-C ends all three", _demo)
    return parser


def _add_submit(submit: argparse.ArgumentParser) -> None:
    submit.add_argument("task_type", help="the handler's name, for example echo_task")
    submit.add_argument("payload", nargs="?", default="{}", help="a JSON object (default {})")
    submit.add_argument("--task-id", default=uuid.uuid4().hex,
                        help="32 lower-case hex digits, to be able to send again")
    submit.add_argument("--queue")
    submit.add_argument("--idempotency-key", help="one unfinished task has it at a time")
    submit.add_argument("--priority", type=int, help="0 to 9, 9 first (default 5)")
    submit.add_argument("--max-attempts", type=int, help="default 5; 1 means at most once")
    submit.add_argument("--timeout-ms", type=int, help="time limit of an attempt")
    submit.add_argument("--delay-ms", type=int, help="not before this many milliseconds")
    submit.add_argument("--ttl-seconds", type=float, help="no attempt begins after this time")
    submit.set_defaults(execute=_submit)


def _limit(text: str) -> int:
    limit = int(text)
    if not 1 <= limit <= 10_000:
        raise argparse.ArgumentTypeError(f"{limit} is not a number from 1 to 10,000")
    return limit


def _actor() -> Actor:
    return Actor(f"cli:{getpass.getuser()}")


def _do(known: Settings, operate: Operate, arguments: argparse.Namespace) -> Any:
    queue = Queue(known)
    transport = logging.getLogger("dtq.transport")
    transport.disabled = True  # what becomes of a command is its own last line
    try:
        return queue.do(operate(queue.operations, arguments), limit_s=LIMIT_S)
    finally:
        transport.disabled = False


def _shows(operate: Operate) -> Execute:
    return lambda arguments, known: _show(_do(known, operate, arguments))


def _says(status: str, operate: Operate) -> Execute:
    """A command that is done for one task or queue, and answers with it and its state."""

    def execute(arguments: argparse.Namespace, known: Settings) -> int:
        _do(known, operate, arguments)
        name = "task_id" if "task_id" in arguments else "queue"
        return _show({name: getattr(arguments, name), "status": status})

    return execute


def _purges(what: str, operate: Operate) -> Execute:
    """A command that asks first; no answer is no."""

    def execute(arguments: argparse.Namespace, known: Settings) -> int:
        if not arguments.yes:
            sys.stderr.write(f"dtq: Purge {what}? Answer yes, or give --yes: ")
            sys.stderr.flush()
            if sys.stdin.readline().strip().lower() not in ("y", "yes"):
                return _complain("Nothing was purged.", REFUSED)
        return _show({"purged": _do(known, operate, arguments)})

    return execute


def _submit(arguments: argparse.Namespace, known: Settings) -> int:
    try:
        payload = msgspec.json.decode(arguments.payload.encode())
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        return _complain(f"The payload is not JSON: {error}.", USAGE)
    fields = {name: value for name in ("task_id", "queue", "priority", "max_attempts",
                                       "timeout_ms", "delay_ms", "idempotency_key")
              if (value := getattr(arguments, name)) is not None}
    if arguments.ttl_seconds is not None:
        fields["metadata"] = {"ttl_seconds": arguments.ttl_seconds}
    try:
        return _show(_do(known, lambda do, given: do.submit(
            task_type=given.task_type, payload=payload, **fields), arguments))
    except BrokerUnreachable as error:
        raise BrokerUnreachable(f"{error} To send it again without making it a second task, add "
                                f"--task-id {arguments.task_id}.") from error


def _get(arguments: argparse.Namespace, known: Settings) -> int:
    task = _do(known, lambda do, given: do.get(given.task_id), arguments)
    if task is None:
        return _complain(f"TASK_NOT_FOUND: There is no task {arguments.task_id!r}; a task's id is "
                         "32 lower-case hexadecimal digits.", REFUSED)
    return _show(task)


def _cancel(arguments: argparse.Namespace, known: Settings) -> int:
    state = _do(known, lambda do, given: do.cancel(given.task_id, _actor()), arguments)
    if state == "requested":
        return _complain("CANCEL_REQUESTED: The task runs; it was asked to stop.", REFUSED)
    return _show({"task_id": arguments.task_id, "status": state})


def _worker_run(arguments: argparse.Namespace, known: Settings) -> int:
    if arguments.concurrency is not None:
        known = settings.with_concurrency(known, arguments.concurrency)
    try:
        msgspec.convert(arguments.queue, QueueName)
    except msgspec.ValidationError:
        raise SettingsError(f"--queue is {arguments.queue!r}; a queue's name is 1 to 64 of "
                            "a-z, 0-9, _ and -, and begins with a letter or a digit.") from None
    logs.configure(known)
    handlers.load_modules([DEMO_TASKS, *arguments.tasks])
    worker.run(known, arguments.queue)
    return DONE


def _api_run(arguments: argparse.Namespace, known: Settings) -> int:
    api = _extra("dtq_reference.api", "dtq-contract[api]")
    if arguments.tasks:
        handlers.load_modules([DEMO_TASKS, *arguments.tasks])
    api.run(known, handlers.names() if arguments.tasks else None)
    return DONE


def _demo(_: argparse.Namespace, known: Settings) -> int:
    demo = _extra("dtq_reference.demo", "dtq-contract[api]")
    code: int = demo.run(known, _show)
    return code


def _extra(module: str, extra: str) -> Any:
    """Import what the bare install does not need, or say what to install."""
    try:
        return __import__(module, fromlist=["run"])
    except ImportError as error:
        raise SettingsError(f"This command needs {error.name}: pip install '{extra}'.") from error


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
