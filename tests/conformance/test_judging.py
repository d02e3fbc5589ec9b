"""`dtq-conformance judge`: the same verdict again, and an exit code for each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from dtq_conformance.__main__ import main
from dtq_conformance.history import write

from tests.conformance.histories import (
    Part,
    T,
    absent,
    born,
    flat,
    header,
    look,
    mark,
    ran,
    submit,
)

GOOD = [submit(), born(1), ran(20, 30), look()]
LOST = [submit(), born(1), ran(20, 30), absent()]


def saved(folder: Path, story: list[Part], **fields: object) -> str:
    path = folder / "history.jsonl"
    write(path, header(**({"clauses": ["DLV-01"]} | fields)), flat(story))
    return str(path)


@pytest.mark.parametrize(("story", "code", "status"), [
    (GOOD, 0, "holds"), (LOST, 1, "violated"), ([*GOOD, mark(held=False)], 2, "unknown")])
def test_the_exit_code_is_the_verdict(
        tmp_path: Path, capsys: pytest.CaptureFixture[str], story: list[Part], code: int,
        status: str) -> None:
    path = saved(tmp_path, story)
    assert main(["judge", path]) == code
    assert status in capsys.readouterr().out
    assert main(["judge", path, "--json"]) == code
    assert json.loads(capsys.readouterr().out)["status"] == status


def test_a_violated_verdict_names_the_task_the_checker_and_how_to_run_it_again(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["judge", saved(tmp_path, LOST)])
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith(f"DLV-01 violated: Task {T} was accepted at 10 ms")
               for line in lines)
    assert lines[-1] == ("violated, convicted by nothing_lost. To run it again: "
                         "dtq-chaos replay r1")


def test_a_target_that_claims_nothing_does_not_fail(tmp_path: Path) -> None:
    assert main(["judge", saved(tmp_path, LOST, claims=["retry"])]) == 0


def test_a_history_that_cannot_be_judged_is_one_sentence_and_exit_code_4(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(saved(tmp_path, GOOD))
    whole = path.read_bytes()
    for bad in (whole[:-200], whole.replace(b'"attempt":1', b'"attempt":2', 1),
                whole.replace(b'"format":1', b'"format":2'), b"", b"{}\n"):
        path.write_bytes(bad)
        assert main(["judge", str(path)]) == 4
        out, err = capsys.readouterr()
        assert out == ""
        assert len(err.splitlines()) == 1
        assert str(path) in err
    assert main(["judge", str(tmp_path / "absent")]) == 4


def test_a_wrong_usage_is_exit_code_4(capsys: pytest.CaptureFixture[str]) -> None:
    for argv in ([], ["judge"], ["jugde", "x"], ["judge", "x", "--jsno"]):
        assert main(argv) == 4
        assert "dtq-conformance" in capsys.readouterr().err
    assert main(["judge", "--help"]) == 0


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env=os.environ | environment, check=False)


def test_a_failing_import_is_the_harness_s_failure() -> None:
    done = run("import sys; sys.modules['msgspec'] = None\n"
               "from dtq_conformance.__main__ import main; sys.exit(main(['judge', 'x']))")
    assert (done.returncode, done.stdout) == (5, "")
    assert "Traceback" in done.stderr


def test_an_uncaught_exception_is_the_harness_s_failure_and_an_interruption_is_not() -> None:
    for raised, code in (("ValueError", 5), ("KeyboardInterrupt", 130), ("MemoryError", 5),
                         ("SystemExit('gone')", 5), ("SystemExit(3)", 3)):
        done = run("import sys\nfrom dtq_conformance.exits import run_command\n"
                   f"def main(_): raise {raised}\nsys.exit(run_command(main, []))")
        assert done.returncode == code
