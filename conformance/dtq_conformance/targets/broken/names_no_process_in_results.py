"""Names process 0 in the results of its probe."""

from __future__ import annotations

from typing import Any

from dtq_reference import demo_tasks

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    do_steps = demo_tasks._result

    async def by_nobody(steps: list[dict[str, Any]], ctx: Any) -> Any:
        result = await do_steps(steps, ctx)
        return {**result, "pid": 0} if isinstance(result, dict) and "pid" in result else result

    demo_tasks._result = by_nobody


DEFECT = Defect(
    "names_no_process_in_results",
    "Names process 0 in the results of its probe.",
    caught_by=("handlers_as_promised", "one_terminal_state"), also=(),
    put_in=_put_in)
