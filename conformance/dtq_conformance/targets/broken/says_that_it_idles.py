"""Says of itself that it is idle, which is none of the six statuses."""

from __future__ import annotations

from dtq_reference.hands import Hands

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    say = vars(Hands)["status"].fget
    Hands.status = property(  # type: ignore[assignment, method-assign]
        lambda self: "idle" if say(self) == "ready" else say(self))


DEFECT = Defect(
    "says_that_it_idles",
    "Says of itself that it is idle, which is none of the six statuses.",
    caught_by=("workers_as_promised",), also=("answers_as_promised", "keys_as_promised"),
    put_in=_put_in)
