"""One way leads to each unfinished task: what any snapshot of the key space shows.

A step of the contract is atomic, so whatever the instant and whoever has died, no snapshot shows
half of one. Tasks that the harness itself harmed or forged are left out.
"""

from __future__ import annotations

import re
from collections.abc import Hashable

import msgspec

from dtq_conformance.evidence import at
from dtq_conformance.history import Fault, History
from dtq_conformance.snapshot import ABSENT, Alike, Hands, Snapshot, taken
from dtq_conformance.target import TERMINAL
from dtq_conformance.verdict import Ledger, Verdict

PROMISES = {
    "DLV-12": "In snapshots, one way led to each unfinished task and none to the others, {n} times "
              "a task in all.",
    "DLV-13": "In snapshots, all {n} finished tasks had what their outcome brings with it.",
    "KEY-06": "In all {n} snapshots of a schedule its depth was told rightly.",
    "KEY-07": "No process had more in hand than it may execute, in {n} hands that were seen.",
}

WAYS = {"queued": (1, 0), "running": (1, 0), "pending": (0, 1), "retrying": (0, 1),
        **dict.fromkeys(TERMINAL, (0, 0))}
"""How many entries, and how many members of the schedule, lead to a task of each status."""

RECORDS = {"succeeded": "completed", **dict.fromkeys(TERMINAL - {"succeeded"}, "failed")}
"""The state of an idempotency record by its task's status; of an unfinished one, processing."""


def check(history: History) -> list[Verdict]:
    """Judge every snapshot of a run."""
    judge = _Judge(history)
    for snapshot in taken(history.records):
        judge.look_at(snapshot)
    return judge.ledger.verdicts()


class _Judge:
    """Judges snapshots one after the other; what stays wrong is told once."""

    def __init__(self, history: History) -> None:
        self.ledger = Ledger("one_way_leads_to_each_unfinished_task", PROMISES)
        self._history = history
        self._told: set[Hashable] = set()
        self._harmed = _harmed(history)
        self._concurrency = {life.name: life.concurrency for life in history.lives
                             if life.concurrency is not None}

    def look_at(self, snapshot: Snapshot) -> None:
        if snapshot.not_taken:
            for clause in PROMISES:
                self.ledger.unknown(clause, None, "No snapshot of the key space was taken: "
                                    f"{snapshot.not_taken}.")
            return
        for alike in snapshot.alike:
            if not self._harmed.issuperset(alike.task_ids):
                self._ways(snapshot, alike)
                self._belongings(snapshot, alike)
        self._depth(snapshot)
        for hands in snapshot.hands:
            self._hands(snapshot, hands)

    def _ways(self, snapshot: Snapshot, alike: Alike) -> None:
        self.ledger.judged("DLV-12", alike.count)
        wanted = WAYS.get(alike.status)
        if wanted == (alike.entries, alike.members) and not alike.strays:
            return
        if alike.status == ABSENT:
            must = "nothing leads to a task without a record"
        elif wanted is None:
            must = f"a task is one of {', '.join(WAYS)}"
        else:
            must = {(1, 0): "one entry", (0, 1): "one member of the schedule",
                    (0, 0): "nothing"}[wanted] + f" leads to a task that is {alike.status}"
        self._violated("DLV-12", snapshot, alike, f"{_ways_of(alike)} led to it; {must}")

    def _belongings(self, snapshot: Snapshot, alike: Alike) -> None:
        """The result, the dead letter and the idempotency record of tasks."""
        wrong = []
        if alike.status == "succeeded" and not alike.has_result:
            wrong.append("it had no result")
        if alike.status == "dead_lettered" and alike.letters != 1 and not (
                alike.letters == 0 and alike.expires):
            wrong.append(f"it had {alike.letters or 'no'} dead letter{'s' * (alike.letters > 1)}")
        if alike.status not in ("dead_lettered", ABSENT) and alike.letters:
            wrong.append("it had a dead letter")
        due = RECORDS.get(alike.status, "processing")
        if alike.record and alike.status != ABSENT and alike.record != due:
            wrong.append(f"its idempotency record said {alike.record}, not {due}")
        if alike.status in TERMINAL:
            self.ledger.judged("DLV-13", alike.count)
        if wrong:
            self._violated("DLV-13", snapshot, alike, " and ".join(wrong))

    def _violated(self, clause: str, snapshot: Snapshot, alike: Alike, what: str) -> None:
        if self._is_new(clause, what, *alike.task_ids):
            more = f", and so were {alike.count - 1} more" if alike.count > 1 else ""
            status = "without a record" if alike.status == ABSENT else f"{alike.status or None!r}"
            self.ledger.violated(
                clause, alike.task_ids[0], f"Task {alike.task_ids[0]} was {status} "
                f"{at(self._history, snapshot.at_ns)}{more}: {what}.",
                asked_ns=snapshot.asked_ns, at_ns=snapshot.at_ns, **msgspec.to_builtins(alike))

    def _depth(self, snapshot: Snapshot) -> None:
        self.ledger.judged("KEY-06", bool(snapshot.depths))
        for depth in snapshot.depths:
            if depth.said != (depth.members or None) and self._is_new("KEY-06", depth):
                said = "nothing" if depth.said is None else depth.said
                self.ledger.violated(
                    "KEY-06", None, f"The schedule had {depth.members} members of the queue "
                    f"{depth.queue} {at(self._history, snapshot.at_ns)}, and retry:depth said "
                    f"{said}.", at_ns=snapshot.at_ns, **msgspec.to_builtins(depth))

    def _hands(self, snapshot: Snapshot, hands: Hands) -> None:
        worker_id, _, incarnation = hands.consumer.rpartition(".")
        most = max(self._concurrency.get(worker_id, 0), hands.concurrency)  # of two of one id
        if not most or not re.fullmatch(r"[0-9a-f]{8}", incarnation):
            return  # no process has this name
        self.ledger.judged("KEY-07")
        if hands.pending > most and self._is_new("KEY-07", hands):
            self.ledger.violated(
                "KEY-07", None, f"{hands.pending} entries were pending under {hands.consumer} "
                f"{at(self._history, snapshot.at_ns)}; {worker_id} executes {most} at once.",
                at_ns=snapshot.at_ns, **msgspec.to_builtins(hands))

    def _is_new(self, *what: Hashable) -> bool:
        """Whether this was not told before."""
        is_new = what not in self._told
        self._told.add(what)
        return is_new


def _ways_of(alike: Alike) -> str:
    entries = f"{alike.entries} {'entry' if alike.entries == 1 else 'entries'}"
    if alike.strays:
        entries += f", {alike.strays} more in streams that are not its own,"
    return f"{entries} and {alike.members} member{'s' * (alike.members != 1)} of the schedule"


def _harmed(history: History) -> set[str]:
    """Tasks that the harness did something to behind the target's back."""
    details = [fault.detail for fault in history.of(Fault)
               if fault.effect in ("deleted", "forged")]
    return {task_id for detail in details
            for task_id in (detail.get("task_id"), *detail.get("task_ids", ())) if task_id}
