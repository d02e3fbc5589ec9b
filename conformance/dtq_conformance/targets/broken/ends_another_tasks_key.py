"""The end of a task that is told to whoever has its key by now."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("settle", "    if record and cjson.decode(record).task_id == task.task_id then\n",
            "    if record then\n")


DEFECT = Defect(
    "ends_another_tasks_key",
    "Settles a task and ends its key, whosesoever that is by then.",
    caught_by=("keys_as_promised",), also=(),
    put_in=_put_in)
