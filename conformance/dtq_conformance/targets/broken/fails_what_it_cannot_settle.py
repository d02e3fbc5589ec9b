"""Counts a script that the server has forgotten as the failure of the handlers that have ended."""

from __future__ import annotations

from typing import Any

from dtq_reference.settler import Settler
from redis.exceptions import NoScriptError

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    settle = Settler._settle

    async def settle_or_fail(self: Settler, batch: list[Any]) -> None:
        redis = self._transport.redis
        if self._hands.ended:  # the script was loaded before, and is not loaded again
            redis.eval = redis.evalsha
        try:
            await settle(self, batch)
        except NoScriptError:
            vars(redis).pop("eval")
            for _, outcome in batch:
                outcome.error_class = "NoScriptError"
            await settle(self, batch)
        finally:
            vars(redis).pop("eval", None)

    Settler._settle = settle_or_fail  # type: ignore[method-assign]


DEFECT = Defect(
    "fails_what_it_cannot_settle",
    "Counts a script that the server has forgotten as the failure of the handlers that have ended.",
    caught_by=("nothing_lost",), also=(), put_in=_put_in)
