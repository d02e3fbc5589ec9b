"""A worker loads each script once: when the server has forgotten it, every call of it fails."""

from __future__ import annotations

from typing import Any

from dtq_reference.calls import Call
from dtq_reference.scripts import SCRIPTS
from dtq_reference.transport import AsyncTransport

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    loaded: set[str] = set()

    async def call_known(self: AsyncTransport, call: Call) -> Any:
        script = SCRIPTS[call.script]
        run = self.redis.evalsha if script.sha in loaded else self.redis.eval
        name = script.sha if script.sha in loaded else script.source
        loaded.add(script.sha)
        return await run(name, len(call.keys), *call.keys, call.argument)

    AsyncTransport.call = call_known  # type: ignore[method-assign]


DEFECT = Defect(
    "loads_its_scripts_once",
    "A worker loads each script once: when the server has forgotten it, every call of it fails.",
    caught_by=("nothing_lost",),
    also=("attempts_accounted_for", "attempts_bounded", "keys_as_promised",
          "what_was_answered_survives"),
    put_in=_put_in)
