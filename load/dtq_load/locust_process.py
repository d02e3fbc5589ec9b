"""Start Locust as a process of a lab, without or with its web page.

Locust patches the standard library when it is imported, so it has a process of its own: here only
its command line is made.
"""

from __future__ import annotations

import contextlib
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from dtq_conformance.lab import Lab, LabError, LabProcess
from dtq_conformance.waiting import wait_for

from dtq_load.assignment import FOLDER_VARIABLE

LOCUSTFILE = Path(__file__).with_name("locustfile.py")
SPAWN_LIMIT_PER_S = 100
"""Locust warns of more."""
PAGE_LIMIT_S = 30.0


def start_locust(lab: Lab, folder: Path, *, target: str, users: int, seconds: int | None,
                 more: Sequence[str]) -> LabProcess:
    """Start Locust; `folder` is where it meets the harness, `more` its further options.

    What Locust calls the host is only shown on its page: it is the target's name.
    """
    command = [sys.executable, "-m", "locust", "--locustfile", str(LOCUSTFILE),
               "--users", str(users), "--spawn-rate", str(min(users, SPAWN_LIMIT_PER_S)),
               "--host", target, "--exit-code-on-error", "0", *more]
    if seconds is not None:
        command += ["--run-time", f"{seconds}s"]
    return lab.start("locust", command, role="locust",
                     environment={FOLDER_VARIABLE: str(folder)})


def start_headless(lab: Lab, folder: Path, *, target: str, users: int,
                   seconds: int | None) -> LabProcess:
    """Start Locust without its page; it begins at once and ends by itself."""
    return start_locust(lab, folder, target=target, users=users, seconds=seconds,
                        more=["--headless", "--only-summary"])


def start_page(lab: Lab, folder: Path, *, target: str, users: int, seconds: int | None,
               port: int) -> tuple[LabProcess, str]:
    """Start Locust with its page and return its process and address once the page answers."""
    port = port or free_port()
    process = start_locust(lab, folder, target=target, users=users, seconds=seconds,
                           more=["--web-host", "127.0.0.1", "--web-port", str(port)])
    address = f"http://127.0.0.1:{port}"
    wait_for(lambda: _answers(address) or not process.alive, reason="Locust's page to answer",
             limit_s=PAGE_LIMIT_S, every_s=0.1)
    require_alive(process)
    return process, address


def require_alive(process: LabProcess) -> None:
    """Raise `LabError` with the end of Locust's log if it has ended."""
    if process.alive:
        return
    told = process.log.read_text(errors="replace").strip().splitlines()[-5:]
    raise LabError("Locust has ended before its test did. The end of its log "
                   f"({process.log}):\n" + "\n".join(told))


def free_port() -> int:
    """A port of this machine that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def _answers(address: str) -> bool:
    with contextlib.suppress(urllib.error.URLError, OSError), \
            urllib.request.urlopen(address, timeout=5) as answer:
        return bool(answer.status == 200)
    return False
