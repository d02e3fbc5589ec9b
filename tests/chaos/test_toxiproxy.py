"""Toxiproxy through its one module, with a real server in front of a real broker."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis
from dtq_chaos import toxiproxy, toxiproxy_server
from dtq_chaos.toxiproxy import Link, Toxiproxy, ToxiproxyError, ToxiproxyMissing
from dtq_conformance.lab import Lab
from dtq_conformance.waiting import wait_for
from redis.backoff import NoBackoff
from redis.retry import Retry

pytestmark = pytest.mark.slow


def address(lab: Lab) -> str:
    """The lab's broker as "host:port"."""
    return urlsplit(lab.broker.url).netloc.rpartition("@")[2]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory,
        need: Callable[[object, str], None]) -> Iterator[Lab]:
    try:
        toxiproxy.find()
    except ToxiproxyMissing as missing:
        need(None, str(missing))
    with Lab(tmp_path_factory.mktemp("logs")) as lab:
        yield lab


@pytest.fixture(scope="module")
def server(lab: Lab) -> Iterator[Toxiproxy]:
    with Toxiproxy(lab, api_limit_s=1) as server:
        yield server


@pytest.fixture
def link(server: Toxiproxy, lab: Lab) -> Iterator[Link]:
    link = server.link("broker", address(lab))
    yield link
    link.remove()


@pytest.fixture
def direct(lab: Lab) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(lab.broker.url) as client:
        client.flushdb()
        yield client


@pytest.fixture
def through(lab: Lab, link: Link) -> Iterator[redis.Redis]:
    """A client with one open connection through the link, which never sends anything twice."""
    with redis.Redis.from_url(link.url(lab.broker.url), retry=Retry(NoBackoff(), 0),
                              single_connection_client=True) as client:
        client.ping()
        yield client


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine with nothing on its PATH and an empty cache; returns the cache."""
    monkeypatch.delenv("DTQ_TOXIPROXY_URL", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CI", raising=False)
    return tmp_path / "cache"


def program(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_a_server_says_its_version_and_how_it_was_got(server: Toxiproxy) -> None:
    found = toxiproxy.find()
    assert server.description.startswith("toxiproxy ")
    assert found.where in server.description
    assert "git" not in server.description.split(" (")[0]


def test_a_toxic_spoils_open_connections_and_is_gone_when_cleared(
        link: Link, through: redis.Redis, direct: redis.Redis) -> None:
    link.add("limit_data", stream="upstream", bytes=0)
    with pytest.raises(redis.ConnectionError):
        through.set("key", "lost on the way")
    assert direct.get("key") is None

    link.clear()
    through.set("key", "arrived")
    assert direct.get("key") == b"arrived"


def test_a_lost_reply_leaves_the_effect_and_ends_the_connection(
        link: Link, through: redis.Redis, direct: redis.Redis) -> None:
    link.add("timeout", stream="downstream", timeout=0)
    with ThreadPoolExecutor(1) as elsewhere:
        call = elsewhere.submit(through.set, "key", "written")
        wait_for(lambda: direct.get("key"), reason="the effect of SET", limit_s=5)
        assert not call.done(), "the client must still wait for the reply that it will not get"
        link.clear()
        assert isinstance(call.exception(timeout=5), redis.ConnectionError)
    assert direct.get("key") == b"written"
    assert through.ping(), "new connections through the link are sound again"


def test_a_cut_link_drops_and_refuses_connections_until_it_is_healed(
        link: Link, through: redis.Redis) -> None:
    listen = link.listen
    link.cut()
    for _ in ("the open connection", "a new one"):
        with pytest.raises(redis.ConnectionError):
            through.ping()
    link.heal()
    assert through.ping()
    assert link.listen == listen
    assert link.rebuilds == 0


def test_a_link_that_locks_up_is_made_again_on_its_port_with_its_toxics(
        link: Link, through: redis.Redis, direct: redis.Redis) -> None:
    listen = link.listen
    direct.set("big", b"x" * 8_000_000)
    host, _, port = listen.rpartition(":")
    with socket.create_connection((host, int(port))) as greedy:
        greedy.sendall(b"GET big\r\n" * 4)  # and reads nothing: the link is stuck in its writing

        def locked_up() -> bool:
            link.add("limit_data", stream="upstream", bytes=1000)
            link.add("latency", stream="downstream", latency=1)
            if link.rebuilds:
                return True
            link.clear()  # may hang as well, and then leaves a link without toxics
            return False

        wait_for(locked_up, reason="a call about the stuck link to hang", limit_s=10)

    assert link.listen == listen
    for _ in ("the old connection is gone", "a new one may carry 1000 bytes"):
        with pytest.raises(redis.ConnectionError):
            through.set("key", b"x" * 2000)
    link.clear()
    assert through.set("key", b"x" * 2000)


@pytest.mark.parametrize(("toxic", "attributes", "complaint"), [
    ("slicer", {}, "average_size is not given"),
    ("slicer", {"average_size": 0}, "average_size is 0, not a whole number from 1"),
    ("slicer", {"average_size": 1, "size_variation": 9}, "size_variation is more than"),
    ("bandwidth", {"rate": -1}, "rate is -1"),
    ("bandwidth", {"rate": True}, "rate is True"),
    ("latency", {"latency": 1.5}, "latency is 1.5"),
    ("latency", {"latency": 1, "latency_ms": 1}, "no attribute latency_ms, only latency, jitter"),
    ("timeout", {}, "timeout is not given"),
    ("packet_loss", {}, "there is no such toxic; known are latency"),
])
def test_a_bad_toxic_is_refused_before_the_server_hears_of_it(
        server: Toxiproxy, link: Link, toxic: toxiproxy.ToxicType, attributes: dict[str, int],
        complaint: str) -> None:
    with pytest.raises(ToxiproxyError, match=complaint):
        link.add(toxic, stream="downstream", **attributes)
    assert server.alive
    link.add("latency", stream="downstream", latency=0)
    with pytest.raises(ToxiproxyError, match="the link has one already"):
        link.add("latency", stream="downstream", latency=5)


def test_a_link_keeps_all_of_the_url_but_the_address(link: Link) -> None:
    assert link.url("redis://me:secret@far:1/3?protocol=3") == (
        f"redis://me:secret@{link.listen}/3?protocol=3")
    assert link.url("redis://far:1") == f"redis://{link.listen}"
    with pytest.raises(ToxiproxyError, match="redis://… only"):
        link.url("unix:///tmp/redis.sock")


def test_what_the_server_refuses_is_one_error_with_its_words(server: Toxiproxy,
                                                              link: Link) -> None:
    with pytest.raises(ToxiproxyError, match=r"refused POST http.* with 400: .*missing required"):
        server.link("nowhere", "")
    link.remove()
    with pytest.raises(ToxiproxyError, match=r"with 404: .*proxy not found"):
        link.cut()
    link.remove()


def test_a_proxy_for_the_web_is_not_asked(server: Toxiproxy, lab: Lab,
                                          monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    server.link("straight", address(lab)).remove()


@pytest.mark.usefixtures("server", "bare")
def test_a_second_server_in_one_process_is_an_error(
        lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bin" / "toxiproxy-server")
    before = len(lab.processes())
    with pytest.raises(ToxiproxyError, match="one address per process"):
        Toxiproxy(lab)
    monkeypatch.setenv("DTQ_TOXIPROXY_URL", "http://127.0.0.1:1")
    with pytest.raises(ToxiproxyError, match="one address per process"):
        Toxiproxy(lab)
    assert len(lab.processes()) == before, "it was refused before it was started"


def test_a_running_server_is_used_by_its_url_and_left_running(
        server: Toxiproxy, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DTQ_TOXIPROXY_URL", f"http://{server.address}")
    with Toxiproxy(lab) as guest:
        assert f"running at http://{server.address}" in guest.description
        link = guest.link("broker", address(lab))
    with pytest.raises(ToxiproxyError, match="was closed or has ended"):
        link.cut()
    assert server.alive
    server.link("still", address(lab)).remove()


def test_a_server_that_is_not_on_this_machine_is_refused(
        lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DTQ_TOXIPROXY_URL", "http://toxiproxy.example:8474")
    with pytest.raises(ToxiproxyError, match="must run here"):
        Toxiproxy(lab)


def test_a_server_is_found_by_url_then_path_then_cache(
        bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cached = program(bare / "dtq-contract" / "bin" / "toxiproxy-server")
    assert toxiproxy.find() == toxiproxy.Found("cache", str(cached))
    on_path = program(tmp_path / "bin" / "toxiproxy-server")
    assert toxiproxy.find() == toxiproxy.Found("path", str(on_path))
    monkeypatch.setenv("DTQ_TOXIPROXY_URL", "http://127.0.0.1:8474")
    assert toxiproxy.find() == toxiproxy.Found("url", "http://127.0.0.1:8474")


def test_where_no_server_is_to_be_had_it_is_said_and_an_error_in_ci(
        bare: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert toxiproxy.main(["install"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("not run: ")
    assert str(bare) in said and "Go is not on the PATH" in said

    monkeypatch.setenv("CI", "true")
    assert toxiproxy.main(["install"]) == 4


@pytest.mark.usefixtures("bare")
def test_a_built_server_is_moved_into_the_cache_whole(tmp_path: Path) -> None:
    program(tmp_path / "bin" / "go", 'echo "$*" > "$GOBIN/server"; /bin/chmod 755 "$GOBIN/server"')
    found = toxiproxy.install()
    assert found == toxiproxy.find()
    assert found == toxiproxy.Found("cache", str(toxiproxy_server.cached_server()))
    assert Path(found.where).read_text() == f"install {toxiproxy_server.PACKAGE}\n"
    assert [file.name for file in Path(found.where).parent.iterdir()] == ["toxiproxy-server"]


def test_a_build_that_fails_says_why_and_leaves_nothing(bare: Path, tmp_path: Path) -> None:
    program(tmp_path / "bin" / "go", "echo no route to proxy.golang.org >&2; exit 1")
    with pytest.raises(ToxiproxyMissing, match=r"exited with 1: no route to proxy\.golang\.org"):
        toxiproxy.install()
    assert not any((bare / "dtq-contract" / "bin").iterdir())


def test_a_usage_error_of_the_command_exits_4() -> None:
    done = subprocess.run([sys.executable, "-m", "dtq_chaos.toxiproxy", "fetch"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert "invalid choice: 'fetch'" in done.stderr
