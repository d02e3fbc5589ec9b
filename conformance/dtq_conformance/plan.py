"""What a task's payload lets a checker expect of its handler, attempt by attempt.

Comes in: the request of a submission. Goes out: how the handler of a given attempt is bound to
end, and after how long. Only `probe_task` has a plan; of another task nothing is expected.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

Ending = Literal["ok", "retryable", "permanent", "dies"]


def ending(request: Mapping[str, Any], attempt: int) -> Ending | None:
    """How the handler of this attempt ends if nothing befalls it; None if nobody can tell.

    An arbitrary exception, and a result that is not JSON, are permanent failures.
    """
    if request.get("task_type", "probe_task") != "probe_task":
        return None
    for step in _steps(request, attempt):
        if "kill" in step or "exit" in step:
            return "dies"
        if "fail" in step:
            return "retryable" if step["fail"] == "retryable" else "permanent"
        if "return_unserialisable" in step:
            return "permanent"
        if "return" in step or "return_bytes" in step:
            return "ok"
    return "ok"


def says_permanent(request: Mapping[str, Any], attempt: int) -> bool:
    """Whether the handler itself calls the failure of this attempt a permanent one."""
    failures = [step["fail"] for step in _steps(request, attempt) if "fail" in step]
    return ending(request, attempt) == "permanent" and failures[:1] == ["permanent"]


def duration_ms(request: Mapping[str, Any], attempt: int) -> int | None:
    """How long the handler of this attempt works, up to the step that ends it; None if unknown."""
    if ending(request, attempt) is None:
        return None
    total = 0
    for step in _steps(request, attempt):
        total += sum(int(step.get(kind, 0)) for kind in ("sleep", "busy", "block"))
        if any(kind in step for kind in ("kill", "exit", "fail")):
            break
    return total


def holds_up_its_worker(request: Mapping[str, Any], attempt: int) -> bool:
    """Whether the handler of this attempt blocks the event loop, or holds the interpreter's lock:
    what else its process was about to do then waits for it."""
    return any("block" in step or "busy" in step for step in _steps(request, attempt))


def is_over(request: Mapping[str, Any], attempt: int, outcome: str | None, *,
            retried: bool) -> bool:
    """Whether a task is at its end when this attempt of its handler ended so, judged without the
    target's word. `retried`: the target claims to try a retryable failure again."""
    if outcome != "failed":
        return outcome == "ok"
    most = request.get("max_attempts", attempt)
    return not retried or ending(request, attempt) == "permanent" or attempt >= most


def returns(request: Mapping[str, Any]) -> list[Any]:
    """The value that a `return` step gives, in a list; empty if the payload has none."""
    return [step["return"] for step in _all_steps(request) if "return" in step][:1]


def tells_its_holder(request: Mapping[str, Any]) -> bool:
    """True if the result is to be {attempt, worker_id, pid} of the process that executed it."""
    if request.get("task_type", "probe_task") != "probe_task":
        return False
    return not any(kind in step for step in _all_steps(request)
                   for kind in ("return", "return_bytes", "return_unserialisable", "once"))


def _all_steps(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    payload = request.get("payload")
    steps = payload.get("steps") if isinstance(payload, dict) else None
    return [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []


def _steps(request: Mapping[str, Any], attempt: int) -> Iterator[dict[str, Any]]:
    """The steps that this attempt takes: a failure or a death may be for early attempts only."""
    for step in _all_steps(request):
        if attempt <= step.get("until_attempt", attempt):
            yield step
