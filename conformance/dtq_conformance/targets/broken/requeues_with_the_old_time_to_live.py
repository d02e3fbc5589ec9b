"""A requeue that does not count the time anew."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("requeue", "'worker_id', 'expires_at')", "'worker_id')")
    rewrite("requeue", "if task.ttl_ms then redis.call('HSET', task.key, 'expires_at', NOW + "
            "task.ttl_ms) end\n",
            "")


DEFECT = Defect(
    "requeues_with_the_old_time_to_live",
    "Requeues a task with the time to live of its first life.",
    caught_by=("no_start_after_ttl",), also=(),
    put_in=_put_in)
