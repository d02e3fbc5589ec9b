"""The workloads, by name; one file each, and this is the one list of them."""

from __future__ import annotations

from dtq_load.workload import Workload
from dtq_load.workloads import burst_under_fire, steady_stream

WORKLOADS: dict[str, Workload] = {
    "burst_under_fire": burst_under_fire.WORKLOAD,
    "steady_stream": steady_stream.WORKLOAD,
}
