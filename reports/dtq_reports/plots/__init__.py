"""Every plot of a report, in the order of the page. To add one: a file here, and a line below."""

from __future__ import annotations

from dtq_reports.plot import Plot
from dtq_reports.plots import (
    executions_per_task,
    latency_over_time,
    recovery_after_kills,
    retry_delays,
    start_order,
    starts_by_priority,
    timeline_by_worker,
)

PLOTS: dict[str, Plot] = {
    "timeline_by_worker": timeline_by_worker.draw,
    "executions_per_task": executions_per_task.draw,
    "recovery_after_kills": recovery_after_kills.draw,
    "latency_over_time": latency_over_time.draw,
    "starts_by_priority": starts_by_priority.draw,
    "start_order": start_order.draw,
    "retry_delays": retry_delays.draw,
}
