"""Marks of a broker that is there and refuses for a while: with which word, and what went on. As in
`marks`: not held makes a verdict unknown.
"""

from __future__ import annotations

from dtq_conformance.history import History, Mark

from dtq_chaos.marks import ReadMark


def refused_throughout(fault: str, *, word: str) -> ReadMark:
    """A write of the harness's own was refused with this word when the fault had begun, and just
    before it was mended."""

    def read(history: History) -> Mark:
        said = [spell.detail["refused"] for spell in history.spells if spell.fault == fault]
        told = " and ".join(" and ".join(each) for each in said) or "never"
        return Mark(name="refused_throughout", held=said == [[word, word]], sentence=f"A write of "
                    f"the harness's own was refused: {told}.", evidence={"said": said})

    return read


def worked_through(fault: str, *, holders: int, ends: int) -> ReadMark:
    """As it began, `holders` workers were executing; `ends` handlers ended while it lasted, and
    somebody asked for a submission."""

    def read(history: History) -> Mark:
        busy, ended, asked = set(), 0, 0
        for spell in history.spells:
            if spell.fault == fault and spell.to_ns is not None:
                for each in history.executions.values():
                    busy |= {e.pid for e in each if e.start_ns < spell.from_ns
                             and (e.end_ns is None or e.end_ns > spell.from_ns)}
                    ended += sum(spell.from_ns < (e.end_ns or 0) < spell.to_ns for e in each)
                asked += sum(o.name == "submit" and spell.from_ns < o.asked_ns < spell.to_ns
                             for o in history.operations)
        return Mark(name="worked_through", held=len(busy) >= holders and ended >= ends
                    and asked > 0, sentence=f"{fault} found {len(busy)} workers executing; while "
                    f"it lasted {ended} handlers ended and {asked} submissions were asked for.",
                    evidence={"pids": sorted(busy), "ended": ended, "asked": asked})

    return read
