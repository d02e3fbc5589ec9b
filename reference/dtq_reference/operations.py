"""Every operation on the queue, once and without I/O: a generator that yields the `Call`s to send
and is sent their replies. `queue.py` drives it, with a synchronous or an asynchronous client.

Each operation refuses with `DtqError`, and has then changed nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from sys import maxsize
from typing import Any, TypeVar

import msgspec

from dtq_reference import calls
from dtq_reference.calls import Actor, Call
from dtq_reference.errors import DtqError
from dtq_reference.keys import GROUP, Keys
from dtq_reference.settings import Settings
from dtq_reference.task import (
    DeadLetter,
    QueueName,
    Task,
    TaskId,
    TaskRequest,
    WorkerId,
    dead_letter_from,
    request_from,
    task_from,
)

T = TypeVar("T")
Steps = Generator[Call, Any, T]

PAGE = 200
"""How many records one step reads at most."""

STALE_HEARTBEATS = 3
"""An observer says of a worker that it is stale after so many heartbeats without one."""

REFUSALS = {
    "unknown": ("TASK_NOT_FOUND", "There is no task {of!r}; a task's id is 32 lower-case "
                "hexadecimal digits.", ""),
    "terminal": ("TASK_TERMINAL", "Task {of} is {about} already.", "status"),
    "refused": ("NOT_REQUEUEABLE", "Task {of} is {about} and has no dead letter.", "status"),
    "in_progress": ("IDEMPOTENCY_IN_PROGRESS",
                    "The key is that of task {about}, which is not finished.", "task_id"),
    "full": ("QUEUE_FULL", "Queue {of} has {about} unfinished tasks, as many as it may have. "
             "Submit again later.", ""),
}
"""A script's verdict that it did nothing: the code, the sentence about the task or queue that it
is `of`, and which detail it is that the script says `about` it."""


class Submitted(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer to a submission. `duplicate`: the key is that of the finished task `task_id`,
    whose status this is; nothing new was accepted."""

    task_id: str
    status: str
    duplicate: bool = False


class Again(Submitted, frozen=True):
    """The same answer, to a submission whose task was accepted before."""


class QueueStats(msgspec.Struct, frozen=True):
    """A queue. `depth` counts its unfinished tasks, `pending` those in the hands of workers."""

    queue: str
    depth: int
    pending: int
    paused: bool
    retry_scheduled: int
    dlq_depth: int
    workers_active: int


class WorkerView(msgspec.Struct, frozen=True, kw_only=True):
    """A worker as it describes itself; `stale` is what an observer says of a silent one."""

    worker_id: str
    incarnation: str
    status: str = ""
    hostname: str = ""
    started_at: int = 0
    last_heartbeat: int = 0
    heartbeat_interval_s: float = 0
    active_tasks: int = 0
    concurrency: int = 0
    tasks_processed: int = 0
    tasks_failed: int = 0
    tasks_retried: int = 0


class Operations:
    """The operations of one installation."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.keys = Keys(settings.key_prefix)

    def submit(self, **fields: Any) -> Steps[Submitted]:
        """Submit a task; the fields are those of `TaskRequest`. Refused as INVALID_TASK,
        PAYLOAD_TOO_LARGE, IDEMPOTENCY_IN_PROGRESS or QUEUE_FULL."""
        [answer] = yield from self.submit_all([fields])
        if isinstance(answer, DtqError):
            raise answer
        return answer

    def submit_all(self, tasks: Sequence[Any]) -> Steps[list[Submitted | DtqError]]:
        """Submit tasks, each by itself: an answer or a refusal for each, in their order."""
        answers: list[Submitted | DtqError | TaskRequest] = []
        for fields in tasks:
            try:
                answers.append(self._request(fields))
            except DtqError as refusal:
                answers.append(refusal)
        good = [request for request in answers if isinstance(request, TaskRequest)]
        if good:
            replies = iter(calls.read_submit(
                (yield calls.submit(self.keys, self.settings, good))))
        return [_submitted(answer, *next(replies)) if isinstance(answer, TaskRequest) else answer
                for answer in answers]

    def _request(self, fields: Any) -> TaskRequest:
        settings = self.settings
        return request_from(fields, max_payload_bytes=settings.max_payload_bytes,
                            attempts_limit=settings.max_attempts,
                            default_timeout_ms=settings.task_timeout_ms)

    def get(self, task_id: str) -> Steps[Task | None]:
        """The task as it stands, or None when it is not known (never was, or was forgotten)."""
        found = yield from self._tasks([task_id] if _is(TaskId, task_id) else [])
        return found[0] if found else None

    def tasks(self, *, queue: str | None = None, status: str | None = None,
              limit: int = 100) -> Steps[list[Task]]:
        """The newest tasks, newest first, of those that were submitted last."""
        found: dict[str, Task] = {}  # a task that moves on while pages are read comes twice
        start = 0
        while len(found) < limit:
            [ids] = yield calls.read(("ZREVRANGE", self.keys.recent, start, start + PAGE - 1))
            if not ids:
                break
            page = yield from self._tasks(each.decode() for each in ids)
            found |= {task.task_id: task for task in page if queue in (None, task.queue)
                      and status in (None, task.status)}
            start += PAGE
        return list(found.values())[:limit]

    def _tasks(self, task_ids: Iterable[str]) -> Steps[list[Task]]:
        commands = [command for task_id in task_ids
                    for command in (("HGETALL", self.keys.task_prefix + task_id),
                                    ("GET", self.keys.result_prefix + task_id))]
        replies = (yield calls.read(*commands)) if commands else []
        return [task_from(_fields(flat), result)
                for flat, result in zip(replies[::2], replies[1::2], strict=True) if flat]

    def _known(self, task_id: str, *names: str) -> Steps[list[str | None]]:
        """Fields of a task's record; None for each that it has not."""
        if not _is(TaskId, task_id):
            return [None for _ in names]
        [values] = yield calls.read(("HMGET", self.keys.task_prefix + task_id, *names))
        return [value and value.decode() for value in values]

    def _step(self, call: Callable[..., Call], task_id: str, by: Actor, *,
              only_of: str | None = None, **more: Any) -> Steps[str]:
        """Take a step with one task; returns the script's verdict. Refused as `REFUSALS` say."""
        queue, priority = yield from self._known(task_id, "queue", "priority")
        if queue is None or priority is None or only_of not in (None, queue):
            raise refusal("unknown", task_id)
        stream = self.keys.stream(queue, int(priority))
        verdict, about = yield call(self.keys, self.settings, by, task_id, stream, **more)
        if verdict.decode() in REFUSALS:
            raise refusal(verdict.decode(), task_id, about.decode())
        return str(verdict.decode())

    def cancel(self, task_id: str, by: Actor) -> Steps[str]:
        """Cancel a task: `cancelled` when it waited; `requested` when it runs, and then it ends
        as soon as its handler listens or fails. Refused as TASK_NOT_FOUND or TASK_TERMINAL."""
        return self._step(calls.cancel, task_id, by)

    def requeue(self, task_id: str, by: Actor) -> Steps[str]:
        """Give a dead-lettered task a new life. Refused as TASK_NOT_FOUND, NOT_REQUEUEABLE or
        IDEMPOTENCY_IN_PROGRESS."""
        return self._step(calls.requeue, task_id, by)

    def discard(self, task_id: str, by: Actor) -> Steps[None]:
        """Throw the dead letter of a task away; its record stays for the retention time. Refused
        as TASK_NOT_FOUND or NOT_REQUEUEABLE."""
        if _is(TaskId, task_id) and (
                yield calls.discard(self.keys, self.settings, by, task_id=task_id)):
            return
        [status] = yield from self._known(task_id, "status")
        raise refusal("refused", task_id, status) if status else refusal("unknown", task_id)

    def dead_letters(self, limit: int = 100) -> Steps[list[DeadLetter]]:
        """The newest dead letters, newest first."""
        return (yield from self._entries(self.keys.dead_letters, dead_letter_from, limit))

    def dead_letter(self, task_id: str) -> Steps[DeadLetter]:
        """The dead letter of a task. Refused as TASK_NOT_FOUND. An orphan's is looked for."""
        [known] = yield from self._known(task_id, "letter_id")
        letters = yield from self._entries(self.keys.dead_letters, dead_letter_from,
                                           1 if known else self.settings.dlq_maxlen, known or "+")
        for letter in letters:
            if letter.task_id == task_id:
                return letter
        raise DtqError("TASK_NOT_FOUND", f"There is no dead letter of task {task_id!r}.")

    def _entries(self, stream: str, read: Callable[[dict[str, str]], T], limit: int = maxsize,
                 newest: str = "+") -> Steps[list[T]]:
        """What `read` makes of a stream's entries, from the `newest` on, newest first."""
        found: list[T] = []
        while len(found) < limit:
            [page] = yield calls.read(("XREVRANGE", stream, newest, "-", "COUNT",
                                       min(PAGE, limit - len(found))))
            if not page:
                break
            found += [read(_fields(flat)) for _, flat in page]
            newest = "(" + page[-1][0].decode()
        return found

    def purge_dead_letters(self, by: Actor) -> Steps[int]:
        """Throw all dead letters away; returns how many there were."""
        total = 0
        while gone := (yield calls.discard(self.keys, self.settings, by, action="purge_dlq")):
            total += gone
        return total

    def purge_queue(self, queue: str, by: Actor) -> Steps[int]:
        """Cancel all that waits in a queue, one atomic step each, and leave what runs. A queue in
        which nothing is left is forgotten. Returns how many tasks were cancelled."""
        _check_queue(queue)
        [scheduled] = yield calls.read(("ZRANGE", self.keys.schedule, 0, -1))
        waiting = [task_id.decode() for task_id in scheduled]  # of all queues
        for stream in self.keys.streams(queue):
            waiting += yield from self._entries(stream, lambda entry: entry.get("task_id", ""))
        cancelled = 0
        for task_id in waiting:
            with suppress(DtqError):  # it is another queue's, or has ended meanwhile
                verdict = yield from self._step(calls.cancel, task_id, by, only_of=queue,
                                                action="purge", only_waiting=True)
                cancelled += verdict == "cancelled"
        yield calls.forget_queue(self.keys, self.settings, queue)
        return cancelled

    def pause(self, queue: str, by: Actor, *, paused: bool = True) -> Steps[None]:
        """Let no worker take anything from a queue any more; what runs, runs on."""
        _check_queue(queue)
        yield calls.pause(self.keys, self.settings, by, queue, paused=paused)

    def resume(self, queue: str, by: Actor) -> Steps[None]:
        """Let workers take from a queue again."""
        return self.pause(queue, by, paused=False)

    def queues(self) -> Steps[list[QueueStats]]:
        """All queues that were ever used and not forgotten, by name."""
        [names] = yield calls.read(("SMEMBERS", self.keys.queues))
        return (yield from self._stats(sorted(each.decode() for each in names)))

    def queue_stats(self, queue: str) -> Steps[QueueStats]:
        """One queue. Refused as QUEUE_NOT_FOUND."""
        if not _is(QueueName, queue) or not (
                yield calls.read(("SISMEMBER", self.keys.queues, queue)))[0]:
            raise DtqError("QUEUE_NOT_FOUND", f"There is no queue {queue!r}.")
        [found] = yield from self._stats([queue])
        return found

    def _stats(self, queues: Sequence[str]) -> Steps[list[QueueStats]]:
        workers = yield from self.workers()
        active = sum(worker.status not in ("stopped", "stale") for worker in workers)
        found = []
        for queue in queues:
            *counts, paused, waiting, dead = yield calls.read(
                *(("XLEN", stream) for stream in self.keys.streams(queue)),
                *(("XPENDING", stream, GROUP) for stream in self.keys.streams(queue)),
                ("EXISTS", self.keys.paused(queue)), ("HGET", self.keys.schedule_depth, queue),
                ("XLEN", self.keys.dead_letters))
            scheduled = int(waiting or 0)
            found.append(QueueStats(
                queue=queue, depth=sum(counts[:10]) + scheduled, paused=bool(paused),
                pending=sum(map(_held, counts[10:])), retry_scheduled=scheduled, dlq_depth=dead,
                workers_active=active))
        return found

    def workers(self) -> Steps[list[WorkerView]]:
        """All workers that are known, by id, the silent ones among them."""
        [names] = yield calls.read(("SMEMBERS", self.keys.workers))
        return (yield from self._workers(sorted(each.decode() for each in names)))

    def worker(self, worker_id: str) -> Steps[WorkerView]:
        """One worker, also one that has stopped lately. Refused as WORKER_NOT_FOUND."""
        found = yield from self._workers([worker_id] if _is(WorkerId, worker_id) else [])
        if not found:
            raise DtqError("WORKER_NOT_FOUND", f"There is no worker {worker_id!r}.")
        return found[0]

    def _workers(self, worker_ids: Sequence[str]) -> Steps[list[WorkerView]]:
        (seconds, _), *hashes = yield calls.read(
            ("TIME",), *(("HGETALL", self.keys.worker_prefix + each) for each in worker_ids))
        return [_worker(_fields(flat), 1000 * int(seconds)) for flat in hashes if flat]


def _submitted(request: TaskRequest, verdict: str, task_id: str,
               status: str) -> Submitted | DtqError:
    if verdict in REFUSALS:
        return refusal(verdict, request.queue, status if verdict == "full" else task_id)
    if verdict == "again":
        return Again(task_id, status)
    return Submitted(task_id, status, duplicate=verdict == "duplicate")


def refusal(verdict: str, of: str, about: str = "") -> DtqError:
    """The refusal that a verdict of a script stands for, of this task or queue."""
    code, sentence, detail = REFUSALS[verdict]
    return DtqError(code, sentence.format(of=of, about=about), **{detail: about} if detail else {})


def _worker(fields: dict[str, str], now_ms: int) -> WorkerView:
    view = msgspec.convert(fields, WorkerView, strict=False)
    silent_ms = now_ms - view.last_heartbeat
    if view.status != "stopped" and silent_ms > 1000 * STALE_HEARTBEATS * view.heartbeat_interval_s:
        return msgspec.structs.replace(view, status="stale")
    return view


def _held(summary: Any) -> int:
    """How many entries of a stream are in the hands of a worker, from XPENDING's summary."""
    consumers = (summary[3] or []) if summary else []
    return sum(int(count) for name, count in consumers if name != b"released")


def _fields(flat: list[bytes]) -> dict[str, str]:
    """Fields and values that stand one after the other, as HGETALL gives them, as a map."""
    return {name.decode(errors="replace"): value.decode(errors="replace")
            for name, value in zip(flat[::2], flat[1::2], strict=True)}


def _check_queue(queue: str) -> None:
    if not _is(QueueName, queue):
        raise DtqError("INVALID_TASK", f"{queue!r} is not a queue's name: 1 to 64 of a-z, 0-9, _ "
                                       "and -, beginning with a letter or a digit.")


def _is(kind: Any, value: str) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True
