"""The guard: a small process that outlives the harness and clears up behind it.

`python -m dtq_conformance.guard TOKEN` runs in a session of its own and reads lines from a pipe:
`group PGID` for each process group that a lab starts, `folder PATH` for each temporary folder,
`container NAME` for each container.
The pipe closes when the lab closes it or when the harness ends, in whatever way. Then the guard
ends every process of those groups, and every process that carries the lab's token in its
environment; then it removes containers and folders, and ends itself.

The token closes the window between the start of a process and its `group` line: a process that
is being started holds the pipe open until its own program, with the token, has begun.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import psutil

from dtq_conformance import nursery
from dtq_conformance.container import remove
from dtq_conformance.waiting import WaitedTooLong, wait_for

TOKEN_VARIABLE = "DTQ_LAB"
"""Every process of a lab has this in its environment, with the token of its lab."""

LIMIT_S = 20.0
"""How long the guard tries; a process that no SIGKILL ends by then hangs in the kernel."""


class GuardError(Exception):
    """The guard is gone or did not finish, so nothing would clear up behind the harness."""


class Guard:
    """The harness's end of the pipe. The guard process starts at once and hears of all later."""

    def __init__(self, token: str, *, log: Path) -> None:
        environment = {key: value for key, value in os.environ.items() if key != TOKEN_VARIABLE}
        command = [sys.executable, "-P", "-m", "dtq_conformance.guard", token]
        self._log = log
        self._ended = threading.Event()
        self._code: int | None = None
        self._pipe: int | None
        reads, self._pipe = os.pipe()
        with log.open("ab") as file:
            process = nursery.start_apart(command, environment, stdin=reads, output=file.fileno(),
                                          errors=file.fileno(), tell=lambda _pid: None)
        os.close(reads)
        self.pid = process.pid
        threading.Thread(target=self._await_end, args=(process,), name="guard", daemon=True).start()

    def watch_group(self, pgid: int) -> None:
        """From now on this process group does not outlive the harness."""
        self._tell(f"group {pgid}\n")

    def watch_folder(self, folder: Path) -> None:
        """From now on this folder does not outlive the harness. It need not exist yet."""
        self._tell(f"folder {folder}\n")

    def watch_container(self, name: str) -> None:
        """From now on a container of this name does not outlive the harness. It need not exist."""
        self._tell(f"container {name}\n")

    def close(self) -> None:
        """Close the pipe and wait until the guard has cleared up. Raises `GuardError`."""
        if self._pipe is not None:
            os.close(self._pipe)
        self._pipe = None
        if not self._ended.wait(LIMIT_S + 10):
            raise GuardError(f"The guard (pid {self.pid}) did not finish; see {self._log}.")
        if self._code != 0:
            raise GuardError(f"The guard (pid {self.pid}) ended with code {self._code}, "
                             f"expected 0; look into {self._log} and for processes with "
                             f"{TOKEN_VARIABLE}.")

    def _await_end(self, process: nursery.Started) -> None:
        with contextlib.suppress(nursery.NurseryError):  # then its code is not known
            self._code = process.wait()
        self._ended.set()

    def _tell(self, line: str) -> None:
        try:
            os.write(self._pipe or -1, line.encode())
        except BrokenPipeError:
            raise GuardError(f"The guard (pid {self.pid}) is gone, so a killed harness would leave "
                             f"processes behind; see {self._log}, and run again.") from None


def started_at(pid: int) -> float | None:
    """When the process with this pid started; None if there is none. Tells a reused pid."""
    try:
        return psutil.Process(pid).create_time()
    except psutil.Error:
        return None


def living(token: str, groups: Mapping[int, float | None]) -> list[psutil.Process]:
    """Every living process of the lab: of its groups or with its token. Zombies are not alive.

    `groups` maps each group to its leader's start time. A group whose number now belongs to
    another process, which started at another time, is not the lab's.
    """
    ours = {pgid for pgid, start in groups.items() if started_at(pgid) in (start, None)}
    found = []
    for process in psutil.process_iter():
        if process.pid == os.getpid():
            continue
        with contextlib.suppress(psutil.Error, OSError):
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            if os.getpgid(process.pid) in ours or _carries(process, token):
                found.append(process)
    return found


def _carries(process: psutil.Process, token: str) -> bool:
    try:
        return process.environ().get(TOKEN_VARIABLE) == token
    except (psutil.Error, OSError):
        return False  # another user's process, or gone


def end_all(token: str, groups: Mapping[int, float | None]) -> list[psutil.Process]:
    """Kill until two looks in a row find nothing alive; return what LIMIT_S was not enough for."""
    looks: list[list[psutil.Process]] = []

    def is_clear() -> bool:
        looks.append(living(token, groups))
        for process in looks[-1]:
            with contextlib.suppress(psutil.Error):
                process.kill()
        return looks[-2:] == [[], []]

    with contextlib.suppress(WaitedTooLong):
        wait_for(is_clear, reason="the lab's processes to end", limit_s=LIMIT_S)
    return looks[-1]


def main(token: str) -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups: dict[int, float | None] = {}
    folders: list[Path] = []
    containers: list[str] = []
    for line in sys.stdin:
        if not line.endswith("\n"):
            break  # the harness died while it wrote; the token finds what it spoke of
        kind, _, value = line.rstrip("\n").partition(" ")
        if kind == "group":
            groups[int(value)] = started_at(int(value))
        elif kind == "container":
            containers.append(value)
        else:
            folders.append(Path(value))
    left = end_all(token, groups)
    for name in containers:
        remove(name)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    for process in left:
        print(f"pid {process.pid} did not end within {LIMIT_S:g} s of SIGKILL", file=sys.stderr)
    remaining = [folder for folder in folders if folder.exists()]
    for folder in remaining:
        print(f"{folder} could not be removed", file=sys.stderr)
    return 1 if left or remaining else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
