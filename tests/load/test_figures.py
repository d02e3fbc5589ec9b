"""Median, range and quantiles, and the names of figures."""

from __future__ import annotations

import pytest
from dtq_load.bench.figures import FIGURES, Figure, depth_figure, figure, kind_of, quantile


def test_a_figure_is_the_median_and_the_range_of_its_rounds() -> None:
    assert figure([3.0, 1.0, 2.0]) == Figure(2.0, 1.0, 3.0, [3.0, 1.0, 2.0])


@pytest.mark.parametrize(("share", "expected"), [(0.5, 50), (0.95, 95), (0.99, 99), (1.0, 100)])
def test_a_quantile_is_a_value_that_was_measured(share: float, expected: int) -> None:
    assert quantile([float(value) for value in range(1, 101)], share) == expected


def test_a_quantile_of_one_value_is_that_value() -> None:
    assert quantile([7.0], 0.5) == quantile([7.0], 0.99) == 7.0


def test_every_figure_has_a_title_and_so_has_each_depth() -> None:
    assert all(kind_of(name).title for name in FIGURES)
    assert kind_of(depth_figure(1_000_000)).title == "cost of a task, 1,000,000 queued"
