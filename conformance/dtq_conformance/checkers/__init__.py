"""The checkers, each named by what must hold: one file, one `check(history)`; this is the list."""

from __future__ import annotations

from dtq_conformance.checker import Check
from dtq_conformance.checkers import (
    attempts_accounted_for,
    attempts_bounded,
    capacity_respected,
    dead_letters_complete,
    drained_on_stop,
    duplicates_justified,
    gives_way_to_its_namesake,
    kept_through_broker_trouble,
    nothing_invented,
    nothing_left_behind,
    nothing_lost,
    one_holder_at_a_time,
    one_terminal_state,
    one_way_leads_to_each_unfinished_task,
    retry_delays_in_envelope,
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
}
"""Every checker by its name."""
