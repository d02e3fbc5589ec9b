"""Marks of the faults that interrupt a delivery: a lost take, a lost group, a broker that was away,
a process under another's name, an entry of nobody. As in `marks`: not held makes a verdict unknown.
"""

from __future__ import annotations

from typing import Any

from dtq_conformance.history import History, Mark, Spell

from dtq_chaos.marks import ReadMark, bites_of


def _mark(name: str, held: bool, sentence: str, **evidence: Any) -> Mark:
    return Mark(name=name, held=held, sentence=sentence, evidence=evidence)


def take_reply_lost() -> ReadMark:
    """The broker had handed the task over, and the link was cut before the reply, which the delay
    kept under way, can have arrived; the task had not started then."""

    def read(history: History) -> Mark:
        seen = bites_of(history, "lose_take_reply")
        held = [bite for bite in seen if bite.detail["underway_ms"] < bite.detail["latency_ms"]
                and not any(e.start_ns < bite.at_ns - bite.detail["underway_ms"] * 1_000_000
                            for e in history.executions.get(bite.detail["task_id"], []))]
        told = ", ".join(f"{bite.detail['underway_ms']:.0f} of {bite.detail['latency_ms']} ms"
                         for bite in seen) or "not at all"
        return _mark("take_reply_lost", bool(seen) and len(held) == len(seen),
                     f"The reply to a take had been under way {told} when its link was cut.",
                     seen=[bite.detail for bite in seen])

    return read


def never_saw_what_it_was_given() -> ReadMark:
    """A worker whose take's reply was lost was asked to stop, and did not start the task, then or
    later."""

    def read(history: History) -> Mark:
        seen = bites_of(history, "lose_take_reply")
        held = [bite for bite in seen if bite.detail["asks_to_stop"]
                and not any(e.pid in bite.pids
                            for e in history.executions.get(bite.detail["task_id"], []))]
        return _mark("never_saw_what_it_was_given", bool(seen) and len(held) == len(seen),
                     f"{len(held)} workers were asked to stop with a task that they never saw.",
                     seen=[bite.detail for bite in seen])

    return read


def group_lost_mid_handler() -> ReadMark:
    """A group was destroyed while what its holder had in hand was being executed."""

    def read(history: History) -> Mark:
        running = [[task_id for task_id in spell.detail["in_hand"]
                    if any(e.pid in spell.pids and e.start_ns < spell.from_ns
                           and (e.end_ns is None or e.end_ns > spell.from_ns)
                           for e in history.executions.get(task_id, []))]
                   for spell in history.spells
                   if spell.fault == "drop_group" and spell.detail["groups"]]
        return _mark("group_lost_mid_handler", bool(running) and all(running),
                     f"The groups were lost while {sum(map(len, running))} tasks were being "
                     "executed.", running=running)

    return read


def has_a_namesake(*, mid_handler: bool = False, swept: bool = False) -> ReadMark:
    """The worker's hash named another process than before. `mid_handler`: the old one had a
    handler running then; `swept`: consumers without work were removed after that."""

    def read(history: History) -> Mark:
        seen = [bite.detail for bite in bites_of(history, "start_namesake")]
        held = bool(seen) and all(
            each["before"] != each["now"] and (each["open"] or not mid_handler)
            and (each.get("swept") or not swept) for each in seen)
        told = ", ".join(f"{each['namesake']} said hello in place of {each['worker']}, which had "
                         f"{len(each['open'])} handlers running" for each in seen) or "nobody did"
        after = "; consumers without work were removed after that" if swept and held else ""
        return _mark("has_a_namesake", held, f"Under the same id: {told}{after}.", seen=seen)

    return read


def came_back_under_its_id() -> ReadMark:
    """After a worker's death another process started tasks under its id."""

    def read(history: History) -> Mark:
        again = [e.task_id for bite in bites_of(history, "kill_worker")
                 for each in history.executions.values() for e in each
                 if e.worker_id == bite.detail["worker"] and e.pid not in bite.pids
                 and e.start_ns > bite.at_ns]
        return _mark("came_back_under_its_id", bool(again),
                     f"A process with the id of the killed worker started {len(again)} tasks.",
                     tasks=again)

    return read


def broker_was_away(*, holders: int) -> ReadMark:
    """The broker was gone for longer than a lease while `holders` workers executed what they had
    in hand, and came back with their entries."""

    def read(history: History) -> Mark:
        lease_ms = history.header.timing.lease_ms
        spells = [spell for spell in history.spells if spell.fault == "restart_broker"]
        busy = [_executed_through(history, spell) for spell in spells]
        held = bool(spells) and all(
            len(tasks) >= holders and spell.detail["entries"] >= sum(map(len, tasks.values()))
            and spell.detail["away_ms"] > lease_ms
            for spell, tasks in zip(spells, busy, strict=True))
        told = " and ".join(f"{spell.detail['away_ms']} ms with {len(tasks)} holders"
                            for spell, tasks in zip(spells, busy, strict=True)) or "never"
        return _mark("broker_was_away", held, f"The broker was away: {told}; a lease lasts "
                     f"{lease_ms} ms.", busy=busy, seen=[spell.detail for spell in spells])

    return read


def _executed_through(history: History, spell: Spell) -> dict[str, list[str]]:
    """Each worker with what it had in hand and executed all through a fault."""
    found = {worker: [task_id for task_id in tasks if any(
        e.start_ns < spell.from_ns and (e.end_ns is None or e.end_ns > (spell.to_ns or 0))
        for e in history.executions.get(task_id, []))]
        for worker, tasks in spell.detail["in_hand"].items()}
    return {worker: tasks for worker, tasks in found.items() if tasks}


def forged_entry_was_read() -> ReadMark:
    """An entry without a record was taken out of its stream by somebody."""

    def read(history: History) -> Mark:
        seen = [bite.detail for bite in bites_of(history, "forge_entry")]
        held = bool(seen) and not any(each["entries"] for each in seen)
        return _mark("forged_entry_was_read", held,
                     f"{len(seen)} entries without a record were added, and "
                     f"{sum(each['entries'] for each in seen)} of them were left where they were.",
                     seen=seen)

    return read
