"""A snapshot: what leads to each task at one instant, as one read-only script shows it.

Comes in: a client of the harness's own and the prefix of a target that claims redis-schema. Goes
out: a `Snapshot` for the history, tasks that are alike put together. The script reads every key
under the prefix in one step, by the contract's key table; `snapshot_taker` sends it while a trial
runs, and `one_way_leads_to_each_unfinished_task` judges what it saw.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec

SHOWN = 5
"""How many ids of tasks that are alike are kept."""

ABSENT = "absent"
"""Stands for the status of a task that something leads to and that has no record."""

SCRIPT = """#!lua flags=no-writes
local found = {tasks = {}, entries = {}, pending = {}, schedule = {}, depth = {}, letters = {},
               results = {}, records = {}, workers = {}}
local function add(list, value) list[#list + 1] = value end
local function each_entry(key, visit)
  for _, entry in ipairs(redis.call('XRANGE', key, '-', '+')) do
    for place = 1, #entry[2], 2 do
      if entry[2][place] == 'task_id' then visit(entry[2][place + 1]) end
    end
  end
end
local function each_consumer(key)
  local consumers = redis.pcall('XINFO', 'CONSUMERS', key, 'workers')
  if consumers.err then return end
  for _, consumer in ipairs(consumers) do
    local about = {}
    for place = 1, #consumer, 2 do about[consumer[place]] = consumer[place + 1] end
    if about['pending'] > 0 then add(found.pending, {about['name'], about['pending']}) end
  end
end
for _, key in ipairs(redis.call('KEYS', ARGV[2])) do
  local name = string.sub(key, #ARGV[1] + 1)
  local kind, rest = string.match(name, '^(%a+):(.*)$')
  local queue, level = string.match(name, '^stream:(.+):p(%d)$')
  if queue then
    each_entry(key, function(task_id) add(found.entries, {queue, level, task_id}) end)
    each_consumer(key)
  elseif name == 'stream:dead-letter' then
    each_entry(key, function(task_id) add(found.letters, task_id) end)
  elseif name == 'retry:schedule' then
    found.schedule = redis.call('ZRANGE', key, 0, -1)
  elseif name == 'retry:depth' then
    found.depth = redis.call('HGETALL', key)
  elseif kind == 'task' then
    local known = redis.call('HMGET', key, 'status', 'queue', 'priority')
    add(found.tasks, {rest, known[1] or '', known[2] or '', known[3] or '',
                      redis.call('PTTL', key) >= 0})
  elseif kind == 'result' then
    add(found.results, rest)
  elseif kind == 'idempotency' then
    local is_json, record = pcall(cjson.decode, redis.call('GET', key))
    if is_json and type(record) == 'table' then
      add(found.records, {tostring(record['task_id']), tostring(record['state'])})
    end
  elseif kind == 'worker' then
    add(found.workers, {rest, tonumber(redis.call('HGET', key, 'concurrency')) or 0})
  end
end
return cmsgpack.pack(found)
"""
"""ARGV: the prefix, and the pattern of its keys. Returns msgpack. No key is named beforehand: the
prefix's keys are what is asked for, so it is for a server that has them all."""


class Alike(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True,
            omit_defaults=True):
    """Tasks to which the same things lead. At most five of their ids are kept.

    `entries` counts those in the stream of the task's own queue and level, `strays` those in
    another; `members` is of the schedule. `expires` is told of dead-lettered tasks alone. `record`
    is the state of the idempotency records that name the task.
    """

    status: str
    count: int
    task_ids: list[str]
    entries: int = 0
    strays: int = 0
    members: int = 0
    letters: int = 0
    has_result: bool = False
    expires: bool = False
    record: str = ""


class Depth(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A queue's members of the schedule, counted, and as `retry:depth` says (None: no field)."""

    queue: str
    members: int
    said: int | None


class Hands(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many entries are pending under a consumer's name, and the concurrency that the hash of
    its worker tells (0: none)."""

    consumer: str
    pending: int
    concurrency: int


class Snapshot(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True,
               tag_field="kind", tag="snapshot", omit_defaults=True):
    """The key space at one instant between `asked_ns` and `at_ns`; or why none was `not_taken`."""

    at_ns: int
    asked_ns: int
    alike: list[Alike] = []
    depths: list[Depth] = []
    hands: list[Hands] = []
    not_taken: str = ""


class Read(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the script answers."""

    tasks: list[tuple[str, str, str, str, bool]]
    entries: list[tuple[str, str, str]]
    pending: list[tuple[str, int]]
    schedule: list[str]
    depth: list[str]
    letters: list[str]
    results: list[str]
    records: list[tuple[str, str]]
    workers: list[tuple[str, int]]


def take(client: Any, prefix: str) -> Snapshot:
    """Send the script once. Raises what the client raises."""
    pattern = re.sub(r"([\\*?\[\]^])", r"\\\1", prefix) + "*"
    asked_ns = time.monotonic_ns()
    answer = client.eval(SCRIPT, 0, prefix, pattern)
    return summarise(msgspec.msgpack.decode(answer, type=Read), asked_ns=asked_ns,
                     at_ns=time.monotonic_ns())


def summarise(read: Read, *, asked_ns: int, at_ns: int) -> Snapshot:
    """Put together what is alike."""
    homes = {task_id: (queue, level) for task_id, _, queue, level, _ in read.tasks}
    return Snapshot(asked_ns=asked_ns, at_ns=at_ns, alike=_alike(read, homes),
                    depths=_depths(read, homes), hands=_hands(read))


def _alike(read: Read, homes: dict[str, tuple[str, str]]) -> list[Alike]:
    at_home = Counter(task_id for queue, level, task_id in read.entries
                      if homes.get(task_id, (queue, level)) == (queue, level))
    led = Counter(task_id for _, _, task_id in read.entries)
    members, letters = Counter(read.schedule), Counter(read.letters)
    results, states = set(read.results), dict[str, list[str]]()
    for task_id, state in read.records:
        states.setdefault(task_id, []).append(state)
    unknown = [(task_id, ABSENT, "", "", False) for task_id in {**led, **members}
               if task_id not in homes]
    found: dict[tuple[Any, ...], list[str]] = {}
    for task_id, status, _, _, expires in [*read.tasks, *unknown]:
        alike = (status, at_home[task_id], led[task_id] - at_home[task_id], members[task_id],
                 letters[task_id], task_id in results, expires and status == "dead_lettered",
                 ",".join(sorted(set(states.get(task_id, ())))))
        found.setdefault(alike, []).append(task_id)
    return [Alike(status=alike[0], count=len(ids), task_ids=sorted(ids)[:SHOWN],
                  entries=alike[1], strays=alike[2], members=alike[3], letters=alike[4],
                  has_result=alike[5], expires=alike[6], record=alike[7])
            for alike, ids in sorted(found.items())]


def _depths(read: Read, homes: dict[str, tuple[str, str]]) -> list[Depth]:
    members = Counter(homes[task_id][0] for task_id in read.schedule if task_id in homes)
    said = dict(zip(read.depth[::2], map(_number, read.depth[1::2]), strict=True))
    return [Depth(queue=queue, members=members[queue], said=said.get(queue))
            for queue in sorted({*members, *said})]


def _number(word: str) -> int:
    """What is no number is wrong whatever the count is."""
    return int(word) if re.fullmatch(r"-?\d+", word) else -1


def _hands(read: Read) -> list[Hands]:
    pending: Counter[str] = Counter()
    for consumer, count in read.pending:
        pending[consumer] += count
    concurrency = dict(read.workers)
    return [Hands(consumer=consumer, pending=count,
                  concurrency=concurrency.get(consumer.rpartition(".")[0], 0))
            for consumer, count in sorted(pending.items())]


def taken(records: Iterable[object]) -> list[Snapshot]:
    """The snapshots among the records of a history."""
    return [record for record in records if isinstance(record, Snapshot)]
