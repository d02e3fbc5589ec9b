"""What can go wrong for a caller: a code for machines, a sentence for people."""

from __future__ import annotations

from typing import Any

HTTP_STATUS = {
    "INVALID_TASK": 400, "UNKNOWN_TASK_TYPE": 400, "UNAUTHENTICATED": 401, "FORBIDDEN": 403,
    "TASK_NOT_FOUND": 404, "QUEUE_NOT_FOUND": 404, "WORKER_NOT_FOUND": 404,
    "IDEMPOTENCY_IN_PROGRESS": 409, "CANCEL_REQUESTED": 409, "NOT_REQUEUEABLE": 409,
    "TASK_TERMINAL": 410, "PAYLOAD_TOO_LARGE": 413, "QUEUE_FULL": 429,
    "BROKER_UNAVAILABLE": 503, "BROKER_UNREACHABLE": 503,
}
"""Every code of a refusal, with its HTTP status. BROKER_UNAVAILABLE: surely not done, Redis
refuses for now; BROKER_UNREACHABLE: nobody can say whether it was done."""


class DtqError(Exception):
    """A request that was refused and changed nothing. `code` is a key of `HTTP_STATUS`; `details`
    are facts for machines: the task_id or the status that stands in the way."""

    def __init__(self, code: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = details


class SettingsError(Exception):
    """A DTQ_ variable has a value that cannot be used; the message names the variable."""


class BrokerUnreachable(Exception):
    """Redis gave no answer in time. What was asked may or may not have happened."""


class RetryableError(Exception):
    """Raised by a handler: this attempt failed, another one may succeed."""


class PermanentError(Exception):
    """Raised by a handler: no further attempt can succeed."""
