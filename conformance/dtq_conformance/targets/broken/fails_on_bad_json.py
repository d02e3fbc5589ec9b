"""Answers a body that is not JSON with a failure of its own."""

from __future__ import annotations

import json
from typing import Any

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    from dtq_reference import requests  # here, since no other engine needs the API's libraries

    async def read_json(request: Any, *, limit_bytes: int) -> Any:
        return json.loads(await request.body())

    requests.read_json = read_json


DEFECT = Defect(
    "fails_on_bad_json",
    "Answers a body that is not JSON with a failure of its own.",
    caught_by=("answers_as_promised",), also=("fields_as_promised", "secrets_stay_secret"),
    put_in=_put_in)
