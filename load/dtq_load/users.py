"""Locust's users: they submit straight to the engine, through the target protocol.

Comes in: an `Assignment`. Goes out: each submission as a line of the operations file, and two rows
of Locust's table. "accepted" measures a submission from the question to its answer. "finished"
measures from that answer to the first end line of the task's handler in the witness file, which is
read from the disk: nothing is asked of the engine for it. It does not include the settlement.
"""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any, ClassVar

import gevent  # type: ignore[import-untyped]
import msgspec
from dtq_conformance.history import Witness
from dtq_conformance.operation import Operation, answer_of, outcome_of
from dtq_conformance.target import Submission, Target, load_target
from gevent import GreenletExit
from locust import User, constant_pacing, task
from locust.env import Environment
from locust.exception import StopUser

from dtq_load.assignment import Assignment, Meeting, Row
from dtq_load.workloads import WORKLOADS

WATCH_S = 0.05
"""Between two looks into the witness file; times are those of its lines, not of the look."""


class Lines:
    """The witness file, read on from where the last reading ended."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._rest = b""
        self._decoder = msgspec.json.Decoder(Witness)

    def new(self) -> list[Witness]:
        """The whole lines that were written since the last call."""
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        return [self._decoder.decode(line) for line in lines]

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class Session:
    """One test run: the tasks to submit, the file of operations, and which have finished."""

    def __init__(self, environment: Environment, assignment: Assignment) -> None:
        self.assignment = assignment
        self.workload = WORKLOADS[assignment.workload]
        self.is_open = True
        self._environment = environment
        self._random = random.Random(assignment.seed)
        self._drawn = self._answered = 0
        self._operations = assignment.under_way.open("ab")
        self._lines = Lines(Path(assignment.witness))
        self._ended_ns: dict[str, int] = {}
        self._waiting: dict[str, int] = {}
        self._news_ns = time.monotonic_ns()

    def next(self) -> Submission | None:
        """The next task to submit; None when all were."""
        if not self.is_open or self._drawn == self.assignment.tasks:
            return None
        self._drawn += 1
        return self.workload.submission(self._random, self._drawn - 1)

    def record(self, submission: Submission, asked_ns: int, error: BaseException | None) -> None:
        """Write down how a submission ended, and add it to the row "accepted"."""
        answered_ns = time.monotonic_ns()
        self._operations.write(msgspec.json.encode(Operation(
            name="submit", task_id=submission.task_id, asked_ns=asked_ns,
            answered_ns=answered_ns, outcome=outcome_of(error),
            request=msgspec.to_builtins(submission), answer=answer_of(error))) + b"\n")
        self._answered += 1
        self._news_ns = answered_ns
        if error is None:
            self._waiting[submission.task_id] = answered_ns
        if not isinstance(error, GreenletExit):
            self._add_to_row("accepted", answered_ns - asked_ns, error)

    def watch(self) -> None:
        """Keep the row "finished" up to date, and end the test when nothing more is to come."""
        while self.is_open:
            self.read_on()
            if self._is_complete():
                self._end()
                return
            gevent.sleep(WATCH_S)

    def read_on(self) -> None:
        """Read what the handlers wrote since, and add it to the row "finished"."""
        for line in self._lines.new():
            self._news_ns = time.monotonic_ns()
            if line.event == "end" and line.outcome == "ok":
                self._ended_ns.setdefault(line.task_id, line.at_ns)
        for task_id in self._ended_ns.keys() & self._waiting.keys():
            took_ns = self._ended_ns[task_id] - self._waiting.pop(task_id)
            self._add_to_row("finished", max(0, took_ns), None)

    def close(self) -> None:
        """End the session: the table is written, and the operations get their final name."""
        if not self.is_open:
            return
        self.is_open = False
        self.read_on()
        self._lines.close()
        self._operations.close()
        self.assignment.table.write_bytes(msgspec.json.encode(rows(self._environment)))
        self.assignment.under_way.rename(self.assignment.operations)

    def _is_complete(self) -> bool:
        """Whether all tasks were submitted and finished, or none has moved for long enough."""
        if self._answered != self.assignment.tasks:
            return False
        silent_ns = time.monotonic_ns() - self._news_ns
        return not self._waiting or silent_ns > self.assignment.timing.recovery_ms * 1_000_000

    def _end(self) -> None:
        runner, options = self._environment.runner, self._environment.parsed_options
        assert runner is not None
        if options is not None and options.headless:
            runner.quit()
        else:
            runner.stop()

    def _add_to_row(self, name: str, took_ns: int, error: BaseException | None) -> None:
        self._environment.events.request.fire(  # type: ignore[no-untyped-call]
            request_type="task", name=name, response_time=took_ns / 1e6, response_length=0,
            exception=error, context={})


class Sessions:
    """Opens a session when a test starts and closes it when the test stops."""

    def __init__(self, environment: Environment, meeting: Meeting) -> None:
        self._environment = environment
        self._meeting = meeting
        self._session: Session | None = None

    def start(self, **_: Any) -> None:
        """Wait for the harness's assignment, and open the session that the users then work in."""
        self._meeting.want()
        while (assignment := self._meeting.take_up()) is None:
            gevent.sleep(WATCH_S)
        self._session = EngineUser.session = Session(self._environment, assignment)
        gevent.spawn(self._session.watch)

    def stop(self, **_: Any) -> None:
        """Close the session; if there is none yet, the harness need not go on preparing one."""
        if self._session is None:
            self._meeting.withdraw()
            return
        self._session.close()
        self._session = None


class EngineUser(User):
    """A client of the engine with a connection of its own."""

    session: ClassVar[Session]

    def on_start(self) -> None:
        """Connect."""
        assignment = self.session.assignment
        self._target: Target = load_target(assignment.target).open(assignment.site)
        self._pace = constant_pacing(self.session.workload.pause_s)

    def on_stop(self) -> None:
        """Disconnect."""
        self._target.close()

    def wait_time(self) -> float:
        """The seconds until the next submission."""
        return float(self._pace(self))

    @task
    def submit(self) -> None:
        """Submit the next task and write down how that ended, whatever it was."""
        session = self.session
        submission = session.next()
        if submission is None:
            raise StopUser
        asked_ns = time.monotonic_ns()
        try:
            self._target.submit(submission)
        except Exception as error:
            session.record(submission, asked_ns, error)
        except BaseException as error:  # the user was stopped in the middle
            session.record(submission, asked_ns, error)
            raise
        else:
            session.record(submission, asked_ns, None)


def rows(environment: Environment) -> list[Row]:
    """Locust's table as it stands."""
    return [Row(name=entry.name, count=entry.num_requests, failures=entry.num_failures,
                per_s=entry.total_rps, median_ms=entry.median_response_time,
                p95_ms=entry.get_response_time_percentile(0.95),
                p99_ms=entry.get_response_time_percentile(0.99),
                max_ms=entry.max_response_time)
            for entry in environment.stats.entries.values()]
