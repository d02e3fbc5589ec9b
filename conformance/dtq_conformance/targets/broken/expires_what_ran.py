"""A time to live that is looked at when an attempt ends."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("settle", "  if status == 'succeeded' then\n",
            "  local expires_at = redis.call('HGET', task.key, 'expires_at')\n"
            "  if expires_at and tonumber(expires_at) <= NOW then return finish(task, "
            "'expired') end\n"
            "  if status == 'succeeded' then\n")


DEFECT = Defect(
    "expires_what_ran",
    "Records a success that came after the time to live as expired.",
    caught_by=("no_start_after_ttl",), also=("one_terminal_state",),
    put_in=_put_in)
