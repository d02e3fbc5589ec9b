"""SIGSTOP a worker's process group and let it go on later. Parameters: worker, or holder_of."""

from __future__ import annotations

from dtq_chaos.fault import Bite, FaultKind, Stage
from dtq_chaos.schedule import Entry


def _begin(stage: Stage, entry: Entry) -> Bite:
    victim = stage.victim(entry)
    victim.process.stop()
    return Bite(victim.process.pids(), stage.hands(victim))


def _end(stage: Stage, bite: Bite) -> None:
    """Look at the tasks that the victim held once more, so that what it changes would show."""
    for task_id in bite.detail["open"]:
        stage.bench.look(task_id)
    stage.worker(bite.detail["worker"]).process.resume()


KIND = FaultKind("stop_worker", "stopped", _begin, _end)
