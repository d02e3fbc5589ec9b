"""The cases: short, faultless or with a single kill, one file per family of clauses.

A case is a trial: it works the bench in plain steps, and the checkers judge what came out.
"""

from __future__ import annotations

from dtq_conformance.cases import (
    attempts,
    dead_letters,
    delivery,
    key_space,
    leases,
    priority,
    retry_delays,
    shutdown,
    submission,
)
from dtq_conformance.trial import Trial

CASES: dict[str, Trial] = {case.name: case for module in (
    attempts, dead_letters, delivery, key_space, leases, priority, retry_delays, shutdown,
    submission) for case in module.CASES}
