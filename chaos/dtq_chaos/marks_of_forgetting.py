"""Marks of what the broker forgot while its data stayed: scripts, consumer groups. As in `marks`:
not held makes a verdict unknown."""

from __future__ import annotations

from dtq_conformance.history import History, Mark
from dtq_conformance.keyspace import LEVELS

from dtq_chaos.marks import ReadMark, bites_of


def scripts_were_forgotten(*, times: int) -> ReadMark:
    """So many times the server knew scripts that clients call, then none of them, and then some
    again, with unfinished tasks at that moment."""

    def read(history: History) -> Mark:
        seen = [flush for bite in bites_of(history, "flush_scripts")
                for flush in bite.detail["flushes"]]
        bit = [each for each in seen if each["before"] and not each["after"] and each["again"]
               and each["unfinished"]]
        told = ", ".join(f"{each['before']} to {each['after']} to {each['again']}"
                         for each in seen)
        return Mark(name="scripts_were_forgotten", held=len(bit) == len(seen) == times,
                    sentence=f"{len(bit)} of {times} times the server forgot the scripts that "
                    f"are called, and knew some again: {told or 'never'}.",
                    evidence={"flushes": seen})

    return read


def groups_were_forgotten() -> ReadMark:
    """Every level had its group and then none, with tasks in hand and others waiting."""

    def read(history: History) -> Mark:
        seen = [bite.detail for bite in bites_of(history, "forget_groups")]
        held = bool(seen) and all(
            each["groups"] == len(LEVELS) and not each["left"] and each["in_hand"]
            and each["waiting"] for each in seen)
        told = " and ".join(f"{each['groups']} groups became {each['left']} with "
                            f"{each['in_hand']} tasks in hand and {each['waiting']} waiting"
                            for each in seen)
        return Mark(name="groups_were_forgotten", held=held,
                    sentence=f"The server forgot: {told or 'nothing'}.", evidence={"seen": seen})

    return read
