"""A schedule that all installations of a server have in common."""

from __future__ import annotations

from dtq_reference.keys import Keys

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    begin = Keys.__init__

    def begin_with_one_schedule(self: Keys, prefix: str) -> None:
        begin(self, prefix)
        self.schedule = "dtq:retry:schedule"

    Keys.__init__ = begin_with_one_schedule  # type: ignore[method-assign]


DEFECT = Defect(
    "shares_its_schedule",
    "Keeps its schedule under the default prefix, whatever its own is.",
    caught_by=("keys_as_promised",), also=(),
    put_in=_put_in)
