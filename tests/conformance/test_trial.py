"""One trial from beginning to end, on the real reference."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from dtq_conformance import trial as trial_module
from dtq_conformance.bench import Bench
from dtq_conformance.history import History, Mark, Process, Witness, read
from dtq_conformance.judging import judge_history
from dtq_conformance.lab import interruptible
from dtq_conformance.target import load_target
from dtq_conformance.trial import Options, Trial, conduct

MARK = Mark(name="it_bit", held=True, sentence="It was seen to bite.")


def options(out: Path) -> Options:
    return Options(out=out, broker="embedded", seed=3, with_faults=True, repeat="again")


def trial(**fields: object) -> Trial:
    def drive(bench: Bench) -> None:
        bench.start_worker()
        bench.submit_many(2)

    given = {"room": "conformance", "name": "two", "story": "Two tasks.",
             "clauses": ("DLV-01",), "drive": drive} | fields
    return Trial(**given)  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_run_leaves_a_folder_that_tells_everything(tmp_path: Path) -> None:
    seen: list[History] = []

    def read_mark(found: History) -> Mark:
        seen.append(found)
        return MARK

    run = conduct(trial(marks=(read_mark,), files={"extra.json": {"n": 1}}, drain_ms=1234,
                        settings={"DTQ_MAX_QUEUE_DEPTH": "7"}),
                  load_target("reference"), options(tmp_path))
    found = read(run.folder / "history.jsonl")
    assert (run.verdict.status, run.verdict.trial) == ("holds", "two")
    assert json.loads((run.folder / "extra.json").read_bytes()) == {"n": 1}
    assert json.loads((run.folder / "verdict.json").read_bytes())["run_id"] == run.folder.name
    assert judge_history(found) == run.verdict
    assert [len(history.of(Witness)) for history in (found, *seen)] == [4, 4]
    assert found.marks == [MARK]
    assert {record.role for record in found.of(Process)} == {"broker", "pacemaker", "worker"}
    assert (found.header.seed, found.header.repeat, found.header.timing.drain_ms) == (
        3, "again", 1234)
    assert found.header.settings == {"DTQ_MAX_QUEUE_DEPTH": "7"}
    assert [len(looks) for looks in found.looks.values()] >= [2, 2]
    assert (run.folder / "logs" / "worker-1.log").exists()


@pytest.mark.slow
def test_the_history_is_saved_before_it_is_judged(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(_: History) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(trial_module, "judge_history", crash)
    with pytest.raises(ZeroDivisionError):
        conduct(trial(), load_target("reference"), options(tmp_path))
    (folder,) = tmp_path.iterdir()
    assert not (folder / "verdict.json").exists()
    assert judge_history(read(folder / "history.jsonl")).status == "holds"


def test_a_trial_that_is_interrupted_leaves_no_history(tmp_path: Path) -> None:
    def drive(bench: Bench) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), interruptible():
        conduct(trial(drive=drive), load_target("reference"), options(tmp_path))
    (folder,) = tmp_path.iterdir()
    assert not list(folder.glob("*.jsonl"))


@pytest.mark.slow
def test_a_missing_mark_makes_a_run_unknown_and_its_verdict_says_which(tmp_path: Path) -> None:
    missing = Mark(name="it_bit", held=False, sentence="It was not seen to bite.")
    verdict = conduct(trial(marks=(lambda _: missing,)), load_target("reference"),
                      options(tmp_path)).verdict
    assert (verdict.status, verdict.marks_missing) == ("unknown", ("it_bit",))
    assert "It was not seen to bite." in verdict.sentence
