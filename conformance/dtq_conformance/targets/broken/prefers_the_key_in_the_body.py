"""Takes the idempotency key of the body where there is one, and the header's only otherwise."""

from __future__ import annotations

from typing import Any

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    from dtq_reference import requests  # here, since no other engine needs the API's libraries

    with_key = requests.with_key

    def body_first(fields: Any, header: str | None) -> Any:
        has_one = isinstance(fields, dict) and "idempotency_key" in fields
        return fields if has_one else with_key(fields, header)

    requests.with_key = body_first


DEFECT = Defect(
    "prefers_the_key_in_the_body",
    "Takes the idempotency key of the body where there is one, and the header's only otherwise.",
    caught_by=("answers_as_promised",), also=("one_task_per_key",),
    put_in=_put_in)
