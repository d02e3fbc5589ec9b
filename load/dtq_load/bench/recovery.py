"""How long the tasks of a worker that is killed take until they have run elsewhere.

Comes in: a stand and a peer, at its default settings. Goes out: the seconds from the SIGKILL of a
worker with its hands full until each task that it had begun has ended in another process, or the
number of those that had not at the end of a declared limit.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dtq_conformance.lab import LabProcess
from dtq_conformance.waiting import WaitedTooLong, wait_for

from dtq_load.bench.peer import Peer
from dtq_load.bench.stand import BenchError, Stand, end, now_s, require_alive

HOLD_MS = 1_000
FILLS = 3
"""Tasks are so many times what one worker has slots, since the other may be handed some as well."""

READY_LIMIT_S = 60.0


@dataclass(frozen=True)
class Recovery:
    """`seconds` is None where `missing` of the `held` tasks had not run within `limit_s`."""

    held: int
    missing: int
    seconds: float | None
    limit_s: float


@dataclass(frozen=True)
class Line:
    """A line of the witness."""

    event: str
    number: int
    pid: int


def read(witness: Path) -> list[Line]:
    """What the tasks have written; a last line without its end is left out."""
    whole, _, _ = witness.read_text().rpartition("\n")
    return [Line(event, int(number), int(pid))
            for event, number, pid in (line.split() for line in whole.splitlines())]


def in_hand(lines: list[Line], pids: set[int]) -> set[int]:
    """The numbers of the tasks that these processes have begun and not ended."""
    begun = {line.number for line in lines if line.event == "start" and line.pid in pids}
    return begun - {line.number for line in lines if line.event == "end"}


def recover(stand: Stand, peer: Peer, *, limit_s: float) -> Recovery:
    """Kill one of two workers. Raises `BenchError` if it never had its hands full."""
    stand.clear()
    slots = peer.size.processes * peer.size.slots
    witness = stand.lab.witness
    workers = [survivor := stand.start(peer, peer.size)]
    try:
        stand.ask(peer, "hold", "1", "0")
        _await(lambda: any(line.event == "end" for line in read(witness)), survivor,
               f"{peer.name}'s first worker to work")
        survivor.stop()  # it is ready, and takes nothing while the other fills its hands
        witness.write_bytes(b"")
        workers.append(victim := stand.start(peer, peer.size))
        stand.ask(peer, "hold", str(FILLS * slots), str(HOLD_MS))
        pids = set(victim.pids())

        def is_full() -> bool:
            pids.update(victim.pids())
            return len(in_hand(read(witness), pids)) >= slots

        _await(is_full, victim, f"{peer.name}'s second worker to have its hands full")
        survivor.resume()
        victim.kill()
        killed_s = now_s()
        victim.wait(10)
        held = in_hand(read(witness), pids)
        return _until_all_ran(witness, held, killed_s, limit_s)
    finally:
        end(workers)


def _until_all_ran(witness: Path, held: set[int], killed_s: float, limit_s: float) -> Recovery:
    def missing() -> set[int]:
        return held - {line.number for line in read(witness) if line.event == "end"}

    with contextlib.suppress(WaitedTooLong):
        wait_for(lambda: not missing(), reason="its tasks to run elsewhere",
                 limit_s=limit_s - (now_s() - killed_s), every_s=0.02)
        return Recovery(len(held), 0, now_s() - killed_s, limit_s)
    return Recovery(len(held), len(missing()), None, limit_s)


def _await(condition: Callable[[], bool], worker: LabProcess, reason: str) -> None:
    def is_true() -> bool:
        require_alive([worker])
        return condition()

    try:
        wait_for(is_true, reason=reason, limit_s=READY_LIMIT_S, every_s=0.01)
    except WaitedTooLong as error:
        raise BenchError(f"{error}; see {worker.log}.") from error
