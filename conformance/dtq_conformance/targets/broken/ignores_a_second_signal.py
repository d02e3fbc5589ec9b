"""Goes on draining when it is asked to stop a second time."""

from __future__ import annotations

from dtq_reference.worker import Worker

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    Worker._asked_to_stop = lambda self: self.hands.drain()  # type: ignore[method-assign]


DEFECT = Defect(
    "ignores_a_second_signal",
    "Goes on draining when it is asked to stop a second time.",
    caught_by=("workers_as_promised",), also=(),
    put_in=_put_in)
