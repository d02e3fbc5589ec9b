"""The checkers, each named by what must hold: one file, one `check(history)`; this is the list."""

from __future__ import annotations

from types import ModuleType

from dtq_conformance.checker import Check
from dtq_conformance.checkers import (
    attempts_bounded,
    dead_letters_complete,
    drained_on_stop,
    duplicates_justified,
    nothing_invented,
    nothing_lost,
    one_holder_at_a_time,
    one_terminal_state,
)

_MODULES: tuple[ModuleType, ...] = (
    nothing_lost,
    nothing_invented,
    duplicates_justified,
    one_holder_at_a_time,
    one_terminal_state,
    attempts_bounded,
    dead_letters_complete,
    drained_on_stop,
)

CHECKERS: dict[str, Check] = {module.__name__.rpartition(".")[2]: module.check
                              for module in _MODULES}
"""Every checker by its name."""
