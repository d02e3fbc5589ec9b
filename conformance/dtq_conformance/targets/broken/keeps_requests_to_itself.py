"""Hears of a request to cancel with its heartbeat, and does not pass it on to the handler."""

from __future__ import annotations

from dtq_reference import heartbeat

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    heartbeat.CANCEL_REQUESTED = 3  # which renew.lua never says


DEFECT = Defect(
    "keeps_requests_to_itself",
    "Hears of a request to cancel with its heartbeat, and does not pass it on to the handler.",
    caught_by=("cancelled_stays_cancelled",), also=(),
    put_in=_put_in)
