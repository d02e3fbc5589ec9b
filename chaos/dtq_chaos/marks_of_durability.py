"""Marks of the broker's own ends: what it had answered when it went, what its file had lost. As in
`marks`: not held makes a verdict unknown."""

from __future__ import annotations

from dtq_conformance.history import History, Mark
from dtq_conformance.target import TERMINAL

from dtq_chaos.marks import ReadMark, bites_of

SECOND_MS = 1_000


def power_failed() -> ReadMark:
    """The file was cut short of its end, by nothing that was older than a second."""

    def read(history: History) -> Mark:
        seen = [bite.detail for bite in bites_of(history, "cut_power")]
        held = bool(seen) and all(each["kept"] <= each["cut"] < each["end"]
                                  and each["lasted_ms"] >= SECOND_MS for each in seen)
        told = " and ".join(f"{each['end'] - each['cut']} of the {each['end'] - each['kept']} "
                            f"bytes of its last {each['lasted_ms']} ms" for each in seen)
        return Mark(name="power_failed", held=held, sentence="The broker's file lost "
                    f"{told or 'nothing'}.", evidence={"seen": seen})

    return read


def restarted_after_answers(*, times: int) -> ReadMark:
    """The broker was killed so many times with work in hand, and before that tasks had been seen
    succeeded, dead-lettered and cancelled."""

    def read(history: History) -> Mark:
        bites = bites_of(history, "restart_broker")
        first_ns = min((spell.from_ns for spell in history.spells
                        if spell.fault == "restart_broker"), default=0)
        ends = {look.answer.get("status") for looks in history.looks.values() for look in looks
                if look.answered_ns < first_ns} & TERMINAL
        busy = sum(bool(any(bite.detail["in_hand"].values())) for bite in bites)
        held = busy == times and ends >= {"succeeded", "dead_lettered", "cancelled"}
        return Mark(name="restarted_after_answers", held=held, sentence=f"The broker was killed "
                    f"{len(bites)} times, {busy} of them with work in hand, after tasks had been "
                    f"seen {', '.join(sorted(map(str, ends))) or 'nowhere'}.",
                    evidence={"seen": [bite.detail for bite in bites]})

    return read
