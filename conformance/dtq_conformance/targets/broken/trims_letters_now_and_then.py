"""Lets the stream of dead letters trim itself, which it does by whole nodes only."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    for script in ("settle", "take"):
        rewrite(script, "  if excess > 0 then\n", "  if false then\n")
        rewrite(script, "  return redis.call('XADD', letters, '*', unpack(fields))\n",
                "  return redis.call('XADD', letters, 'MAXLEN', '~', call.dlq_maxlen, '*', "
                "unpack(fields))\n")


DEFECT = Defect(
    "trims_letters_now_and_then",
    "Lets the stream of dead letters trim itself, which it does by whole nodes only.",
    caught_by=("dead_letters_complete",), also=(),
    put_in=_put_in)
