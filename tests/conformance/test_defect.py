"""How a defect is put into the reference: a passage that is not there once is not replaced."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
import pytest
from dtq_conformance.target import Site
from dtq_conformance.targets import defect
from dtq_conformance.targets.defect import Defect, kind_of, rewrite
from dtq_reference.scripts import SCRIPTS, Script

from tests.conformance.histories import TIMING


@pytest.fixture(autouse=True)
def scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    """One script to spoil; the reference's own are as they were afterwards."""
    for name in list(SCRIPTS):
        monkeypatch.setitem(SCRIPTS, name, SCRIPTS[name])
    monkeypatch.setitem(SCRIPTS, "take", Script("take", "return 1 + 1\nreturn 2", "no-sha"))
    monkeypatch.setattr(defect, "_put_in", [])


def test_a_passage_that_is_there_once_is_replaced_and_the_server_knows_it_by_its_new_sha() -> None:
    rewrite("take", "1 + 1", "3")
    source = "return 3\nreturn 2"
    assert SCRIPTS["take"] == Script("take", source,
                                     hashlib.sha1(source.encode()).hexdigest())


@pytest.mark.parametrize(("passage", "times"), [("return 7", 0), ("return", 2), ("1", 2)])
def test_a_passage_that_is_not_there_exactly_once_is_refused(passage: str, times: int) -> None:
    before = SCRIPTS["take"]
    with pytest.raises(LookupError) as caught:
        rewrite("take", passage, "")
    assert str(caught.value) == f"take.lua has {times} times, not once: {passage!r}"
    assert SCRIPTS["take"] is before


def test_a_script_that_is_not_there_is_refused() -> None:
    with pytest.raises(KeyError):
        rewrite("no_such_script", "a", "b")


def test_the_defect_is_put_in_once_a_process_and_only_when_the_target_is_opened(
        tmp_path: Path) -> None:
    done: list[str] = []
    kind = kind_of(Defect("d", "Is wrong.", ("nothing_lost",), (), lambda: done.append("put in")))
    site = Site("redis://127.0.0.1:1", "dtq:", tmp_path / "witness", TIMING)
    assert (kind.name, done) == ("broken:d", [])
    for _ in range(2):
        kind.open(site).close()
    assert done == ["put in"]


def test_its_workers_run_the_program_that_has_the_defect_in_it(tmp_path: Path) -> None:
    kind = kind_of(Defect("d", "Is wrong.", ("nothing_lost",), (), lambda: None))
    timing = msgspec.structs.replace(TIMING, lease_ms=1500)
    target = kind.open(Site("redis://127.0.0.1:1/0", "p:", tmp_path / "witness", timing))
    command = target.worker("worker-3", 6, broker_url="redis://127.0.0.1:2/0")
    target.close()
    assert list(command.argv[1:]) == ["-m", "dtq_conformance.targets.broken", "d", "worker", "run",
                                      "--concurrency", "6"]
    wanted = {"DTQ_REDIS_URL": "redis://127.0.0.1:2/0", "DTQ_KEY_PREFIX": "p:",
              "DTQ_WORKER_ID": "worker-3", "DTQ_WITNESS": str(tmp_path / "witness"),
              "DTQ_VISIBILITY_TIMEOUT_S": "1.5"}
    assert wanted.items() <= command.environment.items()
