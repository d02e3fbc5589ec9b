"""The nursery: a process that has imported what others import, and forks one for each of them.

Starting Python and importing is what a short trial takes longest for. Comes in: command lines
`python -m MODULE …`, a trial's from the scheduler and, where the target allows that by its
`preload`, those of the trial's own processes from its lab. Goes out: a process that runs just that,
with pipes, a group or session, an environment and an exit code of its own. What else a target
starts is never forked from here.

`python -m dtq_conformance.nursery` has a socket as its stdin. A request is one JSON line, `Asked`.
With it come descriptors: stdin, stdout and stderr; a pipe that is told "started", with the pid, and
at the end the exit code; for a lab's process also a pipe that it waits for before it begins, so
that it never runs unknown to the guard. The nursery has one thread, and ends with its socket.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn, cast

import msgspec

PRELOADED = ("dtq_conformance.targets.broken", "dtq_conformance.guard")
"""What trials import beside the module of their command, and what stands beside each of them."""


class NurseryError(Exception):
    """The nursery is gone, so nothing can be started, and of what runs nothing is known."""


class Asked(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request. `words` stand after `-m`; `here` puts the current folder on the path, as `-m`
    without `-P` does. `environment` replaces the nursery's own.

    `apart`: it leads a session, not only a group, and waits for its release before it begins.
    `may_ask`: it gets a channel of its own, and `ours` gives it the nursery; `preload` are modules
    to import beforehand, if the scheduler's end asks.
    """

    words: list[str]
    here: bool = False
    environment: dict[str, str] | None = None
    apart: bool = False
    may_ask: bool = False
    preload: list[str] = []


def words_of(argv: Sequence[str]) -> list[str] | None:
    """What follows `-m` in a command line of this Python; None if it runs something else."""
    for start in ([sys.executable, "-P", "-m"], [sys.executable, "-m"]):
        if list(argv[:len(start)]) == start:
            return list(argv[len(start):])
    return None


class Child:
    """A process that was forked, as whoever asked for it sees it."""

    def __init__(self, status: int) -> None:
        self._status = os.fdopen(status, encoding="ascii")
        self.pid = int(self._line())

    def wait(self) -> int:
        """Wait for its end and return its exit code, -N for signal N. Raises `NurseryError`."""
        line = self._line()
        self._status.close()
        return int(line)

    def _line(self) -> str:
        line = self._status.readline()
        if not line.endswith("\n"):
            raise NurseryError("The process that forks the trials has ended before them; what it "
                               "wrote to stderr says why.")
        return line


class Forked:
    """A trial that was forked, with as much of `subprocess.Popen` as is needed here."""

    def __init__(self, child: Child, stdin: int, stdout: int, stderr: int) -> None:
        self._child = child
        self._stdin = os.fdopen(stdin, "wb", buffering=0)
        self.stdout, self.stderr = (os.fdopen(number, encoding="utf-8", errors="replace")
                                    for number in (stdout, stderr))
        self.returncode: int | None = None

    def terminate(self) -> None:
        """Ask it to end: a trial does when its stdin ends (`scheduler.end_with_parent`)."""
        self._stdin.close()

    def wait(self) -> int:
        """Wait for its end and return its exit code, -N for signal N. Raises `NurseryError`."""
        code = self._child.wait()
        self._stdin.close()
        self.returncode = code
        return code


class Asker:
    """The end of a channel to the nursery from which processes are asked for, by any thread."""

    def __init__(self, channel: socket.socket, preload: Sequence[str] = ()) -> None:
        self.preload = list(preload)
        self._channel = channel
        self._lock = threading.Lock()

    def fork(self, asked: Asked, *descriptors: int) -> Child:
        """Have a process forked; returns when it is there. The descriptors stay the caller's: its
        stdin, stdout and stderr, and its release if it is to wait for one. Raises `NurseryError`.
        """
        status, theirs = os.pipe()
        given = [*descriptors[:3], theirs, *descriptors[3:]]
        with self._lock:  # one request at a time, or the descriptors of two are mixed up
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # `Child` says so
                # Python's own JSON: an environment may hold what is no UTF-8
                words = json.dumps(msgspec.to_builtins(asked))
                socket.send_fds(self._channel, [words.encode() + b"\n"], given)
            os.close(theirs)
            return Child(status)


class Nursery(Asker):
    """The end of whoever has it. The process starts at once; before it forks it imports the modules
    `preload`, a target's."""

    def __init__(self, preload: Sequence[str] = ()) -> None:
        channel, theirs = socket.socketpair()
        super().__init__(channel, preload)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "dtq_conformance.nursery"],
                stdin=theirs.fileno(), stdout=subprocess.DEVNULL, process_group=0)
        self.pid = self._process.pid

    def start(self, words: Sequence[str]) -> Forked:
        """Start `python -P -m WORDS`, which may ask the nursery for others if that has preloaded
        what they need; returns when it is there. Raises `NurseryError`."""
        pipes = [os.pipe() for _ in range(3)]
        theirs = [pipes[0][0], *(write for _, write in pipes[1:])]
        try:
            child = self.fork(Asked(words=list(words), may_ask=bool(self.preload),
                                    preload=self.preload), *theirs)
        except NurseryError:
            for number in (pipes[0][1], *(read for read, _ in pipes[1:])):
                os.close(number)
            raise
        finally:
            for number in theirs:
                os.close(number)
        return Forked(child, pipes[0][1], *(read for read, _ in pipes[1:]))

    def close(self) -> None:
        """End it. What still runs goes on without it."""
        self._channel.close()
        self._process.wait()


_ours: list[Asker] = []


def ours() -> Asker | None:
    """The nursery that this process was forked from, if it may ask it for others."""
    return _ours[0] if _ours else None


@contextlib.contextmanager
def forking(preload: Sequence[str]) -> Iterator[None]:
    """Within, `start_apart` has processes forked by a nursery with these modules. With none of
    them, or where there is a nursery already, all stays as it is."""
    if not preload or _ours:
        yield
        return
    _ours.append(Nursery(preload))
    try:
        yield
    finally:
        cast(Nursery, _ours.pop()).close()


Started = subprocess.Popen[bytes] | Child


def start_apart(argv: Sequence[str], environment: Mapping[str, str], *, stdin: int, output: int,
                errors: int, tell: Callable[[int], None]) -> Started:
    """Start a process in a session of its own: forked by `ours` if it can be, else anew. `tell`
    is called with its pid; a forked one does nothing before. Raises `OSError`, `NurseryError`."""
    words, asker = words_of(argv), ours()
    if words is None or asker is None:
        popen = subprocess.Popen(list(argv), stdin=stdin, stdout=output, stderr=errors,
                                 start_new_session=True, env=environment)
        tell(popen.pid)
        return popen
    waits, release = os.pipe()
    try:
        child = asker.fork(Asked(words=words, here="-P" not in argv[:2],
                                 environment=dict(environment), apart=True,
                                 preload=asker.preload),
                           stdin, output, errors, waits)
        tell(child.pid)
        os.write(release, b".")
    finally:
        os.close(waits)
        os.close(release)
    return child


# ---------------------------------------------------------------- in the nursery's process


def serve(first: socket.socket) -> list[str] | None:
    """Fork a process for each request: there, return its words. Here, return None at the end."""
    channels = [first]
    living: dict[int, int] = {}
    bell, rung = os.pipe()
    for number in (bell, rung):
        os.set_blocking(number, False)
    signal.set_wakeup_fd(rung, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    while True:
        ready, _, _ = select.select([bell, *(each.fileno() for each in channels)], [], [])
        if bell in ready:
            os.read(bell, 65_536)
            _tell_of_ends(living)
        for channel in [each for each in channels if each.fileno() in ready]:
            heard = _hear(channel)
            if heard is None:
                channels.remove(channel)
                channel.close()
                if channel is first:
                    return None
                continue
            asked, given = heard
            if channel is first:
                _preload(asked)
            mine, theirs = socket.socketpair() if asked.may_ask else (None, None)
            pid = os.fork()
            if pid == 0:
                _become(asked, given, theirs, [*channels, *([mine] if mine else [])])
                return asked.words
            living[pid] = given[3]
            for number in (*given[:3], *given[4:]):
                os.close(number)
            if mine is not None and theirs is not None:
                theirs.close()
                channels.append(mine)


def _hear(channel: socket.socket) -> tuple[Asked, list[int]] | None:
    """The next request of a channel, with its descriptors; None at its end."""
    line, given, _, _ = socket.recv_fds(channel, 65_536, 5)
    while line and not line.endswith(b"\n"):
        line += channel.recv(65_536) or b"\n"
    return (msgspec.convert(json.loads(line), Asked), list(given)) if line.strip() else None


def _tell_of_ends(living: dict[int, int]) -> None:
    with contextlib.suppress(ChildProcessError):  # none is left
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            status = living.pop(ended[0])
            _tell(status, os.waitstatus_to_exitcode(ended[1]))
            os.close(status)


def _preload(asked: Asked) -> None:
    """Import what this process, and those that it may ask for, will import. What fails here fails
    there too, and is told there."""
    with contextlib.suppress(Exception):
        for name in (*_of_command(asked), *PRELOADED, *asked.preload):
            if name not in sys.modules:
                importlib.import_module(name)
                gc.collect()
                gc.freeze()  # what the collector leaves alone stays shared with the children


def _of_command(asked: Asked) -> list[str]:
    """The module of a room's command; none for a lab's process."""
    if asked.apart:
        return []
    module, command = asked.words[:2]
    commands = importlib.import_module(f"{module}.__main__").COMMANDS
    del sys.modules[f"{module}.__main__"]  # each trial runs it afresh
    return [commands[command][0]]


def _become(asked: Asked, given: Sequence[int], channel: socket.socket | None,
            others: Sequence[socket.socket]) -> None:
    """Be a process as if newly started: with own group, streams and environment, and with nothing
    of the nursery's. Without its release it ends."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if asked.apart:
        os.setsid()
    else:
        os.setpgid(0, 0)
    _tell(given[3], os.getpid())
    for number, mine in enumerate(given[:3]):
        os.dup2(mine, number)
    if asked.apart and not os.read(given[4], 1):
        os._exit(1)
    for other in others:
        other.detach()
    kept = {0, 1, 2, *([channel.fileno()] if channel else [])}
    for open_number in [int(each.name) for each in Path("/dev/fd").iterdir()]:
        if open_number not in kept:
            with contextlib.suppress(OSError):  # the one that listed them is closed already
                os.close(open_number)
    _ours[:] = [Asker(channel)] if channel else []
    if asked.environment is not None:
        os.environ.clear()
        os.environ.update(asked.environment)
    if asked.here:
        sys.path.insert(0, str(Path.cwd()))


def _tell(status: int, what: object) -> None:
    with contextlib.suppress(BrokenPipeError):  # who asked is gone, and so are we soon
        os.write(status, f"{what}\n".encode())


def main() -> None:
    """Serve; in a process that was forked, run what was asked for."""
    words = serve(socket.socket(fileno=0))
    if words is not None:
        sys.argv = words
        if not hasattr(sys.modules.get(words[0]), "__path__"):
            sys.modules.pop(words[0], None)  # preloaded for others, who import it
        try:
            runpy.run_module(words[0], run_name="__main__", alter_sys=True)
        except SystemExit as ended:
            if ended.code is not None and not isinstance(ended.code, int):
                raise  # Python prints it
            _end(ended.code or 0)
        _end(0)


def _end(code: int) -> NoReturn:
    """End as Python does: threads, exit functions, streams. But objects are not taken apart, which
    would copy every page that is still shared with the nursery: most of a short process's time."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # nobody reads it, or it is closed
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    from dtq_conformance import nursery  # the module in which trials look for `ours`

    nursery.main()
