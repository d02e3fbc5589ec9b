"""Lets the audit grow for ever. It is a SHOULD: a warning."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("cancel", "'MAXLEN', '~', 10000, ", "")


DEFECT = Defect(
    "audits_without_a_bound",
    "Lets the audit grow for ever. It is a SHOULD: a warning.",
    caught_by=("keys_as_promised",), also=(),
    put_in=_put_in)
