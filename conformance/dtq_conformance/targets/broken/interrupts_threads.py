"""Interrupts the thread of a synchronous handler that is asked to stop."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

from dtq_reference import executor
from dtq_reference.calls import Outcome, Taken
from dtq_reference.hands import Hold

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    threads: dict[str, int] = {}
    call, cancel = executor.call_handler, Hold.cancel

    def call_in_a_known_thread(taken: Taken, *more: Any) -> Outcome:
        threads[taken.task_id] = threading.get_ident()
        return call(taken, *more)

    def interrupt(self: Hold) -> None:
        cancel(self)
        if thread := threads.pop(self.taken.task_id, None):
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread), ctypes.py_object(executor.Cancelled))

    vars(executor)["call_handler"] = call_in_a_known_thread
    Hold.cancel = interrupt  # type: ignore[method-assign]


DEFECT = Defect(
    "interrupts_threads",
    "Interrupts the thread of a synchronous handler that is asked to stop.",
    caught_by=("handlers_as_promised",), also=(),
    put_in=_put_in)
