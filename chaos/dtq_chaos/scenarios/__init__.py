"""The scenarios, one file each, named by their story."""

from __future__ import annotations

from dtq_chaos.scenario import Scenario
from dtq_chaos.scenarios import (
    all_workers_killed_at_once,
    bandwidth_too_low,
    broker_killed_after_its_answers,
    broker_out_of_memory,
    broker_refuses_writes,
    broker_restarted_under_holders,
    canary,
    entry_without_a_record,
    group_lost_mid_handler,
    groups_forgotten,
    latency_on_every_link,
    link_cut_and_healed,
    poison_task,
    power_fails,
    producer_killed_mid_submission,
    replaced_worker_killed,
    scheduler_leader_killed,
    scripts_forgotten,
    settlement_reply_lost,
    submission_reply_lost,
    take_reply_lost,
    take_reply_lost_before_a_pause,
    worker_killed_hands_full,
    worker_killed_mid_handler,
    worker_killed_twice,
    worker_replaced_under_its_id,
    worker_restarted_under_its_id,
    worker_stopped_past_its_lease,
    worker_terminated_after_a_lost_take,
    worker_terminated_between_take_and_start,
    worker_terminated_beyond_drain_limit,
    worker_terminated_mid_handler,
)

SCENARIOS: dict[str, Scenario] = {module.SCENARIO.name: module.SCENARIO for module in (
    all_workers_killed_at_once, bandwidth_too_low, broker_killed_after_its_answers,
    broker_out_of_memory, broker_refuses_writes, broker_restarted_under_holders, canary,
    entry_without_a_record, group_lost_mid_handler, groups_forgotten, latency_on_every_link,
    link_cut_and_healed, poison_task, power_fails, producer_killed_mid_submission,
    replaced_worker_killed, scheduler_leader_killed, scripts_forgotten, settlement_reply_lost,
    submission_reply_lost, take_reply_lost, take_reply_lost_before_a_pause,
    worker_killed_hands_full, worker_killed_mid_handler, worker_killed_twice,
    worker_replaced_under_its_id, worker_restarted_under_its_id, worker_stopped_past_its_lease,
    worker_terminated_after_a_lost_take, worker_terminated_between_take_and_start,
    worker_terminated_beyond_drain_limit, worker_terminated_mid_handler)}
