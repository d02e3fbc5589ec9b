"""Keeps the record of a task for twice as long as the settings say."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    for script in ("settle", "cancel", "promote"):
        rewrite(script, "redis.call('EXPIRE', task.key, call.retention_s) end\n  if task.idem",
                "redis.call('EXPIRE', task.key, 2 * call.retention_s) end\n  if task.idem")


DEFECT = Defect(
    "keeps_tasks_for_too_long",
    "Keeps the record of a task for twice as long as the settings say.",
    caught_by=("keys_as_promised",), also=(),
    put_in=_put_in)
