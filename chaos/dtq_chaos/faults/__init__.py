"""The faults, one file each."""

from __future__ import annotations

from dtq_chaos.fault import FaultKind
from dtq_chaos.faults import (
    delay_link,
    delete_task,
    kill_worker,
    lose_settlement_reply,
    lose_submission_reply,
    stop_worker,
    terminate_worker,
)

FAULTS: dict[str, FaultKind] = {module.KIND.name: module.KIND for module in (
    delay_link, delete_task, kill_worker, lose_settlement_reply, lose_submission_reply,
    stop_worker, terminate_worker)}
