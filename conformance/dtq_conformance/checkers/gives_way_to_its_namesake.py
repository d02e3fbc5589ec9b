"""A process gives way to its namesake: one that finds another under its id takes nothing more,
finishes what it has, and exits.

Judged are the faults that replaced a process, which tell what it had in hand from then on.
"""

from __future__ import annotations

from dtq_conformance import evidence
from dtq_conformance.evidence import MS, at, ms
from dtq_conformance.history import Fault, History, Life
from dtq_conformance.verdict import Ledger, Verdict

GIVES_WAY = "DLV-28"

PROMISES = {
    GIVES_WAY: "All {n} processes that were replaced under their id took nothing more and exited "
               "with code 0 in time.",
}

NOTICE_HEARTBEATS = 2
"""A process hears of its namesake at its next take or heartbeat: after so many it surely has."""

EXIT_ALLOWANCE_MS = 2000
"""Beyond the drain limit: the last settlements' round trips and the interpreter's own end."""


def check(history: History) -> list[Verdict]:
    """Judge each process that a fault replaced."""
    ledger = Ledger("gives_way_to_its_namesake", PROMISES)
    for fault in history.of(Fault):
        if fault.effect != "replaced" or fault.phase != "bit":
            continue
        for pid in fault.pids:
            life = history.life_of(pid, fault.at_ns)
            if life is not None:
                _takes_nothing_more(history, ledger, life, fault)
                _exits(history, ledger, life, fault.at_ns)
    return ledger.verdicts()


def _takes_nothing_more(history: History, ledger: Ledger, life: Life, fault: Fault) -> None:
    in_hand = set(fault.detail.get("in_hand", ()))
    known_ns = fault.at_ns + NOTICE_HEARTBEATS * history.header.timing.heartbeat_ms * MS
    for executions in history.executions.values():
        for execution in executions:
            if (execution.start_ns > known_ns and execution.task_id not in in_hand
                    and evidence.life(history, execution) == life):
                ledger.violated(GIVES_WAY, execution.task_id, f"{life.name} (pid {life.pid}) was "
                                f"replaced under its id {at(history, fault.at_ns)} and started "
                                f"task {execution.task_id} "
                                f"{ms(execution.start_ns - fault.at_ns)} later, which it had not "
                                "in hand then.", execution=evidence.data(execution))


def _exits(history: History, ledger: Ledger, life: Life, replaced_ns: int) -> None:
    if life.exit_code is None and life.exit_ns is not None:
        return  # it was killed before it could exit
    ledger.judged(GIVES_WAY)
    over_ns = history.end_ns if life.exit_ns is None else life.exit_ns
    limit_ns = (history.header.timing.drain_ms + EXIT_ALLOWANCE_MS) * MS
    limit_ns += evidence.stalled_ns(history.stalls, replaced_ns, over_ns)
    who = f"{life.name} (pid {life.pid}) was replaced under its id {at(history, replaced_ns)}"
    if over_ns - replaced_ns > limit_ns:
        ledger.violated(GIVES_WAY, None, f"{who} and had not exited {ms(over_ns - replaced_ns)} "
                        f"later; with all allowances it has {ms(limit_ns)}.", pid=life.pid)
    elif life.exit_ns is None:
        ledger.unknown(GIVES_WAY, None, f"{who}, and the history ends before its drain limit.",
                       pid=life.pid)
    elif life.exit_code != 0:
        ledger.violated(GIVES_WAY, None, f"{who} and exited with code {life.exit_code} "
                        f"{at(history, over_ns)} instead of 0.", exit_code=life.exit_code)
