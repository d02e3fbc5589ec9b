"""Executes entries whatever their signature is."""

from __future__ import annotations

from dtq_reference import signing

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    def always(*_: object) -> bool:
        return True

    signing.is_genuine = always  # type: ignore[assignment]


DEFECT = Defect(
    "believes_every_signature",
    "Executes entries whatever their signature is.",
    caught_by=("secrets_stay_secret",), also=(),
    put_in=_put_in)
