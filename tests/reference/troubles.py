"""What may befall the broker: each trouble is a context in which it lasts.

Each is done to a real server, and has bitten when its block begins: a client of the test's own is
then told so by the server, or by nobody.
"""

from __future__ import annotations

import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dtq_conformance.lab import Lab
from dtq_conformance.waiting import wait_for
from dtq_reference.keys import GROUP
from redis.exceptions import RedisError

from tests.reference.engine import Engine
from tests.reference.relay import Relay

LIMIT_S = 30.0
MANY = 20_000
"""How many commands a file must hold for a server to be seen loading it: it looks up from its
reading once in 1,024."""


@dataclass(frozen=True)
class Site:
    """A lab with a server of its own, an installation on it, and the relay through which the
    installation's worker and API speak to the server."""

    lab: Lab
    engine: Engine
    relay: Relay

    def ask(self, *command: object) -> Any:
        with self.lab.broker.connect() as client:
            return client.execute_command(*command)

    def config(self, name: str) -> str:
        with self.lab.broker.connect() as client:
            return str(client.config_get(name)[name])

    def error(self, *command: object) -> str:
        """What is said instead of an answer, with redis-py's name for it."""
        with self.lab.broker.connect(limit_s=1) as client:
            try:
                client.execute_command(*command)
            except RedisError as error:
                return f"{type(error).__name__} {error}"
        return ""

    def write_error(self) -> str:
        """The same for a write."""
        return self.error("SET", f"{self.engine.keys.prefix}written", "")

    def on_streams(self, *command: object) -> list[Any]:
        """An XGROUP command on each stream of the queue."""
        return [self.ask("XGROUP", command[0], stream, GROUP, *command[1:])
                for stream in self.engine.keys.streams("default")]


@contextmanager
def restart_with_its_data(site: Site) -> Iterator[None]:
    site.lab.broker.kill()
    assert "ConnectionError" in site.error("PING")
    yield
    site.lab.broker.restart()


@contextmanager
def restart_without_its_data(site: Site) -> Iterator[None]:
    files = Path(site.config("dir"), site.config("appenddirname"))
    with restart_with_its_data(site):
        shutil.rmtree(files)
        yield
    assert site.ask("EXISTS", site.engine.keys.recent) == 0


@contextmanager
def loading(site: Site) -> Iterator[None]:
    """The server reads its own file again, and pauses after each command in it."""
    with site.lab.broker.connect() as client:
        pipeline = client.pipeline(transaction=False)
        for number in range(MANY):
            pipeline.set("padding", number)
        pipeline.execute()
    site.ask("CONFIG", "SET", "key-load-delay", 100)
    reading = threading.Thread(target=site.error, args=("DEBUG", "LOADAOF"))
    reading.start()
    wait_for(lambda: "BusyLoadingError" in site.error("GET", "padding"),
             reason="the server to be loading", limit_s=LIMIT_S)
    yield
    wait_for(lambda: not site.error("GET", "padding"), reason="the server to have loaded",
             limit_s=LIMIT_S)
    reading.join(LIMIT_S)


@contextmanager
def read_only(site: Site) -> Iterator[None]:
    """The replica of a master that is not there."""
    site.ask("REPLICAOF", "127.0.0.1", 1)
    assert "ReadOnlyError" in site.write_error()
    yield
    site.ask("REPLICAOF", "NO", "ONE")


@contextmanager
def master_down(site: Site) -> Iterator[None]:
    """The same, and it is not to be read either."""
    site.ask("CONFIG", "SET", "replica-serve-stale-data", "no")
    site.ask("REPLICAOF", "127.0.0.1", 1)
    assert "MasterDownError" in site.error("GET", "padding")
    yield
    site.ask("REPLICAOF", "NO", "ONE")


@contextmanager
def too_few_replicas(site: Site) -> Iterator[None]:
    site.ask("CONFIG", "SET", "min-replicas-to-write", 1)
    assert "NOREPLICAS" in site.write_error()
    yield
    site.ask("CONFIG", "SET", "min-replicas-to-write", 0)


@contextmanager
def out_of_memory(site: Site) -> Iterator[None]:
    site.ask("CONFIG", "SET", "maxmemory", 1)
    assert "OutOfMemoryError" in site.write_error()
    yield
    site.ask("CONFIG", "SET", "maxmemory", 0)


@contextmanager
def cannot_save(site: Site) -> Iterator[None]:
    """A folder stands where the file of a snapshot belongs."""
    obstacle = Path(site.config("dir"), site.config("dbfilename"))
    obstacle.mkdir()
    site.ask("CONFIG", "SET", "save", "3600 1")
    _save(site, "err")
    assert "MISCONF" in site.write_error()
    yield
    obstacle.rmdir()
    _save(site, "ok")


def _save(site: Site, status: str) -> None:
    """Save in the background until that ends so."""

    def has_ended_so() -> bool:
        about = site.ask("INFO", "persistence")
        if about["rdb_last_bgsave_status"] == status:
            return True
        if not about["rdb_bgsave_in_progress"]:
            site.error("BGSAVE")
        return False

    wait_for(has_ended_so, reason=f"a snapshot to end {status}", limit_s=LIMIT_S)


@contextmanager
def busy(site: Site) -> Iterator[None]:
    """Somebody's script does not end."""
    site.ask("CONFIG", "SET", "busy-reply-threshold", 10)
    script = threading.Thread(target=site.error, args=("EVAL", "while true do end", 0))
    script.start()
    wait_for(lambda: "BUSY" in site.error("PING"), reason="the server to be busy",
             limit_s=LIMIT_S)
    yield
    site.ask("SCRIPT", "KILL")
    script.join(LIMIT_S)


@contextmanager
def clients_killed(site: Site) -> Iterator[None]:
    """All connections are cut, ten times over."""
    for _ in range(10):
        wait_for(lambda: site.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes") > 0,
                 reason="the worker to be connected", limit_s=LIMIT_S)
    yield


@contextmanager
def scripts_lost(site: Site) -> Iterator[None]:
    site.ask("SCRIPT", "FLUSH")
    yield


@contextmanager
def groups_lost(site: Site) -> Iterator[None]:
    assert site.on_streams("DESTROY") == [1] * 10
    yield


@contextmanager
def groups_made_anew(site: Site) -> Iterator[None]:
    """Somebody makes the groups again, from the start: what runs looks as if it were new."""
    with site.lab.broker.connect() as client, client.pipeline() as at_once:
        for stream in site.engine.keys.streams("default"):
            at_once.xgroup_destroy(stream, GROUP)
            at_once.xgroup_create(stream, GROUP, "0")
        assert at_once.execute() == [1, True] * 10
    yield


@contextmanager
def standing_still(site: Site) -> Iterator[None]:
    """The server is stopped: connections stay open, and nobody speaks."""
    process = site.lab.broker.process
    assert process is not None
    process.send(signal.SIGSTOP, asked="stop")
    assert "TimeoutError" in site.error("PING")
    yield
    process.send(signal.SIGCONT, asked="continue")


@contextmanager
def half_open(site: Site) -> Iterator[None]:
    """The worker's and the API's connections fall silent for ever; new ones live at the end."""
    site.relay.silence()
    yield
    site.relay.heal()


Trouble = Callable[[Site], AbstractContextManager[None]]
