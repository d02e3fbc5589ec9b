"""A submission that is sent again meets its own key."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("submit", "  if known.created_at then",
            "  local owner = task.idempotency_key and owner_of_key(task)\n"
            "  if owner and owner.state == 'processing' then\n"
            "    return {'in_progress', owner.task_id, owner.status}\n"
            "  end\n"
            "  if known.created_at then")
    rewrite("submit", "  local owner = task.idempotency_key and owner_of_key(task)\n"
            "  if owner then",
            "  if owner then")


DEFECT = Defect(
    "asks_the_key_first",
    "Looks at the key of a submission before it looks at its task id.",
    caught_by=("one_task_per_key",), also=(),
    put_in=_put_in)
