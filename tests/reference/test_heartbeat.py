"""The heartbeat's side in the worker: nothing is in hand that nothing would renew."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import msgspec
from dtq_conformance.lab import Lab
from dtq_conformance.waiting import wait_for
from dtq_reference import calls
from dtq_reference.heartbeat import LINE_LIMIT
from dtq_reference.heartbeat_process import Beat, as_text
from dtq_reference.settings import load

from tests.reference.engine import Engine
from tests.reference.processes import LIMIT_S, TIMING, wait_for_status

LATE = "#!/bin/sh\nuntil test -e '{gate}'; do sleep 0.01; done\nexec '{python}' \"$@\"\n"
"""A Python that starts once a file is there."""

WORKER = """
import sys, types
import dtq_reference.heartbeat as heartbeat
from dtq_reference.cli import main
heartbeat.sys = types.SimpleNamespace(executable=sys.argv.pop(1))
sys.exit(main(sys.argv[1:]))
"""


def test_a_worker_takes_nothing_before_its_heartbeat_beats(
        lab: Lab, engine: Engine, tmp_path: Path) -> None:
    gate, late = tmp_path / "gate", tmp_path / "late-python"
    late.write_text(LATE.format(gate=gate, python=sys.executable))
    late.chmod(0o700)
    task_id = engine.submit(task_type="probe_task", payload={"steps": []})
    later = engine.submit(task_type="probe_task", payload={"steps": []}, delay_ms=500)
    worker = lab.start(
        f"late-{task_id[:8]}", [sys.executable, "-c", WORKER, str(late), "worker", "run"],
        role="worker", environment={
            **TIMING, "DTQ_REDIS_URL": engine.settings.redis_url, "DTQ_WITNESS": str(lab.witness),
            "DTQ_KEY_PREFIX": engine.keys.prefix, "DTQ_WORKER_ID": "late"})
    wait_for(lambda: "is ready" in worker.log.read_text(), reason="the worker", limit_s=LIMIT_S)
    wait_for_status(engine, later, "queued", "running", "succeeded")
    opened_ns = time.monotonic_ns()
    gate.touch()
    wait_for_status(engine, task_id, "succeeded")
    (started,) = [line for line in lab.witness_lines()
                  if (line.task_id, line.event) == (task_id, "start")]
    assert started.at_ns > opened_ns
    worker.kill()


def test_a_beat_about_as_much_as_a_worker_can_have_in_hand_is_read() -> None:
    most = load({"DTQ_WORKER_CONCURRENCY": "1000"}).worker_concurrency
    hold = calls.pack((10, f"{2**53}-{2**20}", 10_000, "f" * 32))
    beat = Beat(calls.packed_list([hold] * most), time.monotonic(), "ours", [2] * most)
    line = json.dumps(beat, default=as_text)
    assert len(line) < LINE_LIMIT / 4
    assert msgspec.json.decode(line, type=Beat) == beat
