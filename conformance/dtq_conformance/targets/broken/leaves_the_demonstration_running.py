"""`dtq demo` that ends and leaves its broker, its API and its worker to themselves."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    from dtq_reference import demo

    demo._stop = lambda process: None


DEFECT = Defect(
    "leaves_the_demonstration_running",
    "Ends its demonstration without ending what it has started. It is a SHOULD: a warning.",
    caught_by=("commands_as_promised",), also=(),
    put_in=_put_in)
