"""What a queue of this design cannot do without: its commands and its calls, with nothing in them.

Comes in: a stand. Goes out: what the server spends on a task's commands when a script calls them
for each batch, and how long the calls of an idle task take: the least that any such engine needs
(`bare`), and this engine's own records, arguments and scripts with nothing around them (`own`).
What an engine needs beyond that is the price of its exceptions, and of its language.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import msgspec

from dtq_load.bench import measures
from dtq_load.bench.figures import quantile
from dtq_load.bench.peers import dtq
from dtq_load.bench.reference_loop import GROUP, RESULT, STREAM, TASK, fill
from dtq_load.bench.stand import BenchError, Stand, end, require_alive

BATCH = 67
"""As many tasks as a worker with 200 slots takes in a call."""

TAKE = """
local read = redis.call('XREADGROUP', 'GROUP', ARGV[2], 'w', 'COUNT', ARGV[1], 'STREAMS', KEYS[1],
                        '>')
local taken = {}
for place, entry in ipairs(read and read[1][2] or {}) do
  local key = ARGV[3] .. entry[2][2]
  local task = redis.call('HMGET', key, 'status', 'holder', 'attempt', 'payload')
  redis.call('HSET', key, 'status', 'running', 'holder', 'w', 'started_at', '1700000000000')
  taken[place] = {entry[1], entry[2][2], task[4]}
end
return taken
"""

SETTLE = """
local ids = {}
for place, taken in ipairs(cmsgpack.unpack(ARGV[1])) do
  local key = ARGV[3] .. taken[2]
  redis.call('HMGET', key, 'status', 'holder', 'attempt')
  redis.call('HSET', key, 'status', 'succeeded', 'finished_at', '1700000000000')
  redis.call('EXPIRE', key, 604800)
  redis.call('SET', ARGV[4] .. taken[2], 'null', 'EX', 3600)
  ids[place] = taken[1]
end
redis.call('XACK', KEYS[1], ARGV[2], unpack(ids))
return redis.call('XDEL', KEYS[1], unpack(ids))
"""

STRAIGHT = [sys.executable, "-P", "-m", "dtq_load.peer_apps.straight"]
WORKER = [sys.executable, "-P", "-m", "dtq_load.peer_apps.bare", "worker"]
CLIENT = [sys.executable, "-P", "-m", "dtq_load.peer_apps.bare", "latency"]


def measure(stand: Stand, *, tasks: int, calls: int) -> dict[str, float]:
    """The limits of one round, over so many tasks and so many times five calls."""
    return {"bare_commands_us": commands_us(stand, tasks=tasks),
            "own_commands_us": own_commands_us(stand, tasks=tasks),
            "bare_calls_ms": calls_ms(stand, calls=calls),
            "own_calls_ms": own_calls_ms(stand, calls=calls)}


def commands_us(stand: Stand, *, tasks: int) -> float:
    """Microseconds of the server's processor for a task that is taken, settled, and forgotten by
    its stream: reads of what a fence compares, writes of what a record must say, and no more."""
    client = fill(stand, tasks=tasks)
    take, settle = client.script_load(TAKE), client.script_load(SETTLE)
    before = stand.counts()
    while taken := client.evalsha(take, 1, STREAM, BATCH, GROUP, TASK):
        batch = [[entry_id.decode(), number.decode()] for entry_id, number, _ in taken]
        client.evalsha(settle, 1, STREAM, msgspec.msgpack.encode(batch), GROUP, TASK, RESULT)
    spent = stand.counts().since(before)
    if client.xlen(STREAM) or not client.exists(f"{RESULT}{tasks - 1}"):
        raise BenchError("The bare commands left tasks behind.")
    return 1e6 * spent.cpu_s / tasks


def calls_ms(stand: Stand, *, calls: int) -> float:
    """The median of submitting, being rung for, taking, settling and looking at the result, each
    a call over a blocking socket, of a script that does nothing else."""
    stand.clear()
    environment = {"BENCH_URL": stand.lab.broker.url}
    worker = stand.launch("bare", WORKER, environment)
    try:
        done = stand.lab.run([*CLIENT, str(calls)], environment=environment, limit_s=120)
        require_alive([worker])
    finally:
        end([worker])
    if done.returncode != 0:
        raise BenchError(f"The bare calls came to nothing: {done.stderr.strip()[-2000:]}")
    return quantile(msgspec.json.decode(done.stdout)["ms"], 0.5)


def own_commands_us(stand: Stand, *, tasks: int) -> float:
    """Microseconds of the server's processor for a task of this engine that is taken and settled
    the straight way: its records, entries, arguments, answers and fences, and no exception."""
    stand.fill(dtq.PEER, tasks)
    before = stand.counts()
    done = stand.lab.run([*STRAIGHT, "drain", str(BATCH)], limit_s=120,
                         environment=stand.environment(dtq.PEER, "speed"))
    spent = stand.counts().since(before)
    if done.returncode != 0 or msgspec.json.decode(done.stdout)["done"] != tasks:
        raise BenchError(f"The straight way came to nothing: {done.stderr.strip()[-2000:]}")
    if left := dtq.left(stand.redis, tasks):
        raise BenchError(f"The straight way left {left:,} tasks behind.")
    return 1e6 * spent.cpu_s / tasks


def own_calls_ms(stand: Stand, *, calls: int) -> float:
    """The median of an idle task by this engine's scripts and client, and a worker that does
    nothing but its calls."""
    peer = replace(dtq.PEER, worker=lambda _size: [*STRAIGHT, "worker"])
    return measures.latency(stand, peer, tasks=calls)["idle_p50_ms"]
