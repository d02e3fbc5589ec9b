"""The text format of Prometheus, read into samples."""

from __future__ import annotations

from dtq_conformance.exposition import Sample, read, total

TEXT = r"""# HELP a_total Things.
# TYPE a_total counter
a_total{queue="default",kind="x \"y\" z"} 3.0
a_total{queue="other"} 4 1700000000
# TYPE b_seconds histogram
b_seconds_bucket{le="+Inf"} 2.0
b_seconds_sum 1e-3
b_seconds_count 2.0
c +Inf
"""


def test_samples_have_names_labels_and_values() -> None:
    scrape = read(TEXT)
    assert scrape.types == {"a_total": "counter", "b_seconds": "histogram"}
    assert scrape.faults == []
    assert scrape.of("a_total") == [
        Sample("a_total", {"queue": "default", "kind": r"x \"y\" z"}, 3.0),
        Sample("a_total", {"queue": "other"}, 4.0)]
    assert [each.value for each in scrape.of("b_seconds")] == [2.0, 0.001, 2.0]


def test_sums_go_over_processes_and_by_labels() -> None:
    scrapes = [read(TEXT), read('a_total{queue="other"} 1')]
    assert (total(scrapes, "a_total"), total(scrapes, "a_total", queue="other")) == (8.0, 5.0)


def test_what_is_not_in_the_format_is_told() -> None:
    assert read("hello world\na_total one").faults == ["hello world", "a_total one"]
