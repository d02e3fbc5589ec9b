"""Says hello once: a worker that Redis has forgotten since lives on and takes nothing more."""

from __future__ import annotations

from dtq_reference.hands import Hands

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    register = Hands.register

    async def register_once(self: Hands, *, again: bool) -> None:
        if not again:
            await register(self, again=False)

    Hands.register = register_once  # type: ignore[method-assign]


DEFECT = Defect(
    "never_says_hello_again",
    "Says hello once: a worker that Redis has forgotten since lives on and takes nothing more.",
    caught_by=("nothing_lost",), also=("broker_trouble_passes",),
    put_in=_put_in)
