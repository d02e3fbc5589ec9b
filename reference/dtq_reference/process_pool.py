"""Call functions in child processes, which can be killed at a time limit: sync handlers.

A child is started when none is idle, loads the worker's task modules, and then makes one call after
the other. Worker and child share one connection; when it ends the worker is gone, and so is the
child: on Linux at once, elsewhere when it has made its call.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from dtq_reference import handlers, logs
from dtq_reference.errors import RetryableError
from dtq_reference.settings import Settings

START_LIMIT_S = 60.0
"""How long a child may take to load the task modules."""

PR_SET_PDEATHSIG = 1
"""`prctl` of Linux: the signal that a process gets when the thread that started it ends."""


class WorkerLost(RetryableError):
    """The process that was to execute an attempt died, or there was none to be had."""


class Child:
    """The worker's end of one child process, which has loaded the task modules."""

    def __init__(self, settings: Settings) -> None:
        from multiprocessing.connection import Pipe  # a megabyte for those alone who have a pool

        self.connection, theirs = Pipe()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "dtq_reference.process_pool", str(theirs.fileno())],
                stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])
        self.ask((settings, sys.path, handlers.modules), START_LIMIT_S)

    def ask(self, message: Any, limit_s: float) -> Any:
        """The answer to a message. Without one the process is killed: raises TimeoutError at the
        time limit, and `WorkerLost` when the process has died."""
        try:
            self.connection.send(message)
            if self.connection.poll(limit_s):
                return self.connection.recv()
        except (EOFError, OSError):
            raise WorkerLost(f"the handler's process ended with code {self.end()}") from None
        self.end()
        raise TimeoutError(f"the handler's process was killed after {limit_s:g} s")

    def end(self) -> int:
        """Kill the process; returns its exit code."""
        self._process.kill()
        self.connection.close()
        return self._process.wait()


class ProcessPool:
    """As many children as there were handlers to run at once."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._idle: list[Child] = []

    def run(self, limit_s: float, function: Callable[..., Any], *arguments: Any) -> Any:
        """What a function of a module returns in a child, within the time from when one is there.
        Raises TimeoutError or `WorkerLost`: then the child is gone, and the next call gets another.
        """
        child = self._child()
        answer = child.ask((function, arguments), limit_s)
        self._idle.append(child)
        return answer

    def _child(self) -> Child:
        while self._idle:
            child = self._idle.pop()
            if not child.connection.poll():
                return child
            child.end()  # it has died: an idle one says nothing
        try:
            return Child(self._settings)
        except OSError as error:
            raise WorkerLost(f"no process could be started: {error}") from error


# In the child -------------------------------------------------------------------------------------

def main() -> None:
    """Make calls until the worker is gone. Signals that ask the worker to stop are its own
    business; they are handled, not ignored, so that what a handler starts does not inherit it."""
    import ctypes
    from multiprocessing.connection import Connection

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    connection = Connection(int(sys.argv[1]))
    os.set_inheritable(connection.fileno(), False)
    settings, sys.path[:], modules = connection.recv()
    logs.configure(settings)
    handlers.load_modules(modules)
    connection.send("ready")
    with contextlib.suppress(EOFError, OSError):
        while True:
            function, arguments = connection.recv()
            connection.send(function(*arguments))


if __name__ == "__main__":
    main()
