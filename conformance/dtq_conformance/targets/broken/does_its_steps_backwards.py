"""Does the steps of the probe from the last to the first."""

from __future__ import annotations

from typing import Any

from dtq_reference import demo_tasks

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    forwards = demo_tasks._result

    async def backwards(steps: list[dict[str, Any]], ctx: Any) -> Any:
        return await forwards(steps[::-1], ctx)

    demo_tasks._result = backwards


DEFECT = Defect(
    "does_its_steps_backwards",
    "Does the steps of the probe from the last to the first.",
    caught_by=("handlers_as_promised",),
    also=("cancelled_stays_cancelled", "dead_letters_complete", "fields_as_promised",
          "no_start_after_ttl", "nothing_lost", "one_event_per_transition", "one_terminal_state",
          "retry_delays_in_envelope", "strict_priority"),
    put_in=_put_in)
