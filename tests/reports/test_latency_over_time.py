"""The plot of latencies: a point for each task that ended well, and the quantiles."""

from __future__ import annotations

import dataclasses

import numpy as np
from dtq_conformance.history import History
from dtq_reports.plots import latency_over_time
from dtq_reports.read import Run

from tests.conformance import histories


def test_every_task_that_ended_well_is_a_point(burst: Run) -> None:
    drawing = latency_over_time.draw(burst)
    assert drawing is not None
    points = {str(line.get_marker()): len(line.get_xydata())
              for line in drawing.figure.axes[0].lines if line.get_linestyle() == "None"}
    assert points == {".": 592, "x": 8}


def test_its_title_gives_the_quantiles(burst: Run) -> None:
    drawing = latency_over_time.draw(burst)
    took = [wait.took_s for wait in latency_over_time.waits_of(burst)]
    assert drawing is not None
    assert drawing.title == (
        f"Half of 600 tasks were done within {np.median(took):.2f} s, 99 % within "
        f"{np.quantile(took, 0.99):.2f} s, the slowest after {max(took):.2f} s")


def test_a_task_that_was_submitted_for_later_is_due_later(held: Run) -> None:
    records = histories.flat([histories.submit(at=100, delay_ms=500), histories.ran(700, 750)])
    run = dataclasses.replace(held, history=History(histories.header(), records))
    (wait,) = latency_over_time.waits_of(run)
    assert round(wait.took_s, 3) == 0.15
    assert round(wait.done_s, 3) == 0.75


def test_a_task_that_did_not_end_well_has_no_latency(held: Run) -> None:
    records = histories.flat([histories.submit(), histories.ran(20, 30, outcome="failed")])
    run = dataclasses.replace(held, history=History(histories.header(), records))
    assert latency_over_time.waits_of(run) == []
    assert latency_over_time.draw(run) is None
