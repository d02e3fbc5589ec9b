"""What the Python clients of the benchmark share: their arguments, the clock, the answer.

Comes in: how this peer submits, and how it waits for a result. Goes out: the line of JSON that
`dtq_load/bench/peer.py` describes. It imports nothing but the standard library.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

URL = os.environ.get("BENCH_URL", "redis://127.0.0.1:6379/0")
FOR_LATENCY = os.environ.get("BENCH_FOR") == "latency"
BULK = 500
"""How many tasks one piece of a bulk submission has."""


@dataclass(frozen=True)
class Client:
    """How a peer is asked for things.

    `submit(number)` submits `nothing` and returns what is needed to wait for it;
    `submit_bulk(numbers)` submits one piece; `wait(submitted)` returns its result;
    `hold(number, ms)` submits `hold`. `connect(what)` is called before, untimed: `what` is
    submit, latency or hold.
    """

    submit: Callable[[int], Any]
    submit_bulk: Callable[[Sequence[int]], object]
    wait: Callable[[Any], object]
    hold: Callable[[int, int], object]
    connect: Callable[[str], object] = lambda _what: None


def run(client: Client, argv: Sequence[str]) -> None:
    """Do what the arguments ask for and print the answer."""
    parser = argparse.ArgumentParser(prog="client")
    parser.add_argument("what", choices=("submit", "latency", "hold"))
    parser.add_argument("count", type=int)
    parser.add_argument("ms", type=int, nargs="?", default=0)
    parser.add_argument("--bulk", action="store_true")
    given = parser.parse_args(argv)
    client.connect(given.what)
    if given.what == "latency":
        answer: dict[str, Any] = {"ms": [latency_ms(client, n) for n in range(given.count + 1)][1:]}
    else:
        begun = time.perf_counter()
        if given.what == "hold":
            for number in range(given.count):
                client.hold(number, given.ms)
        elif given.bulk:
            for start in range(0, given.count, BULK):
                client.submit_bulk(range(start, min(start + BULK, given.count)))
        else:
            for number in range(given.count):
                client.submit(number)
        answer = {"seconds": time.perf_counter() - begun}
    print(json.dumps(answer), flush=True)


def latency_ms(client: Client, number: int) -> float:
    """From before the submission until the result, which must be the right one, is in hand."""
    begun = time.perf_counter()
    result = client.wait(client.submit(number))
    if result != number:
        raise SystemExit(f"task {number} has the result {result!r}")
    return (time.perf_counter() - begun) * 1000


def witness(event: str, number: int) -> None:
    """Append a line by one write."""
    file = os.open(os.environ["BENCH_WITNESS"], os.O_WRONLY | os.O_APPEND)
    os.write(file, f"{event} {number} {os.getpid()}\n".encode())
    os.close(file)


def hold(number: int, ms: int) -> None:
    """The task `hold` of a peer whose slots are threads or processes."""
    witness("start", number)
    time.sleep(ms / 1000)
    witness("end", number)
