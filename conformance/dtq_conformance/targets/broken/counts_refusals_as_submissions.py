"""Counts a submission that was refused as one that was accepted, too."""

from __future__ import annotations

from dtq_reference.metrics import Metrics

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    rejected = Metrics.rejected

    def rejected_and_submitted(self: Metrics, queue: str, reason: str) -> None:
        rejected(self, queue, reason)
        self.submitted(queue, "probe_task")

    Metrics.rejected = rejected_and_submitted  # type: ignore[method-assign]


DEFECT = Defect(
    "counts_refusals_as_submissions",
    "Counts a submission that was refused as one that was accepted, too.",
    caught_by=("metrics_count_right",), also=(),
    put_in=_put_in)
