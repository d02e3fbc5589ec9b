"""Engines that are broken on purpose, one file and one defect each."""

from __future__ import annotations

from dtq_conformance.target import TargetKind, UnknownTarget
from dtq_conformance.targets.broken import (
    absorbs_second_redelivery,
    acknowledges_on_receipt,
    acknowledges_unstarted_on_stop,
    acknowledges_with_the_next_heartbeat,
    acknowledges_without_deleting,
    asks_the_key_first,
    beats_with_payloads,
    cancels_and_leaves_the_entry,
    counts_only_delayed_tasks,
    does_not_count_redelivery,
    enqueues_a_copy,
    expires_what_ran,
    fails_on_bad_json,
    forgets_lost_takes,
    forgets_overdue_threads,
    forgets_the_dead_letter,
    forgets_the_key_early,
    ignores_bad_settings,
    ignores_pauses,
    ignores_priorities,
    ignores_the_servers_youth,
    ignores_the_time_to_live,
    keeps_its_name,
    leaves_the_schedule_member,
    lets_dead_letters_expire,
    locks_for_ever,
    never_expires_tasks,
    never_frees_a_key,
    never_renews,
    never_says_hello_again,
    prefers_the_key_in_the_body,
    prints_refusals,
    promotes_early,
    promotes_in_two_steps,
    purges_what_runs,
    redelivers_after_a_request,
    redelivers_in_a_pause,
    removes_consumers_with_work,
    renews_for_ever,
    renews_one_by_one,
    renews_what_it_never_saw,
    requeues_beside_the_key,
    requeues_what_was_discarded,
    requeues_with_the_old_attempt,
    requeues_with_the_old_time_to_live,
    retries_without_delay,
    retries_without_growth,
    retries_without_jitter,
    runs_entries_without_a_record,
    schedules_retry_in_two_steps,
    serves_redelivered_first,
    serves_redelivered_last,
    settles_without_fencing,
    spends_released_attempts,
    starts_what_another_runs,
    stays_beside_its_namesake,
    submits_in_two_steps,
    supersedes_its_own_settlement,
    takes_after_goodbye,
    takes_live_leases,
    takes_one_of_each_level,
    tries_again_after_a_request,
)
from dtq_conformance.targets.defect import Defect, kind_of

DEFECTS: dict[str, Defect] = {module.DEFECT.name: module.DEFECT for module in (
    absorbs_second_redelivery, acknowledges_on_receipt, acknowledges_unstarted_on_stop,
    acknowledges_with_the_next_heartbeat, acknowledges_without_deleting, asks_the_key_first,
    beats_with_payloads, cancels_and_leaves_the_entry, counts_only_delayed_tasks,
    does_not_count_redelivery, enqueues_a_copy, expires_what_ran, fails_on_bad_json,
    forgets_lost_takes, forgets_overdue_threads, forgets_the_dead_letter, forgets_the_key_early,
    ignores_bad_settings, ignores_pauses, ignores_priorities, ignores_the_servers_youth,
    ignores_the_time_to_live, keeps_its_name, leaves_the_schedule_member, lets_dead_letters_expire,
    locks_for_ever, never_expires_tasks, never_frees_a_key, never_renews, never_says_hello_again,
    prefers_the_key_in_the_body, prints_refusals, promotes_early, promotes_in_two_steps,
    purges_what_runs, redelivers_after_a_request, redelivers_in_a_pause,
    removes_consumers_with_work, renews_for_ever, renews_one_by_one, renews_what_it_never_saw,
    requeues_beside_the_key, requeues_what_was_discarded, requeues_with_the_old_attempt,
    requeues_with_the_old_time_to_live, retries_without_delay, retries_without_growth,
    retries_without_jitter, runs_entries_without_a_record, schedules_retry_in_two_steps,
    serves_redelivered_first, serves_redelivered_last, settles_without_fencing,
    spends_released_attempts, starts_what_another_runs, stays_beside_its_namesake,
    submits_in_two_steps, supersedes_its_own_settlement, takes_after_goodbye, takes_live_leases,
    takes_one_of_each_level, tries_again_after_a_request)}


def load(name: str) -> TargetKind:
    """The broken engine of this name. Raises `UnknownTarget` that names what is known."""
    if name not in DEFECTS:
        raise UnknownTarget(f"There is no broken engine {name!r}. Known are "
                            f"{', '.join(DEFECTS)}.")
    return kind_of(DEFECTS[name])
