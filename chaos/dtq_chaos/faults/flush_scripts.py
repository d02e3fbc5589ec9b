"""The server forgets all scripts, again and again, while tasks are executed and submitted.

Parameters: after (for each time, how many more handlers have to end before it), label (of their
tasks), submissions (how many more of them are submitted before each; more than have to end, so that
the work does not run out, however much faster it is done than the harness looks). On a server that
is not ours others lose their scripts too: who calls them by SHA-1 must be able to load them again.
"""

from __future__ import annotations

from dtq_conformance.waiting import wait_for

from dtq_chaos.fault import Bite, FaultKind, Stage
from dtq_chaos.monitor import Monitor
from dtq_chaos.schedule import Entry

SEEN_LIMIT_S = 10.0


def _begin(stage: Stage, entry: Entry) -> Bite:
    """Seen each time: which of the scripts that clients call the server knew before it and after,
    in one transaction, and which of them it knows again. Ends early when no handler ends."""
    flushes: list[dict[str, int]] = []
    with stage.bench.lab.broker.connect() as watched, Monitor(watched) as monitor:
        for more in entry.parameters["after"]:
            if not _work_goes_on(stage, entry, more):
                break
            flushes.append(_flush(stage, monitor))
    return Bite(detail={"flushes": flushes})


def _work_goes_on(stage: Stage, entry: Entry, more: int) -> bool:
    """Submit more tasks, and wait for so many more handlers to end; False if they do not."""
    bench, label = stage.bench, entry.parameters["label"]
    enough = len(bench.witnessed("end", label)) + more
    bench.submit_many(entry.parameters["submissions"], {"sleep": 150}, label=label)
    return stage.await_quietly(lambda: len(bench.witnessed("end", label)) >= enough,
                               reason=f"{more} more handlers of {label} to end")


def _flush(stage: Stage, monitor: Monitor) -> dict[str, int]:
    """Flush once; returns what was seen of it. Nothing is submitted before workers have loaded
    scripts again, so that those are known to be theirs."""
    client = stage.bench.keyspace.client
    called = wait_for(lambda: sorted(monitor.scripts()), limit_s=SEEN_LIMIT_S,
                      reason="a client to call a script")
    with client.pipeline(transaction=True) as step:
        step.script_exists(*called).execute_command("SCRIPT FLUSH SYNC")
        before, _, after = step.script_exists(*called).execute()
    unfinished = stage.bench.keyspace.entries()

    def known() -> int:
        return sum(client.script_exists(*called))

    stage.await_quietly(lambda: known() > 0, reason="scripts to be loaded again")
    return {"before": sum(before), "after": sum(after), "again": known(),
            "unfinished": unfinished}


KIND = FaultKind("flush_scripts", "scripts_flushed", _begin)
