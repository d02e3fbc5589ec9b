"""The faults, one file each."""

from __future__ import annotations

from dtq_chaos.fault import FaultKind
from dtq_chaos.faults import (
    cut_link,
    delay_link,
    delete_task,
    kill_all_workers,
    kill_leader,
    kill_producer,
    kill_worker,
    lose_settlement_reply,
    lose_submission_reply,
    starve_link,
    stop_worker,
    terminate_worker,
)

FAULTS: dict[str, FaultKind] = {module.KIND.name: module.KIND for module in (
    cut_link, delay_link, delete_task, kill_all_workers, kill_leader, kill_producer, kill_worker,
    lose_settlement_reply, lose_submission_reply, starve_link, stop_worker, terminate_worker)}
