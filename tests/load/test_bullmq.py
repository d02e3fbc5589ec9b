"""BullMQ as a peer: where it is installed, what is left of its lists, and a real run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from dtq_load.bench.peer import NotInstalled, Size
from dtq_load.bench.peers import bullmq
from dtq_load.bench.peers.bullmq import APP, FILES, KEYS, PEER, left
from dtq_load.bench.stand import Stand

from tests.load import peer_run


@pytest.fixture
def _installed(need: Callable[[object, str], None]) -> None:
    try:
        bullmq.install()
    except NotInstalled as error:
        need(None, str(error))


def test_the_versions_are_exact_and_the_lock_has_them() -> None:
    wanted = json.loads((APP / "package.json").read_text())["dependencies"]
    locked = json.loads((APP / "package-lock.json").read_text())["packages"]
    assert {name: locked[f"node_modules/{name}"]["version"] for name in wanted} == wanted


def test_another_app_is_another_folder_in_the_cache(tmp_path: Path,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    before = bullmq.folder()
    assert before.parent == tmp_path / "cache" / "dtq-contract"
    for name in FILES:
        shutil.copy(APP / name, tmp_path)
    monkeypatch.setattr(bullmq, "APP", tmp_path)
    assert bullmq.folder() == before
    (tmp_path / FILES[0]).write_text("another")
    assert bullmq.folder() != before


def test_without_node_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NotInstalled, match=r"no node on the PATH: install Node\."):
        bullmq.version()


def test_an_installation_that_fails_leaves_nothing_and_says_why(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("node", "npm"):
        (programs / name).write_text("#!/bin/sh\necho it is broken >&2\nexit 7\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(NotInstalled, match=r"`npm ci .*` exited with 7: it is broken$"):
        bullmq.install()
    assert list((tmp_path / "cache" / "dtq-contract").iterdir()) == []


def test_what_waits_and_what_is_active_is_left(stand: Stand) -> None:
    stand.clear()
    stand.redis.rpush(f"{KEYS}:wait", 1, 2, 3)
    stand.redis.lmove(f"{KEYS}:wait", f"{KEYS}:active")
    assert left(stand.redis, 3) == 3
    stand.redis.lpop(f"{KEYS}:active")
    assert left(stand.redis, 3) == 2


@pytest.mark.slow
@pytest.mark.npm
@pytest.mark.usefixtures("_installed")
def test_it_works(stand: Stand) -> None:
    peer_run.works(stand, PEER)


@pytest.mark.slow
@pytest.mark.npm
@pytest.mark.usefixtures("_installed")
def test_what_a_killed_worker_held_is_left(stand: Stand) -> None:
    peer_run.counts_what_it_held(stand, PEER, Size(1, 3))
