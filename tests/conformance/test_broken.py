"""The broken engines as a list: each is one small override, and somebody must convict it."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from dtq_conformance.checkers import CHECKERS
from dtq_conformance.targets import broken
from dtq_conformance.targets.broken import DEFECTS
from dtq_conformance.targets.defect import Defect

pytestmark = pytest.mark.slow

OVERRIDE_LINES = 30

EACH = pytest.mark.parametrize("defect", DEFECTS.values(), ids=DEFECTS)


def override_lines(text: str) -> int:
    """The lines of a module that are neither its head, nor an import, nor the declaration."""
    return sum((node.end_lineno or node.lineno) - node.lineno + 1
               for node in ast.parse(text).body
               if not isinstance(node, ast.Import | ast.ImportFrom)
               and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
               and not (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "DEFECT"))


@EACH
def test_the_override_has_at_most_30_lines(defect: Defect) -> None:
    module = import_module(f"{broken.__name__}.{defect.name}")
    assert 0 < override_lines(Path(str(module.__file__)).read_text()) <= OVERRIDE_LINES


def test_lines_of_an_override_are_counted_without_head_imports_and_declaration() -> None:
    text = '"""Head\nof a module."""\nimport x\n\n\ndef f():\n    pass\n\n\nX = 1\n' \
           'DEFECT = Defect(\n    "d")\n'
    assert override_lines(text) == 3


@EACH
def test_it_says_what_is_wrong_and_by_whom_it_must_be_and_may_be_convicted(
        defect: Defect) -> None:
    assert defect.wrong.endswith(".")
    assert defect.caught_by
    assert {*defect.caught_by, *defect.also} <= set(CHECKERS)
    assert not set(defect.caught_by) & set(defect.also)


@pytest.mark.parametrize("checker", CHECKERS)
def test_every_checker_must_convict_somebody(checker: str) -> None:
    assert [name for name, defect in DEFECTS.items() if checker in defect.caught_by]


RUN_EACH = """
import os, runpy, sys
from dtq_conformance.targets.broken import DEFECTS
for name in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        sys.argv = ["dtq", name, "--help"]
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        runpy.run_module("dtq_conformance.targets.broken", run_name="__main__")
    print(name, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""The module as `python -m` runs it, in a process of its own for each engine; these are forked
from one that has imported everything, since importing is what takes long."""


def test_each_defect_can_be_put_into_a_fresh_process() -> None:
    done = subprocess.run([sys.executable, "-c", RUN_EACH, *DEFECTS], capture_output=True,
                          text=True, timeout=300, check=False)
    assert done.stdout.splitlines() == [f"{name} 0" for name in DEFECTS], done.stderr


def test_the_command_of_a_broken_engine_is_the_command_of_the_reference() -> None:
    done = subprocess.run([sys.executable, "-m", broken.__name__, "never_renews", "--help"],
                          capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "worker" in done.stdout


def test_the_judge_is_imported_without_what_only_the_api_needs() -> None:
    lacking = ["fastapi", "starlette", "uvicorn", "websockets", "httptools", "prometheus_client"]
    done = subprocess.run(
        [sys.executable, "-P", "-c", f"import sys; sys.modules |= dict.fromkeys({lacking!r})\n"
         "from dtq_conformance.targets import TARGETS, broken; print(len(broken.DEFECTS))"],
        capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, str(len(DEFECTS))), done.stderr
