"""Makes a new task of an orphan's letter when that is asked back."""

from __future__ import annotations

from dtq_reference.calls import Actor
from dtq_reference.operations import Operations, Steps

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    requeue = Operations.requeue

    def requeue_whatever_there_is(self: Operations, task_id: str, by: Actor) -> Steps[str]:
        [status] = yield from self._known(task_id, "status")
        if status is not None:
            return (yield from requeue(self, task_id, by))
        letter = yield from self.dead_letter(task_id)
        return (yield from self.submit(task_id=task_id, task_type=letter.task_type,
                                       payload=letter.payload)).status

    Operations.requeue = requeue_whatever_there_is  # type: ignore[method-assign]


DEFECT = Defect(
    "requeues_what_has_no_task",
    "Makes a new task of an orphan's letter when that is asked back.",
    caught_by=("requeue_begins_anew",), also=("dead_letters_complete", "nothing_invented"),
    put_in=_put_in)
