"""Takes for a process that has said goodbye; its own last take is as late as that."""

from __future__ import annotations

from typing import Any

from dtq_reference import calls
from dtq_reference.worker import Worker

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("take", "if worker[2] == 'draining' or worker[2] == 'stopped' then return "
            "{'leaving', {}, 0, {}, {}} end\n", "")
    stop = Worker._stop

    async def stop_and_take(self: Worker, duties: list[Any]) -> None:
        await stop(self, duties)
        hands = self.hands
        late = calls.take(*hands.who, in_hand=[], room=hands.settings.worker_concurrency,
                          reap=False)
        await self._try(late, limit_s=1)

    Worker._stop = stop_and_take  # type: ignore[method-assign]


DEFECT = Defect(
    "takes_after_goodbye",
    "Takes for a process that has said goodbye; its own last take is as late as that.",
    caught_by=("attempts_accounted_for",),
    also=("drained_on_stop", "keys_as_promised", "strict_priority", "workers_as_promised"),
    put_in=_put_in)
