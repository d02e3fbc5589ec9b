"""The bench: one target in one lab, as a case or a scenario works it.

Everything that is asked of the target goes through here and is recorded with its outcome, so
that a trial is a list of plain steps and the history is complete whatever the trial does.
"""

from __future__ import annotations

import contextlib
import random
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from dtq_conformance import plan
from dtq_conformance.broker import last_line
from dtq_conformance.history import Fault, Record, Stall, Timing, Witness
from dtq_conformance.keyspace import KeySpace
from dtq_conformance.lab import Lab, LabProcess
from dtq_conformance.operation import Operation, Refused, answer_of, outcome_of
from dtq_conformance.target import (
    TERMINAL,
    Accepted,
    ListsDeadLetters,
    ShowsReadiness,
    ShowsTasks,
    Site,
    Submission,
    Target,
    TargetKind,
    TaskView,
    faults_in,
    lacks_of,
)
from dtq_conformance.waiting import WaitedTooLong, let_pass, wait_for

UPSETS_LIMIT = 4
"""How many recovery times are waited in all for a target whose workers die again and again."""

READY_LIMIT_S = 20.0
"""How long a worker may take to be ready on a crowded machine."""
LOOKS_AT_ONCE = 100
"""How many tasks are looked at between two pauses, so that watching does not disturb the work."""


class TargetFault(Exception):
    """The target's answer is not what the protocol asks for, so nothing can be judged."""


class Worker:
    """A worker process of the target; `name` is also its worker id, unless it was started as the
    namesake of another."""

    def __init__(self, process: LabProcess, concurrency: int, worker_id: str) -> None:
        self.process = process
        self.name = process.name
        self.pid = process.pid
        self.concurrency = concurrency
        self.worker_id = worker_id


class Bench:
    """Works one target and keeps the records of it."""

    def __init__(self, lab: Lab, kind: TargetKind, timing: Timing, seed: int,
                 settings: Mapping[str, str] | None = None) -> None:
        self.lab = lab
        self.settings = dict(settings or {})
        self.timing = timing
        self.random = random.Random(seed)
        self.records: list[Record] = []
        self.workers: list[Worker] = []
        self.submissions: dict[str, Submission] = {}
        self._keyspace = KeySpace(lab.broker.connect(), lab.broker.prefix)
        self._kind = kind
        self.target = self.open_target(lab.broker.url)
        self.last_looks: dict[str, dict[str, Any]] = {}
        self._not_new: set[str] = set()

    def close(self) -> None:
        """Let go of connections."""
        self.target.close()
        self._keyspace.client.close()

    def open_target(self, broker_url: str, *, prefix: str = "", **settings: str) -> Target:
        """The target as another client, or another installation, if a `prefix` is given."""
        target = self._kind.open(Site(broker_url, prefix or self.lab.broker.prefix,
            self.lab.witness, self.timing, {**self.settings, **settings}))
        if lacks := lacks_of(target):
            raise TargetFault(f"What {self._kind.name}'s open() returned, a "
                              f"{type(target).__name__}, has no {' and no '.join(lacks)}.")
        return target

    @property
    def has_schema(self) -> bool:
        """Whether the broker's keys can be read: the target claims the contract's schema."""
        return "redis-schema" in self._kind.claims

    @property
    def keyspace(self) -> KeySpace:
        """The keys of the contract's schema, of a target that claims it. A trial that cannot do
        without them says so in its `needs`."""
        if not self.has_schema:
            raise TargetFault(f"This trial reads the broker's keys, and {self._kind.name} does "
                              "not claim redis-schema.")
        return self._keyspace

    # ------------------------------------------------------------ asking the target

    def new_id(self) -> str:
        """A task id, drawn from the run's seed."""
        return f"{self.random.getrandbits(128):032x}"

    def submit(self, *steps: dict[str, Any], label: str = "", task_id: str | None = None,
               through: Target | None = None, **fields: Any) -> str:
        """Submit a probe task with these steps; returns its id, whatever the outcome was.

        `through` is another client of the target, one whose link a fault lies on.
        """
        submission = Submission(task_id=task_id or self.new_id(),
                                payload={"steps": list(steps), "label": label}, **fields)
        self.submissions.setdefault(submission.task_id, submission)
        target = through or self.target
        answer = self._ask("submit", submission.task_id, lambda: target.submit(submission),
                           msgspec.to_builtins(submission))
        if answer is not None:
            self._not_new.discard(submission.task_id)
        elif submission.task_id not in self.last_looks:
            self._not_new.add(submission.task_id)
        return submission.task_id

    def _ask(self, name: str, task_id: str | None, call: Callable[[], Any],
             request: dict[str, Any] | None = None) -> dict[str, Any] | None:
        """Ask the target for something and record its answer; returns None if it surely did
        nothing, which is also what a duplicate's submission did."""
        asked_ns = time.monotonic_ns()
        error: Exception | None = None
        answer: dict[str, Any] = {}
        try:
            said = call()
            if isinstance(said, Accepted):
                answer = msgspec.to_builtins(said)
            elif said is not None:
                answer = {"said": said}
        except Exception as raised:  # whatever it was, its outcome is recorded
            error = raised
            answer = answer_of(error)
        self._record(name, task_id, asked_ns, request or {}, answer, error)
        return None if isinstance(error, Refused) or answer.get("duplicate") else answer

    def submit_many(self, count: int, *steps: dict[str, Any], **fields: Any) -> list[str]:
        """Submit several alike."""
        return [self.submit(*steps, **fields) for _ in range(count)]

    def cancel(self, task_id: str) -> None:
        """Cancel a task."""
        self._demand("cancel", task_id)

    def pause(self) -> None:
        """Pause the queue."""
        self._demand("pause")

    def resume(self) -> None:
        """Resume the queue."""
        self._demand("resume")

    def purge(self) -> None:
        """Cancel all that waits in the queue."""
        self._demand("purge")

    def requeue(self, task_id: str) -> None:
        """Give a dead-lettered task a new life, after the last look at its old one."""
        self.look(task_id)
        self._demand("requeue", task_id)
        self.last_looks.pop(task_id, None)

    def discard(self, task_id: str) -> None:
        """Throw the dead letter of a task away."""
        self._demand("discard", task_id)

    def purge_dead_letters(self) -> None:
        """Throw all dead letters away."""
        self._demand("purge_dead_letters")

    def _demand(self, name: str, *task_id: str) -> None:
        ability = getattr(self.target, name, None)
        if not callable(ability):
            raise TargetFault(f"This trial asks the target to {name}, which {self._kind.name} "
                              "cannot. Do not claim what it is for.")
        self._ask(name, task_id[0] if task_id else None, lambda: ability(*task_id))

    def look(self, task_id: str, *, always: bool = True) -> TaskView | None:
        """Look at a task. Recorded `always`, or only if something has changed since the last.

        Of a target that does not show its tasks a `watch` is recorded: until then the witness
        file was watched, which is all that there is.
        """
        asked_ns = time.monotonic_ns()
        target = self.target
        if not isinstance(target, ShowsTasks):
            if always:
                self._record("watch", task_id, asked_ns, {}, {}, None)
            return None
        error: Exception | None = None
        view: TaskView | None = None
        try:
            view = target.look(task_id)
        except Exception as raised:
            error = raised
        faults = faults_in(view, task_id=task_id)
        if faults:
            raise TargetFault(f"look at {task_id}: {'; '.join(faults)}.")
        answer = answer_of(error) if error else {} if view is None else msgspec.to_builtins(view)
        if always or error or answer != self.last_looks.get(task_id):
            self._record("look", task_id, asked_ns, {}, answer, error)
            self.last_looks[task_id] = answer
        return view

    def ask_dead_letters(self) -> None:
        """Ask for all dead letters, of a target that can list them."""
        if not isinstance(self.target, ListsDeadLetters):
            return
        asked_ns = time.monotonic_ns()
        try:
            letters = [msgspec.to_builtins(letter) for letter in self.target.dead_letters()]
        except Exception as error:
            self._record("dead_letters", None, asked_ns, {}, answer_of(error), error)
            return
        self._record("dead_letters", None, asked_ns, {}, {"letters": letters}, None)

    def _record(self, name: str, task_id: str | None, asked_ns: int, request: dict[str, Any],
                answer: dict[str, Any], error: Exception | None) -> None:
        self.records.append(Operation(
            name=name, task_id=task_id, asked_ns=asked_ns, answered_ns=time.monotonic_ns(),
            outcome=outcome_of(error), request=request, answer=answer))

    # ------------------------------------------------------------ workers

    def start_worker(self, concurrency: int = 4, *, broker_url: str | None = None,
                     worker_id: str | None = None, **settings: str) -> Worker:
        """Start a worker process; it need not be ready when this returns. A given `worker_id` is
        one that another process has or had; `settings` are DTQ_ variables of its own."""
        name = f"worker-{len(self.workers) + 1}"
        worker_id = worker_id or name
        command = self.target.worker(worker_id, concurrency, broker_url=broker_url)
        process = self.lab.start(name, command.argv, role="worker",
                                 environment={
                                     "DTQ_WITNESS": str(self.lab.witness),
                                     "DTQ_WORKER_ID": worker_id, **command.environment, **settings},
                                 concurrency=concurrency)
        worker = Worker(process, concurrency, worker_id)
        self.workers.append(worker)
        return worker

    def start_workers(self, count: int, concurrency: int = 4) -> list[Worker]:
        """Start several workers of the same concurrency."""
        return [self.start_worker(concurrency) for _ in range(count)]

    def living(self) -> list[Worker]:
        """The workers whose process has not ended."""
        return [worker for worker in self.workers if worker.process.alive]

    def await_ready(self, worker: Worker) -> None:
        """Wait until a worker has started up or ended, of a target that shows it. One that has
        executed something has started up, whatever the target shows of it later."""
        target = self.target
        if isinstance(target, ShowsReadiness):
            wait_for(lambda: target.is_ready(worker.worker_id) or not worker.process.alive
                     or any(line.pid == worker.pid for line in self.lab.witness_lines()),
                     reason=f"{worker.name} to be ready", limit_s=READY_LIMIT_S)

    def worker_of(self, pid: int) -> Worker:
        """The newest worker with this process id, its own or that of a child that executes."""
        names = {line.worker_id for line in self.lab.witness_lines() if line.pid == pid}
        for worker in reversed(self.workers):
            if worker.pid == pid or worker.name in names:
                return worker
        raise KeyError(f"no worker has pid {pid}, and none of their names stands beside it in the "
                       "witness file")

    def stop_workers(self) -> None:
        """Ask all living workers to stop, and wait until they have; kill one that does not."""
        living = self.living()
        for worker in living:
            worker.process.resume()
            with contextlib.suppress(WaitedTooLong):  # then it is asked all the same, and judged
                self.await_ready(worker)
            worker.process.terminate()
        for worker in living:
            self._await_stop(worker)

    def _await_stop(self, worker: Worker) -> None:
        limit_s = self.timing.drain_ms / 1000 + READY_LIMIT_S
        try:
            worker.process.wait(limit_s)
        except WaitedTooLong:  # its record then says: asked to terminate, died of SIGKILL
            worker.process.send(signal.SIGKILL, asked="terminate")
            worker.process.wait(READY_LIMIT_S)

    def _replace_lost(self) -> None:
        if not self.living():
            self._require_that_workers_work()
            self.start_worker(self.workers[-1].concurrency if self.workers else 4)

    def _require_that_workers_work(self) -> None:
        """A worker that cannot even start is a mistake in the command, and no finding."""
        ended = [worker.process for worker in self.workers]
        if (ended and all(process.exit_code and not process.asked for process in ended)
                and not self.lab.witness_lines()
                and not any(isinstance(record, Fault) for record in self.records)):
            raise TargetFault(
                f"{ended[-1].name} exited with code {ended[-1].exit_code} before it had executed "
                f"anything; the last line of {ended[-1].log} is: {last_line(ended[-1].log)}")

    # ------------------------------------------------------------ watching

    def witnessed(self, event: str, label: str | None = None) -> list[Witness]:
        """The witness lines so far of this event, of tasks with this label if one is given."""
        return [line for line in self.lab.witness_lines()
                if line.event == event and label in (None, line.label)]

    def await_witness(self, event: str, *, label: str | None = None, count: int = 1,
                      limit_s: float = READY_LIMIT_S) -> Witness:
        """Wait until there are `count` such lines; returns the last of them."""
        lines = wait_for(
            lambda: found if len(found := self.witnessed(event, label)) >= count else None,
            reason=f"{event} number {count} of {label or 'any task'}", limit_s=limit_s)
        return lines[count - 1]

    def await_status(self, task_id: str, *statuses: str) -> None:
        """Wait until a task is seen in one of these states; for as long as a recovery may take."""
        def is_there() -> bool:
            view = self.look(task_id, always=False)
            return view is not None and view.status in statuses

        with contextlib.suppress(WaitedTooLong):  # whoever judges sees that it was not
            wait_for(is_there, reason=f"{task_id} to be {' or '.join(statuses)}",
                     limit_s=self.timing.recovery_ms / 1000)

    def await_quiet(self, span_ms: int) -> None:
        """Let this time pass: what must not happen in it is judged by its records."""
        let_pass(span_ms)

    def await_all_terminal(self, task_ids: Iterable[str] | None = None, *,
                           limit_s: float | None = None) -> bool:
        """Watch tasks until all are terminal; False if some are not when the time is up.

        The default limit is the target's declared recovery time, counted from the last start or
        death of a worker, and made longer by what the machine stalled. When no worker is left, one
        is started, as whoever runs the target would. A task that was seen terminal before is not
        looked at again.
        """
        waiting = deque(task_id for task_id in (self.submissions if task_ids is None else task_ids)
                        if task_id not in self._not_new
                        and self.last_looks.get(task_id, {}).get("status") not in TERMINAL)
        limit_ns = round((self.timing.recovery_ms / 1000 if limit_s is None else limit_s) * 1e9)
        began_ns = time.monotonic_ns()

        def over() -> bool:
            self._replace_lost()
            witnessed = self._witnessed_to_end()
            for task_id in [waiting.popleft() for _ in range(min(len(waiting), LOOKS_AT_ONCE))]:
                if task_id not in witnessed and not self._is_over(task_id):
                    waiting.append(task_id)
            since_ns = max(began_ns, self._last_upset_ns())
            now_ns = time.monotonic_ns()
            return (not waiting or now_ns - began_ns > UPSETS_LIMIT * limit_ns
                    or (now_ns - since_ns > limit_ns
                        and now_ns - since_ns > limit_ns + self._stalled_ns(since_ns)))

        wait_for(over, reason="all tasks to be over", limit_s=float("inf"), every_s=0.02)
        return not waiting

    def _last_upset_ns(self) -> int:
        """When a worker last started or died: from then on the target has time to recover."""
        return max((instant for worker in self.workers
                    for instant in (worker.process.start_ns, worker.process.exit_ns or 0)),
                   default=0)

    def _is_over(self, task_id: str) -> bool:
        view = self.look(task_id, always=False)
        return view is not None and view.status in TERMINAL

    def _witnessed_to_end(self) -> set[str]:
        """The tasks that are over by the witness file alone, of a target that shows none."""
        if isinstance(self.target, ShowsTasks):
            return set()
        retried = "retry" in self._kind.claims
        return {line.task_id for line in self.witnessed("end")
                if (asked := self.submissions.get(line.task_id)) is not None
                and plan.is_over(msgspec.to_builtins(asked), line.attempt, line.outcome,
                                 retried=retried)}

    def _stalled_ns(self, since_ns: int) -> int:
        return sum(record.to_ns - max(record.from_ns, since_ns) for record in self.lab.pace()
                   if isinstance(record, Stall) and record.to_ns > since_ns)
