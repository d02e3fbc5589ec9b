"""The one answer, and the numbers under it, for runs that ended well, badly and not decided."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import msgspec
from dtq_conformance.history import Fault
from dtq_conformance.verdict import Status, Verdict
from dtq_reports.read import Run
from dtq_reports.summary import answer, markdown, merged, print_summary, status_of, status_of_all
from dtq_reports.words import NARROW_SPACE
from rich.console import Console


def with_row(run: Run, clause: str, status: Status) -> Run:
    """The same run, with another status of one clause and of the whole."""
    row = Verdict(clause=clause, checker="x", status=status, judged=1, sentence="So it is.")
    rows = (*(r for r in run.verdict.rows if r.clause != clause), row)
    return replace(run, verdict=msgspec.structs.replace(run.verdict, rows=rows, status=status))


def test_a_held_run_is_answered_with_no_and_counted_from_its_history(held: Run) -> None:
    said = answer([held])
    assert (said.word, said.status) == ("No.", "holds")
    assert said.sentence == \
        "21 tasks accepted, 21 finished, 0 lost, while 2 workers were killed."
    assert said.besides == ()


def test_a_lost_task_is_answered_with_yes(violated: Run) -> None:
    said = answer([violated])
    assert (said.word, said.status) == ("Yes.", "violated")
    assert "20 finished, 1 lost" in said.sentence


def test_what_else_was_violated_stands_beside_a_no(held: Run) -> None:
    said = answer([with_row(held, "DLV-05", "violated")])
    assert said.word == "No."
    assert [(r.status, r.sentence) for r in said.besides] == \
        [("violated", "1 other clause was violated: DLV-05.")]


def test_a_clause_of_loss_that_is_unknown_is_never_answered_with_no(held: Run) -> None:
    said = answer([with_row(held, "DLV-01", "unknown")])
    assert (said.word, said.status) == ("Not known.", "unknown")


def test_a_run_that_accepted_nothing_is_never_answered_with_no(held: Run) -> None:
    empty = replace(held, history=replace(held.history, records=()))
    assert answer([empty]).word == "Not known."


def test_an_unfinished_task_that_the_judge_could_not_decide_is_not_called_lost(
        violated: Run) -> None:
    said = answer([with_row(violated, "DLV-01", "unknown")])
    assert said.word == "Not known."
    assert "20 finished, 0 lost, 1 of which nobody can say" in said.sentence


def test_what_a_power_failure_may_have_undone_is_not_counted_and_that_is_said(
        held: Run, violated: Run) -> None:
    """Nobody is asked what became of it, be it there again or not."""
    for run in (held, violated):
        begin, end = (Fault(at_ns=at_ns, fault="cut_power", number=99, phase=phase,
                            effect="power_lost", detail={"kept_ns": 0})
                      for phase, at_ns in (("begin", 1), ("end", run.history.end_ns)))
        rows = tuple(row for row in run.verdict.rows if row.status == "holds")
        cut = replace(run, history=replace(run.history, records=(*run.history.records, begin, end)),
                      verdict=msgspec.structs.replace(run.verdict, rows=rows))
        said = answer([cut, held])
        assert (said.word, said.sentence) == ("No.", answer([held]).sentence.replace("2 w", "4 w"))
        assert [(r.status, r.sentence.partition(":")[0]) for r in said.besides] == [
            ("not claimed", "21 accepted tasks were not counted")]


def test_a_task_that_the_harness_deleted_itself_is_told_apart(held: Run, canary: Run) -> None:
    said = answer([held, canary])
    assert said.word == "No."
    assert said.sentence.startswith("21 tasks accepted")
    assert said.besides[0].sentence == (
        "In 1 control run the harness itself deleted 1 accepted task, and the judge noticed, as "
        "it must. It is not counted above.")
    assert status_of_all([held, canary]) == "holds"


def test_a_control_run_that_was_not_convicted_is_a_violation(held: Run, canary: Run) -> None:
    verdict = msgspec.structs.replace(canary.verdict, status="holds", convicted_by=())
    missed = replace(canary, verdict=verdict)
    assert status_of(missed) == "violated"
    assert "did NOT notice" in answer([held, missed]).besides[0].sentence


def test_a_control_run_that_stands_alone_is_what_its_verdict_says(canary: Run) -> None:
    assert status_of_all([canary]) == "violated"
    assert answer([canary]).word == "Yes."


def test_clauses_are_merged_to_their_worst_status_with_the_runs_counted(
        held: Run, violated: Run, canary: Run) -> None:
    rows = {row.clause: row for row in merged([held, violated, canary])}
    assert rows["DLV-01"].status == "violated"
    assert rows["DLV-01"].sentence.startswith("worker_killed_twice: Task ")
    assert rows["DLV-01"].runs == {"holds": ("worker_killed_mid_handler",),
                                   "violated": ("worker_killed_twice",)}
    assert rows["DLV-09"].status == "holds"


def test_the_terminal_gets_a_row_for_each_run_and_the_answer(batch: Path) -> None:
    out = io.StringIO()
    print_summary(batch, console=Console(file=out))
    text = out.getvalue().replace(NARROW_SPACE, " ")
    assert "✓ held                   burst_under_fire" in text
    assert "✗ violated               worker_killed_twice" in text
    assert "✗ violated (as it must)  canary" in text
    assert "Was anything lost? Yes. 642 tasks accepted, 641 finished, 1 lost" in text


def test_the_summary_is_there_as_markdown_too(batch: Path) -> None:
    text = markdown(batch).replace(NARROW_SPACE, " ")
    assert text.startswith("**Was anything lost? Yes.** 642 tasks accepted")
    assert "| ✓ held | burst_under_fire | chaos | reference | 600 | 600 | 608 | 1 |" in text
