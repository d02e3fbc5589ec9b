"""The picture of a benchmark: its title, what is drawn, and files that hold none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from dtq_conformance.exits import CONFORMS, INPUT
from dtq_reports import benchmark
from dtq_reports.__main__ import main


def figure(*values: float) -> dict[str, Any]:
    return {"median": sorted(values)[len(values) // 2], "low": min(values), "high": max(values),
            "values": list(values)}


def peer(name: str, **figures: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "version": "1", "size": "1 × 8", "guarantee": f"What {name} promises.",
            "figures": figures}


def made(*peers: dict[str, Any]) -> dict[str, Any]:
    return {"ratios": {}, "peers": list(peers), "rounds": 3, "broker": "valkey 9",
            "persistence": "none", "machine": {"cpus": 2, "cpu": "a processor"}}


FULL = made(peer("dtq", one_worker_per_s=figure(8_000, 9_000, 10_000), rss_mb=figure(50),
                 cost_us_at_1000=figure(100), cost_us_at_10000=figure(105)),
            peer("huey", one_worker_per_s=figure(1_000)),
            peer("bullmq", one_worker_per_s=figure(4_500)), peer("celery"))


@pytest.mark.parametrize(("found", "title"), [
    (FULL, "One worker of dtq drained 9,000 tasks/s, 2.0 times the next best peer, bullmq"),
    (made(peer("dtq", one_worker_per_s=figure(9_000))), "One worker of dtq drained 9,000 tasks/s"),
    (made(peer("huey", rss_mb=figure(1))), "Drained by one worker: dtq was not measured")])
def test_the_title_is_a_sentence_with_a_number(found: dict[str, Any], title: str) -> None:
    assert benchmark.title_of(found) == title


def test_a_bar_is_a_median_and_a_panel_that_would_be_empty_is_left_out() -> None:
    sheet = benchmark.draw(FULL)
    titles = [axes.get_title(loc="left") for axes in sheet.axes]
    assert titles == ["drained by one worker, tasks/s →", "memory of a worker, MB ←",
                      "cost of a task, µs, by tasks queued ↓"]
    assert [bar.get_width() for bar in sheet.axes[0].patches] == [4_500, 1_000, 9_000]


def test_each_peer_that_is_drawn_stands_there_with_its_guarantee() -> None:
    words = benchmark.guarantees(benchmark.drawn(FULL))
    assert words.splitlines() == [f"{name} 1 (1 × 8): What {name} promises."
                                  for name in ("dtq", "huey", "bullmq")]


def test_the_command_writes_a_picture_beside_the_file(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "bench.json"
    saved.write_text(json.dumps(FULL))
    assert main([str(saved)]) == CONFORMS
    picture = Path(capsys.readouterr().out.strip())
    assert picture == tmp_path / "bench.png"
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("text", ["[1]", "{}", "not JSON"])
def test_another_file_is_refused_with_a_sentence(
        text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "other.json"
    saved.write_text(text)
    assert main([str(saved)]) == INPUT
    assert "other.json" in capsys.readouterr().err
