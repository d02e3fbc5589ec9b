"""The nursery: a process that has imported what trials import, and forks one for each of them.

Starting Python and importing is what a short trial takes longest for. Comes in: the command line
of a trial, `python -m MODULE COMMAND …`. Goes out: `Forked`, a process that runs just that, with
pipes, a group and an exit code of its own. What a target starts is never forked from here.

`python -m dtq_conformance.nursery` has a socket as its stdin. A request is one JSON line, the words
after `-m`: a package with `COMMANDS`, one of these, its arguments. With it come four descriptors:
the trial's stdin, stdout and stderr, and a pipe that is told "started" and, at the end, the exit
code. The nursery has one thread, and ends with its socket.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import socket
import subprocess
import sys
from collections.abc import Sequence

PRELOADED = ("dtq_conformance.targets.broken",)
"""What trials import beside the module of their command."""


class NurseryError(Exception):
    """The nursery is gone, so no trial can be started, and of the running ones nothing is known."""


def words_of(argv: Sequence[str]) -> list[str] | None:
    """What follows `-m` in a command line of this Python; None if it runs something else."""
    for start in ([sys.executable, "-P", "-m"], [sys.executable, "-m"]):
        if list(argv[:len(start)]) == start:
            return list(argv[len(start):])
    return None


class Forked:
    """A process that the nursery forked, with as much of `subprocess.Popen` as is needed here."""

    def __init__(self, stdin: int, stdout: int, stderr: int, status: int) -> None:
        self._stdin = os.fdopen(stdin, "wb", buffering=0)
        self.stdout, self.stderr, self._status = (
            os.fdopen(number, encoding="utf-8", errors="replace")
            for number in (stdout, stderr, status))
        self.returncode: int | None = None

    def terminate(self) -> None:
        """Ask it to end: a trial does when its stdin ends (`scheduler.end_with_parent`)."""
        self._stdin.close()

    def wait(self) -> int:
        """Wait for its end and return its exit code, -N for signal N. Raises `NurseryError`."""
        line = self._line()
        self._stdin.close()
        self._status.close()
        self.returncode = int(line)
        return self.returncode

    def await_start(self) -> Forked:
        """Wait until it is there. Raises `NurseryError`."""
        self._line()
        return self

    def _line(self) -> str:
        line = self._status.readline()
        if not line.endswith("\n"):
            raise NurseryError("The process that forks the trials has ended before them; what it "
                               "wrote to stderr says why.")
        return line


class Nursery:
    """The scheduler's end. The process starts at once. Requests are made one at a time."""

    def __init__(self) -> None:
        self._channel, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "dtq_conformance.nursery"],
                stdin=theirs.fileno(), stdout=subprocess.DEVNULL, process_group=0)
        self.pid = self._process.pid

    def start(self, words: Sequence[str]) -> Forked:
        """Start `python -m WORDS`; returns when it is there. Raises `NurseryError`."""
        pipes = [os.pipe() for _ in range(4)]
        theirs = [pipes[0][0], *(write for _, write in pipes[1:])]
        forked = Forked(pipes[0][1], *(read for read, _ in pipes[1:]))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # `await_start` says so
            socket.send_fds(self._channel, [json.dumps(list(words)).encode() + b"\n"], theirs)
        for number in theirs:
            os.close(number)
        return forked.await_start()

    def close(self) -> None:
        """End it. Trials that still run go on without it."""
        self._channel.close()
        self._process.wait()


def serve(channel: socket.socket) -> list[str] | None:
    """Fork a process for each request: there, return its words. Here, return None at the end."""
    living: dict[int, tuple[int, int]] = {}
    while True:
        ready, _, _ = select.select([channel.fileno(), *living], [], [])
        for ended in [number for number in ready if number in living]:
            pid, status = living.pop(ended)
            os.close(ended)
            _tell(status, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
            os.close(status)
        if channel.fileno() not in ready:
            continue
        line, given, _, _ = socket.recv_fds(channel, 65_536, 4)
        while line and not line.endswith(b"\n"):
            line += channel.recv(65_536) or b"\n"
        if not line.strip():
            return None
        words: list[str] = json.loads(line)
        _preload(words)
        ending, held = os.pipe()  # the child holds it open while it lives, and nobody else does
        pid = os.fork()
        if pid == 0:
            _become(channel, given, [ending, *living, *(status for _, status in living.values())])
            return words
        for number in (held, *given[:3]):
            os.close(number)
        living[ending] = (pid, given[3])
        _tell(given[3], "started")


def _preload(words: Sequence[str]) -> None:
    """Import what this trial will import. What fails here fails there too, and is told there."""
    module, command = words[:2]
    with contextlib.suppress(Exception):
        commands = importlib.import_module(f"{module}.__main__").COMMANDS
        del sys.modules[f"{module}.__main__"]  # each trial runs it afresh
        for name in (commands[command][0], *PRELOADED):
            if name not in sys.modules:
                importlib.import_module(name)
                gc.collect()
                gc.freeze()  # what the collector leaves alone stays shared with the children


def _become(channel: socket.socket, given: Sequence[int], others: Sequence[int]) -> None:
    """Be a process as if newly started: own group, own pipes, none of the nursery's."""
    os.setpgid(0, 0)
    channel.detach()
    for number, mine in enumerate(given[:3]):
        os.dup2(mine, number)
    for number in (*given, *others):
        os.close(number)


def _tell(status: int, what: object) -> None:
    with contextlib.suppress(BrokenPipeError):  # the scheduler is gone, and so are we soon
        os.write(status, f"{what}\n".encode())


def main() -> None:
    words = serve(socket.socket(fileno=0))
    if words is not None:
        sys.argv = words
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
