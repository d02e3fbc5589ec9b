"""Starts a helper that does not end with its worker."""

from __future__ import annotations

import subprocess

from dtq_reference.worker import Worker

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    run = Worker.run

    async def run_beside_a_helper(self: Worker) -> int:
        subprocess.Popen(["sleep", "60"])
        return await run(self)

    Worker.run = run_beside_a_helper  # type: ignore[method-assign]


DEFECT = Defect(
    "leaves_a_helper_behind",
    "Starts a helper that does not end with its worker.",
    caught_by=("workers_as_promised",), also=(),
    put_in=_put_in)
