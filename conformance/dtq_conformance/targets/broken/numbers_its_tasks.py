"""Gives tasks ids that follow each other."""

from __future__ import annotations

import itertools
import uuid
from types import SimpleNamespace

from dtq_reference import task

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    numbers = itertools.count(uuid.uuid4().int)
    following = SimpleNamespace(uuid4=lambda: uuid.UUID(int=next(numbers)))
    vars(task)["uuid"] = following


DEFECT = Defect(
    "numbers_its_tasks",
    "Gives tasks ids that follow each other.",
    caught_by=("fields_as_promised",), also=(),
    put_in=_put_in)
