"""Takes whatever the API's key begins with for the key."""

from __future__ import annotations

import hmac

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    def begins_with(given: bytes, key: bytes) -> bool:
        return key.startswith(given)

    hmac.compare_digest = begins_with  # type: ignore[assignment]


DEFECT = Defect(
    "takes_half_a_key",
    "Takes whatever the API's key begins with for the key.",
    caught_by=("secrets_stay_secret",), also=("answers_as_promised",),
    put_in=_put_in)
