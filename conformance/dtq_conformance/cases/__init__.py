"""The cases: short, faultless or with a single kill, one file per family of clauses.

A case is a trial: it works the bench in plain steps, and the checkers judge what came out.
"""

from __future__ import annotations

from dtq_conformance.cases import (
    attempts,
    backpressure,
    cancel,
    command_line,
    configuration,
    dead_letters,
    delivery,
    events,
    fields,
    handlers,
    http,
    idempotency,
    key_space,
    keys,
    leases,
    metrics,
    neighbours,
    pause,
    priority,
    retry_delays,
    security,
    shutdown,
    submission,
    sync_handlers,
    time_to_live,
    workers,
)
from dtq_conformance.trial import Trial

CASES: dict[str, Trial] = {case.name: case for module in (
    attempts, backpressure, cancel, command_line, configuration, dead_letters, delivery,
    events, fields, handlers, http, idempotency, key_space, keys, leases, metrics,
    neighbours, pause, priority, retry_delays, security, shutdown, submission, sync_handlers,
    time_to_live, workers)
    for case in module.CASES}
