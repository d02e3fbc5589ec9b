"""The pacemaker: a process that does nothing but write the time every 20 ms.

`python pacemaker.py FILE` appends CLOCK_MONOTONIC nanoseconds, one line a beat, until its parent is
gone. A gap in the file is a stall of the machine, which is then not blamed on
the target. The lab starts it, and makes records of what it reads with `beats`. It imports little,
so that it is soon there and costs a trial next to nothing.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False  # typing's, which costs more to import than all the rest
if TYPE_CHECKING:
    from pathlib import Path

BEAT_MS = 20
STALL_MS = 100
"""A longer gap between two beats is a stall. Busy machines were seen to be 36 ms late."""


def beats(path: Path) -> list[int]:
    """The instants that were written so far; a line that is being written is left out."""
    return [int(line) for line in path.read_bytes().splitlines(keepends=True)
            if line.endswith(b"\n")]


def main(path: str) -> None:
    parent = os.getppid()
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    beat_s = BEAT_MS / 1000
    next_s = time.monotonic()
    while os.getppid() == parent:
        now_ns = time.monotonic_ns()
        os.write(file, b"%d\n" % now_ns)
        next_s = max(next_s + beat_s, now_ns / 1e9)
        time.sleep(max(0.0, next_s - time.monotonic()))


if __name__ == "__main__":
    main(sys.argv[1])
