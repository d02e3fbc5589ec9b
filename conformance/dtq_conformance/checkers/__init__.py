"""The checkers, each named by what must hold: one file, one `check(history)`; this is the list."""

from __future__ import annotations

from dtq_conformance.checker import Check
from dtq_conformance.checkers import (
    answers_as_promised,
    attempts_accounted_for,
    attempts_bounded,
    cancelled_stays_cancelled,
    capacity_respected,
    commands_as_promised,
    dead_letters_complete,
    drained_on_stop,
    duplicates_justified,
    gives_way_to_its_namesake,
    kept_through_broker_trouble,
    no_start_after_ttl,
    nothing_invented,
    nothing_left_behind,
    nothing_lost,
    one_holder_at_a_time,
    one_task_per_key,
    one_terminal_state,
    one_way_leads_to_each_unfinished_task,
    paused_means_paused,
    requeue_begins_anew,
    retry_delays_in_envelope,
    settings_checked_at_the_start,
    strict_priority,
)

CHECKERS: dict[str, Check] = {
    "nothing_lost": nothing_lost.check,
    "nothing_invented": nothing_invented.check,
    "duplicates_justified": duplicates_justified.check,
    "one_holder_at_a_time": one_holder_at_a_time.check,
    "one_terminal_state": one_terminal_state.check,
    "attempts_bounded": attempts_bounded.check,
    "dead_letters_complete": dead_letters_complete.check,
    "drained_on_stop": drained_on_stop.check,
    "strict_priority": strict_priority.check,
    "retry_delays_in_envelope": retry_delays_in_envelope.check,
    "nothing_left_behind": nothing_left_behind.check,
    "one_way_leads_to_each_unfinished_task": one_way_leads_to_each_unfinished_task.check,
    "attempts_accounted_for": attempts_accounted_for.check,
    "capacity_respected": capacity_respected.check,
    "gives_way_to_its_namesake": gives_way_to_its_namesake.check,
    "kept_through_broker_trouble": kept_through_broker_trouble.check,
    "cancelled_stays_cancelled": cancelled_stays_cancelled.check,
    "no_start_after_ttl": no_start_after_ttl.check,
    "one_task_per_key": one_task_per_key.check,
    "paused_means_paused": paused_means_paused.check,
    "requeue_begins_anew": requeue_begins_anew.check,
    "answers_as_promised": answers_as_promised.check,
    "commands_as_promised": commands_as_promised.check,
    "settings_checked_at_the_start": settings_checked_at_the_start.check,
}
"""Every checker by its name."""
