"""Set trials side by side, each in a process of its own with a broker of its own.

Comes in: command lines that each run one trial and print the folder of its run. Goes out: how each
ended, with its verdict. What a user sees of it is the business of `run.py`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from rich.progress import Progress

from dtq_conformance import exits, terminal
from dtq_conformance.lab import interruptible
from dtq_conformance.nursery import Forked, Nursery, words_of
from dtq_conformance.verdict import RunVerdict, Status

TRIAL_LIMIT_S = 120.0
"""A trial that takes longer has hung; it is ended, and nothing is known of its clauses."""


@dataclass(frozen=True)
class Job:
    """One trial to run: what to call it, and the command line that runs it and prints where.

    `limit_s` is how long it may take, TRIAL_LIMIT_S if None.

    One that begins with this Python and `-m` is not started anew, but forked in the nursery.
    """

    name: str
    argv: Sequence[str]
    limit_s: float | None = None


@dataclass(frozen=True)
class Ended:
    """How a job ended, after how long. `verdict` is None when there is none; `problem` then says
    why."""

    name: str
    exit_code: int
    folder: Path | None = None
    verdict: RunVerdict | None = None
    problem: str = ""
    took_s: float = field(default=0.0, compare=False)

    @property
    def status(self) -> Status:
        """The verdict's status; without a verdict nothing is known."""
        return "unknown" if self.verdict is None else self.verdict.status

    @property
    def is_as_expected(self) -> bool:
        """Whether it held, or was convicted where the harness itself did the harm."""
        return self.verdict is not None and self.verdict.status == self.verdict.expects


def default_jobs() -> int:
    """How many trials run at once: they mostly wait."""
    return max(2, 2 * (os.cpu_count() or 1))


def side_by_side(jobs: Sequence[Job], *, at_once: int, progress: bool,
                 preload: Sequence[str] = (),
                 keep: Callable[[Ended], None] = lambda _: None) -> list[Ended]:
    """Run all jobs, `at_once` at a time; the results come in the order of the jobs, and as they
    come each goes to `keep`.

    With `preload`, the target's modules, trials have their own processes forked in the nursery
    too. An interruption ends the running ones in good order before it is passed on.
    """
    running = Running(preload)
    found: dict[str, Ended] = {}
    with interruptible(), _bar(len(jobs), progress) as advance, \
            ThreadPoolExecutor(at_once) as pool:
        futures = [pool.submit(_run_job, job, running) for job in jobs]
        try:
            for future in as_completed(futures):
                ended = future.result()
                found[ended.name] = ended
                keep(ended)
                advance(ended)
        except BaseException:
            for future in futures:
                future.cancel()
            running.end()
            raise
        finally:
            pool.shutdown()
            running.close()
    return [found[job.name] for job in jobs]


Child = subprocess.Popen[str] | Forked


class Running:
    """The processes of the jobs that run. Each leads a group of its own: a terminal's Ctrl-C
    reaches the scheduler alone, which then ends them."""

    def __init__(self, preload: Sequence[str] = ()) -> None:
        self._preload = preload
        self._lock = threading.Lock()
        self._processes: set[Child] = set()
        self._ending = False
        self._nursery: Nursery | None = None

    def start(self, argv: Sequence[str]) -> Child:
        """Start one. After `end` it is ended at once."""
        with self._lock:
            process = self._start(argv)
            self._processes.add(process)
            if self._ending:
                process.terminate()
        return process

    def _start(self, argv: Sequence[str]) -> Child:
        words = words_of(argv)
        if words is None:
            return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True, process_group=0)
        if self._nursery is None:
            self._nursery = Nursery(self._preload)
        return self._nursery.start(words)

    def ended(self, process: Child) -> None:
        """Forget one that has ended."""
        with self._lock:
            self._processes.discard(process)

    def end(self) -> None:
        """Ask all to end, and those that start later too."""
        with self._lock:
            self._ending = True
            for process in self._processes:
                process.terminate()

    def close(self) -> None:
        """Let go, when all have ended."""
        if self._nursery is not None:
            self._nursery.close()


def _run_job(job: Job, running: Running) -> Ended:
    began_s = time.monotonic()
    process = running.start(job.argv)
    limit_s = job.limit_s or TRIAL_LIMIT_S
    watchdog = threading.Timer(limit_s, process.terminate)
    watchdog.start()
    try:
        output, errors = _drain(process)
    finally:
        watchdog.cancel()
        running.ended(process)
    code = process.returncode
    told = output.strip().splitlines()
    if code in (exits.CONFORMS, exits.VIOLATED, exits.UNKNOWN) and told:
        folder = Path(told[-1])
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            verdict = msgspec.json.decode((folder / "verdict.json").read_bytes(), type=RunVerdict)
            return Ended(job.name, code, folder, verdict, took_s=time.monotonic() - began_s)
    if code == exits.INTERRUPTED:
        return Ended(job.name, exits.HARNESS,
                     problem=f"ended after {limit_s:g} s, or interrupted")
    problem = errors.strip().splitlines()[-1] if errors.strip() else f"exit code {code}"
    return Ended(job.name, code if code in (exits.INPUT, exits.HARNESS) else exits.HARNESS,
                 problem=problem)


def _drain(process: Child) -> tuple[str, str]:
    """Read both outputs to their end. stdin stays open: its end tells the child that we died."""
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr, ThreadPoolExecutor(1) as reader:
        errors = reader.submit(process.stderr.read)
        output = process.stdout.read()
        process.wait()
        return output, errors.result()


@contextlib.contextmanager
def _bar(total: int, wanted: bool) -> Iterator[Callable[[Ended], None]]:
    """A progress bar on a terminal; a line per trial elsewhere; nothing if not wanted."""
    console = terminal.console(stderr=True)
    done = 0

    def tell(ended: Ended) -> None:
        nonlocal done
        done += 1
        if wanted and not console.is_terminal:
            console.print(f"{done}/{total} {ended.name}: {told(ended)}", highlight=False)

    with Progress(console=console, transient=True,
                  disable=not (wanted and console.is_terminal)) as progress:
        task = progress.add_task("trials", total=total)

        def advance(ended: Ended) -> None:
            tell(ended)
            progress.update(task, advance=1, description=ended.name)

        yield advance


def told(ended: Ended) -> str:
    """How a trial ended, in two words or a sentence."""
    if ended.verdict is None:
        return f"no verdict: {ended.problem}"
    if ended.verdict.expects == "violated" and ended.status in ("violated", "holds"):
        return "convicted, as it must be" if ended.is_as_expected else "not convicted, and must be"
    return ended.verdict.status


def end_with_parent() -> None:
    """End this process in good order when the one that holds its stdin open is gone."""
    def watch() -> None:
        while os.read(0, 4096):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="parent", daemon=True).start()
