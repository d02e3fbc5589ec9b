"""The probe for queues of one's own does and witnesses what the reference's `probe_task` does."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from dtq_conformance import probe
from dtq_conformance.probe import ProbeFailure, run_probe
from dtq_reference import demo_tasks
from dtq_reference.demo_tasks import probe_task
from dtq_reference.handlers import TaskContext

PAYLOADS: list[dict[str, Any]] = [
    {"steps": [], "label": "nothing"},
    {"steps": [{"sleep": 1}, {"busy": 1}, {"block": 1}, {"return": {"x": 1}}, {"fail": "unknown"}]},
    {"steps": [{"return_bytes": 3}]},
    {"steps": [{"fail": "retryable", "until_attempt": 1}, {"return": "second"}]},
    {"steps": [{"fail": "retryable"}]}, {"steps": [{"fail": "permanent"}]},
    {"steps": [{"fail": "unknown"}]}, {"steps": [{"dance": True}]},
]


def lines_of(witness: Path) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in witness.read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "at_ns"} for line in found]


def steps_of(module: ModuleType) -> set[str]:
    """The steps that a module knows, by its source: what it matches, and what it looks for."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.MatchMapping):
            found |= {str(key.value) for key in node.keys if isinstance(key, ast.Constant)}
        elif (isinstance(node, ast.Compare) and isinstance(node.left, ast.Constant)
                and ast.unparse(node.comparators[0]) == "step"):
            found.add(str(node.left.value))
    return found


def test_both_know_the_same_steps_and_those_are_the_contracts() -> None:
    assert steps_of(probe) == steps_of(demo_tasks) == {
        "sleep", "busy", "block", "fail", "exit", "kill", "return", "return_bytes",
        "return_unserialisable", "once"}


@pytest.mark.parametrize("payload", PAYLOADS, ids=str)
def test_it_returns_fails_and_witnesses_like_the_reference(
        payload: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = {}
    for name in ("ours", "reference"):
        witness = tmp_path / name
        monkeypatch.setenv("DTQ_WITNESS", str(witness))
        try:
            if name == "ours":
                result = run_probe(payload, task_id="t", attempt=2, worker_id="w")
            else:
                result = asyncio.run(probe_task(payload, TaskContext("t", 2, "w", "default", 0.0)))
        except Exception:
            result = "failed"
        told[name] = (result, lines_of(witness))
    assert told["ours"] == told["reference"]


def test_a_guarded_step_tells_who_did_it(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DTQ_WITNESS", str(tmp_path / "witness"))
    records: dict[str, Any] = {}

    def once(key: str, fn: Callable[[], Any]) -> Any:
        if key not in records:
            records[key] = fn()
        return records[key]

    for attempt in (1, 2):
        result = run_probe({"steps": [{"once": "k"}]}, task_id="t", attempt=attempt, once=once)
        assert (result["attempt"], result["once"]) == (attempt, {"task_id": "t", "attempt": 1})
    with pytest.raises(ValueError, match="once"):
        run_probe({"steps": [{"once": "k"}]}, task_id="t")


def test_a_failure_says_whether_to_try_again(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DTQ_WITNESS", str(tmp_path / "witness"))
    for kind in ("retryable", "permanent"):
        with pytest.raises(ProbeFailure) as caught:
            run_probe({"steps": [{"fail": kind}]}, task_id="t")
        assert caught.value.retryable == (kind == "retryable")


def test_without_a_witness_file_it_says_so_before_it_does_anything(
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DTQ_WITNESS", raising=False)
    with pytest.raises(LookupError, match="nobody would see that this ran"):
        run_probe({"steps": [{"kill": True}]}, task_id="t")
