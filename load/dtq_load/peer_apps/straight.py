"""This engine's own work with nothing around it, over blocking sockets and without an event loop.

`drain N` takes and settles all that waits, N tasks at a time, by scripts that have this engine's
records, entries, arguments and answers, and only the straight way: nothing is redelivered,
expired, cancelled or fails, no key is looked after, nobody hears an event. It prints {"done": …}.
`worker` is rung for, takes and settles for ever, by the engine's own scripts; it has no heartbeat
and executes nothing: the result of a task is its number.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import sys
from typing import Any

import msgspec
from dtq_reference import calls
from dtq_reference.calls import Call, Identity, Outcome, Taken
from dtq_reference.cluster import address_of
from dtq_reference.keys import GROUP, Keys
from dtq_reference.scripts import SCRIPTS
from dtq_reference.settings import Settings, load
from dtq_reference.wire import Connection, ScriptError

from dtq_load.peer_apps.client import URL

QUEUE = "default"
LEVEL = 5
"""The place in KEYS of the stream of the default priority."""

ROOM = 200
"""The slots of a worker."""

LIMIT_S = 20.0

STRAIGHT = {"take": """
local call = cmsgpack.unpack(ARGV[1])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local read = redis.call('XREADGROUP', 'GROUP', 'workers', call.consumer, 'COUNT', call.room,
                        'STREAMS', KEYS[5], '>')
local tasks = {}
for place, entry in ipairs(read and read[1][2] or {}) do
  local id, fields = entry[1], entry[2]
  local key = call.task_prefix .. fields[2]
  local task = redis.call('HMGET', key, 'status', 'entry_id', 'attempt', 'losses', 'created_at',
                          'cancel_requested', 'expires_at')
  if task[1] ~= 'queued' or task[2] ~= id or task[6] or task[7] then return {'other'} end
  redis.call('HSET', key, 'status', 'running', 'holder', call.consumer,
             'worker_id', call.worker_id, 'started_at', now)
  tasks[place] = {5, id, tonumber(task[3]), fields[2], fields[6], fields[8], tonumber(fields[12]),
                  tonumber(fields[16]), fields[4], 0, tonumber(task[5]), fields[18], ''}
end
return {'ours', tasks, 0, {}, {}}
""", "settle": """
local call = cmsgpack.unpack(ARGV[1])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local answers, ids = {}, {}
for place, outcome in ipairs(call.outcomes) do
  local id, key = outcome.entry_id, call.task_prefix .. outcome.task_id
  local note, mine = 'outcome:' .. id, call.consumer .. ' ' .. outcome.attempt .. ' '
  local task = redis.call('HMGET', key, 'status', 'holder', 'attempt', 'entry_id',
                          'idempotency_key', note)
  if task[1] ~= 'running' or task[2] ~= call.consumer or tonumber(task[3]) ~= outcome.attempt
      or task[4] ~= id or task[6] then return {} end
  redis.call('SET', call.result_prefix .. outcome.task_id, outcome.result,
             'EX', call.result_retention_s)
  redis.call('HSET', key, 'status', 'succeeded', 'finished_at', now,
             'duration_ms', outcome.duration_ms, note, mine .. 'succeeded')
  redis.call('EXPIRE', key, call.retention_s)
  answers[place], ids[place] = 'succeeded', id
end
redis.call('XACK', KEYS[5], 'workers', unpack(ids))
redis.call('XDEL', KEYS[5], unpack(ids))
return answers
"""}


class Straight:
    """One process that takes and settles."""

    def __init__(self) -> None:
        self._settings: Settings = load()
        self._keys = Keys(self._settings.key_prefix)
        self._who = self._keys, self._settings, Identity("straight", "0"), QUEUE
        self._connection = Connection(address_of(URL), LIMIT_S)
        self._bell = Connection(address_of(URL), LIMIT_S)
        self._numbers = itertools.count(1)

    def drain(self, batch: int) -> int:
        """Take and settle all that waits, the straight way; returns how many tasks it was."""
        stream = self._keys.streams(QUEUE)[LEVEL - 1]
        self._connection.call("XGROUP", "CREATE", stream, GROUP, "0")
        done = 0
        while tasks := self._take(batch, STRAIGHT)[0]:
            states = calls.read_settle(self._run(self._settling(tasks), STRAIGHT))
            if states != ["succeeded"] * len(tasks):
                raise SystemExit(f"a task is not as it was submitted: {states}")
            done += len(tasks)
        return done

    def work(self) -> None:
        """Until it is killed."""
        self._run(calls.register(*self._who, {"status": "ready"}, again=False))
        while True:
            tasks, last_ids = self._take(ROOM)
            if tasks:
                self._run(self._settling(tasks))
            elif last_ids:
                self._bell.call("XREAD", "COUNT", 1, "BLOCK", 1000, "STREAMS",
                                *self._keys.streams(QUEUE), *last_ids)

    def _take(self, room: int, scripts: dict[str, str] | None = None) -> tuple[list[Taken],
                                                                               list[str]]:
        call = calls.take(*self._who, room=room, in_hand=[], reap=False, number=next(self._numbers))
        reply = calls.read_take(self._run(call, scripts))
        return reply.tasks, reply.last_ids

    def _settling(self, tasks: list[Taken]) -> Call:
        return calls.settle(*self._who, [Outcome(task, 1, _result(task)) for task in tasks])

    def _run(self, call: Call, scripts: dict[str, str] | None = None) -> Any:
        source = scripts[call.script] if scripts else SCRIPTS[call.script].source
        sha = hashlib.sha1(source.encode()).hexdigest()
        return self._connection.run(sha, source, call.keys, call.argument)


def _result(task: Taken) -> bytes:
    return msgspec.json.encode(msgspec.json.decode(task.payload)["number"])


def main(words: list[str]) -> None:
    """Do what the word asks for."""
    match words:
        case ["worker"]:
            Straight().work()
        case ["drain", batch]:
            try:
                print(json.dumps({"done": Straight().drain(int(batch))}))
            except (OSError, ScriptError, ValueError) as error:
                raise SystemExit(f"{type(error).__name__}: {error}") from error
        case _:
            raise SystemExit(f"{' '.join(words)}: expected drain N, or worker")


if __name__ == "__main__":
    main(sys.argv[1:])
