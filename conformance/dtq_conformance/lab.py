"""The lab: the test bed of one trial, and its clean end.

Comes in: which broker, and where logs are kept. Goes out: a running broker, processes that can be
killed, stopped and resumed, and evidence from outside the target: the witness file, the start and
exit of every process, and the pacemaker's stalls, as records for a history.

Each process is the leader of a session of its own, so that a signal reaches it with all that it
started. However the harness ends, the guard clears up. While a lab is open, the harness must not
fork without executing another program: such a child would hold the guard's pipe open. In a trial
whose nursery may be asked, the nursery forks whatever is `python -m MODULE`.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import FrameType, TracebackType
from typing import IO, Any

import msgspec
import psutil

from dtq_conformance import nursery, pacemaker
from dtq_conformance.broker import Broker, open_broker
from dtq_conformance.guard import TOKEN_VARIABLE, Guard
from dtq_conformance.history import Pace, Process, Stall, Witness
from dtq_conformance.waiting import WaitedTooLong, wait_for

SIGNAL_LIMIT_S = 10.0
"""How long a signal may take to be seen to work."""


_STILL = (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE, psutil.STATUS_DISK_SLEEP)
"""States of a process that does nothing more once SIGSTOP is sent. Disk sleep: the kernel holds
it, for instance until a child that was stopped between its vfork and its exec goes on."""


class LabError(Exception):
    """The test bed itself failed, so nothing can be said about the target."""


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Within, SIGINT and SIGTERM raise KeyboardInterrupt, even where they came in ignored.

    Only the first does: a second one must not break off the clean end that the first began.
    For the main thread of a command. A shell starts its background jobs with SIGINT ignored.
    """
    is_ending = False

    def interrupt(number: int, _frame: FrameType | None) -> None:
        nonlocal is_ending
        if not is_ending:
            is_ending = True
            raise KeyboardInterrupt(signal.Signals(number).name)

    before = {number: signal.signal(number, interrupt)
              for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class LabProcess:
    """A process of the lab, leader of its own group. Signals go to the whole group.

    `exit_code` or `signal`, and `exit_ns`, are None while it lives; a thread that waits for it
    records them the moment it ends. A signal to a process that has ended does nothing.
    """

    def __init__(self, name: str, role: str, log: Path, popen: nursery.Started,
                 start_ns: int, concurrency: int | None) -> None:
        self.name, self.role, self.log, self.concurrency = name, role, log, concurrency
        self.pid, self.start_ns = popen.pid, start_ns
        self.asked = ""
        self.exit_code: int | None = None
        self.signal: int | None = None
        self.exit_ns: int | None = None
        self._popen = popen
        self._ended = threading.Event()
        threading.Thread(target=self._await_end, name=f"wait-{name}", daemon=True).start()

    def __repr__(self) -> str:
        return f"<{self.name}, pid {self.pid}, {'alive' if self.alive else 'ended'}>"

    @property
    def alive(self) -> bool:
        """Whether it still runs or is stopped; a zombie is not alive."""
        if self._ended.is_set():
            return False
        with contextlib.suppress(psutil.Error):
            return bool(psutil.Process(self.pid).status() != psutil.STATUS_ZOMBIE)
        return False

    def pids(self) -> list[int]:
        """Its own pid, then those of its group and of all that descend from it."""
        found = {self.pid: None}
        for pid in psutil.pids():
            with contextlib.suppress(OSError):
                if os.getpgid(pid) == self.pid:
                    found[pid] = None
        found.update(dict.fromkeys(self._descendants()))
        return list(found)

    def _descendants(self) -> list[int]:
        with contextlib.suppress(psutil.Error):
            return [child.pid for child in psutil.Process(self.pid).children(recursive=True)]
        return []

    def send(self, signal_number: int, *, asked: str) -> None:
        """Send a signal to the whole group and, unless it asks to end in good order, to children
        that lead a group of their own. `asked` is remembered for the exit record: kill, terminate;
        stop and continue are no reason to exit, and are not."""
        if self._ended.is_set():
            return
        if asked not in ("stop", "continue"):
            self.asked = asked
        elsewhere = [] if asked == "terminate" else self._descendants()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal_number)
        for pid in elsewhere:
            with contextlib.suppress(ProcessLookupError):
                if os.getpgid(pid) != self.pid:
                    os.kill(pid, signal_number)

    def kill(self) -> None:
        """SIGKILL: it gets no chance to do anything more."""
        self.send(signal.SIGKILL, asked="kill")

    def terminate(self) -> None:
        """SIGTERM: it is asked to end."""
        self.send(signal.SIGTERM, asked="terminate")

    def stop(self) -> None:
        """SIGSTOP, and return when every process of the group is seen to stand still."""
        self.send(signal.SIGSTOP, asked="stop")
        wait_for(self._stands_still, reason=f"{self.name} to stand still", limit_s=SIGNAL_LIMIT_S)

    def resume(self) -> None:
        """SIGCONT: it goes on where it was stopped."""
        self.send(signal.SIGCONT, asked="continue")

    def wait(self, limit_s: float) -> None:
        """Return when it has ended and its exit is recorded. Raises `WaitedTooLong`."""
        if not self._ended.wait(limit_s):
            raise WaitedTooLong(f"waited {limit_s:g} s for {self.name} (pid {self.pid}) to end")

    def records(self) -> list[Process]:
        """Its start and, once it has ended, its exit."""
        start = Process(at_ns=self.start_ns, event="start", role=self.role, name=self.name,
                        pid=self.pid, concurrency=self.concurrency)
        if not self._ended.is_set() or self.exit_ns is None:
            return [start]
        return [start, Process(at_ns=self.exit_ns, event="exit", role=self.role, name=self.name,
                               pid=self.pid, exit_code=self.exit_code, signal=self.signal,
                               asked=self.asked)]

    def _await_end(self) -> None:
        try:
            code = self._popen.wait()
        except nursery.NurseryError:  # then nobody knows; the scheduler is told the same
            return
        self.exit_ns = time.monotonic_ns()
        if code < 0:
            self.signal = -code
        else:
            self.exit_code = code
        self._ended.set()

    def _stands_still(self) -> bool:
        states = []
        for pid in self.pids():
            with contextlib.suppress(psutil.Error):
                states.append(psutil.Process(pid).status())
        return all(state in _STILL for state in states)


def pace_of(beats: Sequence[int], *, until_ns: int) -> list[Pace | Stall]:
    """What these beats tell: one `Pace`, then each stall, one that lasts up to `until_ns` too."""
    gaps = list(pairwise([*beats, max(until_ns, beats[-1])]))
    longest_ns = max(end - begin for begin, end in gaps)
    return [Pace(beats=len(beats), first_ns=beats[0], last_ns=beats[-1],
                 longest_gap_ms=longest_ns / 1e6),
            *(Stall(from_ns=begin, to_ns=end) for begin, end in gaps
              if end - begin > pacemaker.STALL_MS * 1_000_000)]


class Lab:
    """The test bed of one trial, as a context manager: broker, witness, pacemaker, guard.

    `folder` is temporary and gone at the end; `logs` is kept, with one file per process.
    """

    broker: Broker
    folder: Path
    witness: Path

    def __init__(self, logs: Path, *, broker: str = "embedded", persistence: str = "none") -> None:
        self.logs = logs
        self._spec, self._persistence = broker, persistence
        self._token = secrets.token_hex(8)
        self._processes: dict[str, LabProcess] = {}
        self._containers = 0
        self._cleanup = contextlib.ExitStack()

    def __enter__(self) -> Lab:
        with contextlib.ExitStack() as cleanup:
            self.logs.mkdir(parents=True, exist_ok=True)
            self._guard = Guard(self._token, log=self.logs / "guard.log")
            self.folder = Path(tempfile.gettempdir()).resolve() / f"dtq-lab-{self._token}"
            self._guard.watch_folder(self.folder)
            cleanup.callback(shutil.rmtree, self.folder, ignore_errors=True)
            cleanup.callback(self._guard.close)
            self.folder.mkdir(mode=0o700)
            self.witness = self.folder / "witness.jsonl"
            self.witness.touch()
            self._witnessed: list[Witness] = []
            self._witness_bytes = 0
            cleanup.callback(self._close_broker)
            cleanup.callback(self._end_processes)
            self._start_pacemaker()
            self.broker = open_broker(self._spec, lab=self, persistence=self._persistence)
            wait_for(self._has_beaten, reason="the pacemaker's first beat", limit_s=20)
            self._cleanup = cleanup.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._cleanup.close()

    def start(self, name: str, command: Sequence[str], *, role: str,
              environment: Mapping[str, str] | None = None,
              concurrency: int | None = None) -> LabProcess:
        """Start a process under a new name. `environment` comes on top of the harness's own;
        `concurrency` is for the record of a worker."""
        if name in self._processes:
            raise LabError(f"There is a process {name} already; a name is used once in a run.")
        log = self.logs / f"{name}.log"
        with log.open("ab") as output, Path(os.devnull).open("rb") as nothing:
            start_ns = time.monotonic_ns()
            popen = self._begin(name, command, environment, nothing, output, output)
        process = LabProcess(name, role, log, popen, start_ns, concurrency)
        self._processes[name] = process
        return process

    def _begin(self, name: str, command: Sequence[str], environment: Mapping[str, str] | None,
               stdin: IO[Any], output: IO[Any], errors: IO[Any]) -> nursery.Started:
        full = {**os.environ, **(environment or {}), TOKEN_VARIABLE: self._token,
                "SPT_NOENV": "1"}  # setproctitle would overwrite the token
        try:
            return nursery.start_apart(command, full, stdin=stdin.fileno(), output=output.fileno(),
                                       errors=errors.fileno(), tell=self._guard.watch_group)
        except OSError as error:
            raise LabError(f"{name} cannot be started: {command[0]}: {error.strerror}.") from error

    def run(self, command: Sequence[str], *, environment: Mapping[str, str] | None = None,
            typed: str = "", limit_s: float) -> subprocess.CompletedProcess[str]:
        """Run a short command to its end; `typed` stands on its standard input."""
        with tempfile.TemporaryFile("w+") as words, tempfile.TemporaryFile() as output, \
                tempfile.TemporaryFile() as errors:
            words.write(typed)
            words.seek(0)
            popen = self._begin("a command", command, environment, words, output, errors)
            process = LabProcess("command", "command", self.folder, popen, 0, None)
            try:
                process.wait(limit_s)
            except WaitedTooLong:
                process.kill()
                raise LabError(f"{' '.join(command)[:200]} did not end within {limit_s:g} s.") \
                    from None
            for file in (output, errors):
                file.seek(0)
            return subprocess.CompletedProcess(
                list(command), -process.signal if process.signal else process.exit_code or 0,
                output.read().decode(), errors.read().decode())

    def watched_container(self) -> str:
        """A name for a container that is to be started: it does not outlive the harness."""
        self._containers += 1
        name = f"dtq-{self._token}-{self._containers}"
        self._guard.watch_container(name)
        return name

    def processes(self) -> list[LabProcess]:
        """Every process that was started here, ended ones included, in order."""
        return list(self._processes.values())

    def process_records(self) -> list[Process]:
        """The start and exit of each process so far, ordered by time."""
        found = [record for process in self.processes() for record in process.records()]
        return sorted(found, key=lambda record: record.at_ns)

    def witness_lines(self) -> list[Witness]:
        """What handlers wrote so far. Raises `LabError` that names a malformed line.

        Only a last line without its newline is left out: its writer was killed over it.
        """
        if self.witness.stat().st_size < self._witness_bytes:
            self._witnessed, self._witness_bytes = [], 0  # begun anew, by whoever owns the lab
        with self.witness.open("rb") as file:
            file.seek(self._witness_bytes)
            lines = file.read().splitlines(keepends=True)
        if lines and not lines[-1].endswith(b"\n"):
            lines.pop()
        for line in lines:
            self._witnessed.append(self._parse(len(self._witnessed) + 1, line))
            self._witness_bytes += len(line)
        return list(self._witnessed)

    def pace(self) -> list[Pace | Stall]:
        """What the pacemaker saw so far. Raises `LabError` if it is not running any more."""
        if not self._pacemaker.alive:
            raise LabError(f"The pacemaker has ended, so stalls of the machine are not known; "
                           f"see {self._pacemaker.log}.")
        return pace_of(pacemaker.beats(self._beats), until_ns=time.monotonic_ns())

    def _parse(self, number: int, line: bytes) -> Witness:
        try:
            return msgspec.json.decode(line, type=Witness)
        except msgspec.MsgspecError as error:
            raise LabError(f"Line {number} of the witness file is malformed ({error}): "
                           f"{line[:200]!r}") from error

    def _start_pacemaker(self) -> None:
        self._beats = self.folder / "pace"
        self._pacemaker = self.start(
            "pacemaker", [sys.executable, "-I", "-S", pacemaker.__file__, str(self._beats)],
            role="pacemaker")  # by itself, without site-packages: a third of the time

    def _has_beaten(self) -> bool:
        return self._beats.exists() and self._beats.read_bytes().endswith(b"\n")

    def _end_processes(self) -> None:
        for process in self.processes():
            process.kill()  # works on a stopped process too, and gives it no moment to go on
        for process in self.processes():
            process.wait(SIGNAL_LIMIT_S)

    def _close_broker(self) -> None:
        if hasattr(self, "broker"):
            self.broker.close()
