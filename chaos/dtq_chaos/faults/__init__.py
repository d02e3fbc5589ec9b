"""The faults, one file each."""

from __future__ import annotations

from dtq_chaos.fault import FaultKind
from dtq_chaos.faults import (
    cut_link,
    cut_power,
    delay_link,
    delete_task,
    drop_group,
    exhaust_memory,
    flush_scripts,
    forge_entry,
    forget_groups,
    kill_all_workers,
    kill_leader,
    kill_producer,
    kill_worker,
    lose_replies,
    lose_settlement_reply,
    lose_submission_reply,
    lose_take_reply,
    refuse_writes,
    restart_broker,
    start_namesake,
    starve_link,
    stop_worker,
    terminate_worker,
)

FAULTS: dict[str, FaultKind] = {module.KIND.name: module.KIND for module in (
    cut_link, cut_power, delay_link, delete_task, drop_group, exhaust_memory, flush_scripts,
    forge_entry, forget_groups, kill_all_workers, kill_leader, kill_producer, kill_worker,
    lose_replies, lose_settlement_reply, lose_submission_reply, lose_take_reply, refuse_writes,
    restart_broker, start_namesake, starve_link, stop_worker, terminate_worker)}
