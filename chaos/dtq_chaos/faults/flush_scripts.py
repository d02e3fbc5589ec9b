"""The server forgets all scripts, again and again, while tasks are executed and submitted.

Parameters: after (for each time, how many more handlers have to end before it), label (of their
tasks), submissions (how many more tasks are submitted after each). On a server that is not ours
others lose their scripts too: whoever calls scripts by their SHA-1 must be able to load them again.
"""

from __future__ import annotations

from typing import Any

from dtq_conformance.waiting import wait_for

from dtq_chaos.fault import Bite, FaultKind, Stage
from dtq_chaos.monitor import Monitor
from dtq_chaos.schedule import Entry

SEEN_LIMIT_S = 10.0


def _begin(stage: Stage, entry: Entry) -> Bite:
    """Seen each time: which of the scripts that clients call the server knew before it and after,
    in one transaction, and which of them it knows again. Ends early when no handler ends."""
    label, flushes = entry.parameters["label"], []
    with stage.bench.lab.broker.connect() as watched, Monitor(watched) as monitor:
        for more in entry.parameters["after"]:
            if not _go_on(stage, label, more):
                break
            flushes.append(_flush(stage, monitor, label, entry.parameters["submissions"]))
    return Bite(detail={"flushes": flushes})


def _go_on(stage: Stage, label: str, more: int) -> bool:
    """Wait for so many more handlers to end; False if they do not."""
    def ended() -> int:
        return len(stage.bench.witnessed("end", label))

    enough = ended() + more
    return stage.await_quietly(lambda: ended() >= enough,
                               reason=f"{more} more handlers of {label} to end")


def _flush(stage: Stage, monitor: Monitor, label: str, submissions: int) -> dict[str, Any]:
    """Flush once; returns what was seen of it. Nothing is submitted before workers have loaded
    scripts again, so that those are known to be theirs."""
    bench, client = stage.bench, stage.bench.keyspace.client
    called = wait_for(lambda: sorted(monitor.scripts()), limit_s=SEEN_LIMIT_S,
                      reason="a client to call a script")
    with client.pipeline(transaction=True) as step:
        step.script_exists(*called).execute_command("SCRIPT FLUSH SYNC")
        before, _, after = step.script_exists(*called).execute()
    unfinished = bench.keyspace.entries()

    def known() -> list[str]:
        return [sha for sha, is_there in zip(called, client.script_exists(*called), strict=True)
                if is_there]

    stage.await_quietly(lambda: bool(known()), reason="scripts to be loaded again")
    again = len(known())
    bench.submit_many(submissions, {"sleep": 100}, label=label)
    return {"before": sum(before), "after": sum(after), "again": again, "unfinished": unfinished}


KIND = FaultKind("flush_scripts", "scripts_flushed", _begin)
