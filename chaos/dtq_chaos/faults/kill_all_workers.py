"""SIGKILL every living worker at once. No parameters."""

from __future__ import annotations

import signal

from dtq_chaos.fault import Bite, FaultKind, Stage
from dtq_chaos.schedule import Entry

GONE_LIMIT_S = 10.0


def _begin(stage: Stage, entry: Entry) -> Bite:
    """Stop them all for the moment that it takes to see what they have in hand, then kill them."""
    del entry
    victims = stage.bench.living()
    for victim in victims:  # all at once; then see each stand still, which takes its time
        victim.process.send(signal.SIGSTOP, asked="stop")
    for victim in victims:
        victim.process.stop()
    hands = [stage.hands(victim) for victim in victims]
    pids = [pid for victim in victims for pid in victim.process.pids()]
    entries = stage.bench.keyspace.entries()
    for victim in victims:
        victim.process.kill()
    for victim in victims:
        victim.process.wait(GONE_LIMIT_S)
    return Bite(pids, {"hands": hands, "entries": entries})


KIND = FaultKind("kill_all_workers", "killed", _begin)
