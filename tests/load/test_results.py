"""The report: its ratios, the reasons where there are none, and the file that it is saved as."""

from __future__ import annotations

import json

import msgspec
import pytest
from dtq_load.bench import results
from dtq_load.bench.results import Report

from tests.load.bench_reports import FULL, report, row

NEEDED = {"one_worker_vs_bullmq", "one_worker_vs_best_python", "two_workers_vs_bullmq",
          "idle_p50_vs_best_peer", "round_trips_per_task", "rss_mb", "cost_1m_vs_1k"}


def test_ratios_are_ours_by_the_best_of_the_others() -> None:
    assert FULL.ratios == {
        "one_worker_vs_bullmq": 2.0, "one_worker_vs_best_python": 7.5, "two_workers_vs_bullmq": 2.0,
        "idle_p50_vs_best_peer": 0.6, "round_trips_per_task": 0.05, "rss_mb": 50,
        "rss_leader_mb": 37, "cost_1m_vs_1k": pytest.approx(1.1),
        "one_worker_vs_reference_loop": 0.9,
        "server_cpu_vs_bare_commands": pytest.approx(3.2),
        "server_cpu_vs_own_commands": pytest.approx(1.6),
        "idle_p50_vs_bare_calls": pytest.approx(3.0),
        "idle_p50_vs_own_calls": pytest.approx(1.5), "http_one_by_one_vs_empty": 0.5,
        "http_batch_vs_empty": 0.1}
    assert FULL.why_null == {}


def test_a_ratio_that_lacks_a_side_is_null_with_a_reason() -> None:
    found = report(row("dtq", one_worker_per_s=9_000))
    assert found.ratios.keys() >= NEEDED
    assert found.ratios["one_worker_vs_bullmq"] is None
    assert found.why_null["one_worker_vs_bullmq"] == "one_worker_per_s of bullmq was not measured"
    assert found.ratios.keys() == found.why_null.keys(), "nothing here has two sides"


def test_without_this_engine_it_is_this_engine_that_lacks() -> None:
    found = report(row("bullmq", language="Node", one_worker_per_s=4_500))
    assert found.why_null["one_worker_vs_bullmq"] == "one_worker_per_s of dtq was not measured"


def test_a_peer_of_another_language_is_no_python_peer() -> None:
    found = report(row("dtq", one_worker_per_s=8.0), row("bullmq", language="Node",
                                                         one_worker_per_s=4.0))
    assert found.ratios["one_worker_vs_bullmq"] == 2
    assert found.ratios["one_worker_vs_best_python"] is None


def test_the_file_is_read_back_as_it_was_and_holds_what_others_look_for() -> None:
    text = msgspec.json.encode(FULL)
    assert msgspec.json.decode(text, type=Report) == FULL
    plain = json.loads(text)
    assert plain["format"] == 1
    assert plain["ratios"].keys() >= NEEDED
    assert plain["machine"].keys() >= {"cpus", "python", "node", "load_before"}
    ours = plain["peers"][0]
    assert ours["figures"]["rss_mb"] == {"median": 50, "low": 50, "high": 50, "values": [50]}
    assert ours["guarantee"] and ours["settings"]


def test_the_machine_is_described() -> None:
    found = results.machine(load_before=0.5)
    assert found.cpus >= 1
    assert found.python.count(".") == 2
