"""Says of a refusal by the server that nobody can say whether it was done."""

from __future__ import annotations

from dtq_reference import transport
from redis.exceptions import RedisError

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    fate_of = transport.fate_of

    def never_sure(error: RedisError) -> transport.Fate:
        fate = fate_of(error)
        return "unknown" if fate == "refused for now" else fate

    transport.fate_of = never_sure


DEFECT = Defect(
    "calls_refusals_unknown",
    "Says of a refusal by the server that nobody can say whether it was done.",
    caught_by=("broker_trouble_passes",), also=(),
    put_in=_put_in)
