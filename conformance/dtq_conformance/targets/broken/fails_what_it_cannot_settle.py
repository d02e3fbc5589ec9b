"""Counts a script that the server has forgotten as the failure of the handlers that have ended."""

from __future__ import annotations

from typing import Any

from dtq_reference.scripts import SCRIPTS
from dtq_reference.settler import Settler

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    settle = Settler._settle
    loaded: list[str] = []

    async def settle_or_fail(self: Settler, batch: list[Any]) -> None:
        sha = SCRIPTS["settle"].sha
        if sha in loaded and not (await self._transport.redis.script_exists(sha))[0]:
            for _, outcome in batch:
                outcome.error_class = "NoScriptError"
        loaded.append(sha)
        await settle(self, batch)

    Settler._settle = settle_or_fail  # type: ignore[method-assign]


DEFECT = Defect(
    "fails_what_it_cannot_settle",
    "Counts a script that the server has forgotten as the failure of the handlers that have ended.",
    caught_by=("nothing_lost",), also=(), put_in=_put_in)
