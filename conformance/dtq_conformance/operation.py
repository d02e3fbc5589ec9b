"""What the harness asked of a target, when, and how it ended.

First word of the vocabulary: a target's answers enter the house here and become lines of a
history. An outcome is chosen in one place, `outcome_of`, and is *unknown* unless proven.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

Outcome = Literal["ok", "refused", "unknown"]
"""ok: it surely happened. refused: it surely did not. unknown: nobody can say."""


class Operation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True,
                tag_field="kind", tag="operation"):
    """One request to the target and its answer.

    `name` is that of an ability of the target: submit, look, dead_letters, cancel, pause, resume,
    requeue, discard, purge_dead_letters, purge; a `watch` asks nobody: it says up to when the
    witness file was watched for a task that the target does not show. Times are CLOCK_MONOTONIC
    nanoseconds; `answered_ns` is when the outcome was known here, a timeout included.
    """

    name: str
    asked_ns: int
    answered_ns: int
    outcome: Outcome
    task_id: str | None = None
    request: dict[str, Any] = {}
    answer: dict[str, Any] = {}


class Refused(Exception):
    """The target answered that it did not, and will not, do what was asked."""

    def __init__(self, code: str, message: str, **details: Any) -> None:
        """`details` are facts that the answer had beside: the task or the status in the way."""
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.details = details


def outcome_of(error: BaseException | None) -> Outcome:
    """Tell the outcome of a call from the exception that it ended with, if any.

    Only `Refused` proves that nothing happened. A lost connection, a timeout or any other
    failure may have struck after the server had done the work.
    """
    if error is None:
        return "ok"
    return "refused" if isinstance(error, Refused) else "unknown"


def by_task(records: Iterable[Any]) -> dict[str, list[Any]]:
    """Each task id with its records, in their order; records of no task are left out."""
    found: dict[str, list[Any]] = {}
    for record in records:
        if record.task_id is not None:
            found.setdefault(record.task_id, []).append(record)
    return found


def answer_of(error: BaseException | None) -> dict[str, Any]:
    """The answer of an operation that ended with this exception, or well."""
    if error is None:
        return {}
    if isinstance(error, Refused):
        return {"code": error.code, "message": error.message, **error.details}
    return {"error": f"{type(error).__name__}: {error}"}
