"""A key whose task has vanished, and that nobody can have."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("submit", "  return owner.status and owner\n",
            "  owner.status = owner.status or 'queued'\n"
            "  return owner\n")


DEFECT = Defect(
    "answers_with_vanished_tasks",
    "Answers a submission of a key with its task, even if that has vanished.",
    caught_by=("keys_as_promised",), also=("nothing_left_behind", "one_task_per_key"),
    put_in=_put_in)
