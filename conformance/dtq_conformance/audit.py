"""Read the whole key space of an installation, for targets that claim redis-schema.

Comes in: a client of the harness's own and the prefix. Goes out: a `KeysAtRest` for the history,
keys that are alike put together, so that it stays small whatever the run was. No value is kept.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from dtq_conformance.key_table import (
    LETTERS,
    LEVEL,
    SCHEDULE,
    TASK,
    KeyGroup,
    KeysAtRest,
    rule_of,
)

SHOWN = 5
"""How many names and task ids of a group are kept."""

AT_ONCE = 500
"""Keys that are asked about in one pipeline."""

_COUNT = {"stream": "XLEN", "set": "SCARD", "zset": "ZCARD", "hash": "HLEN", "list": "LLEN"}


@dataclass(frozen=True)
class _Key:
    """One key as it was found."""

    name: str
    row: str
    type: str
    expires: bool
    members: int
    state: str = ""
    has_letter: bool = False
    pending: int = 0
    task_ids: tuple[str, ...] = ()

    @property
    def alike(self) -> tuple[Any, ...]:
        """What keys of one group have in common."""
        return (self.row, self.type, self.state, self.has_letter, self.expires,
                self.members > 0, self.pending > 0)


def audit(client: Any, prefix: str) -> KeysAtRest:
    """Look at every key under the prefix."""
    found: dict[tuple[Any, ...], list[_Key]] = {}
    for key in _keys(client, prefix):
        found.setdefault(key.alike, []).append(key)
    return KeysAtRest(at_ns=time.monotonic_ns(),
                      groups=[_group(found[alike]) for alike in sorted(found)])


def _group(keys: list[_Key]) -> KeyGroup:
    first = keys[0]
    task_ids = dict.fromkeys(task_id for key in keys for task_id in key.task_ids)
    return KeyGroup(
        row=first.row, type=first.type, expires=first.expires, state=first.state,
        has_letter=first.has_letter, count=len(keys), members=sum(key.members for key in keys),
        pending=sum(key.pending for key in keys), names=[key.name for key in keys[:SHOWN]],
        task_ids=list(islice(task_ids, SHOWN)))


def _keys(client: Any, prefix: str) -> Iterator[_Key]:
    """Every key, with what its row of the table needs; one that expires meanwhile is left out."""
    pattern = re.sub(r"([\\*?\[\]^])", r"\\\1", prefix) + "*"
    full_names = sorted(set(client.scan_iter(match=pattern, count=1000)))
    letters = _letters(client, f"{prefix}{LETTERS}")
    for batch in _batches(full_names):
        asked = client.pipeline(transaction=False)
        for full_name in batch:
            asked.type(full_name)
            asked.pttl(full_name)
        answers = asked.execute()
        for full_name, kind, left_ms in zip(batch, answers[::2], answers[1::2], strict=True):
            if kind != b"none" and left_ms != -2:
                yield _key(client, prefix, full_name, kind.decode(), left_ms >= 0, letters)


def _batches(names: list[bytes]) -> Iterable[list[bytes]]:
    return (names[place:place + AT_ONCE] for place in range(0, len(names), AT_ONCE))


def _key(client: Any, prefix: str, full_name: bytes, kind: str, expires: bool,
         letters: set[str]) -> _Key:
    name = full_name.decode(errors="backslashreplace").removeprefix(prefix)
    rule = rule_of(name)
    row = rule.name if rule else ""
    members = client.execute_command(_COUNT[kind], full_name) if kind in _COUNT else 1
    if rule is None or rule.type != kind:
        return _Key(name, row, kind, expires, members)
    if row == TASK:
        task_id = name.rpartition(":")[2]
        status = (client.hget(full_name, "status") or b"").decode(errors="replace")
        return _Key(name, row, kind, expires, members, status, task_id in letters,
                    task_ids=(task_id,))
    if row == LEVEL:
        pending = sum(group["pending"] for group in client.xinfo_groups(full_name))
        entries = client.xrange(full_name, count=SHOWN)
        return _Key(name, row, kind, expires, members, pending=pending, task_ids=_ids(entries))
    if row == SCHEDULE:
        waiting = client.zrange(full_name, 0, SHOWN - 1)
        return _Key(name, row, kind, expires, members,
                    task_ids=tuple(each.decode(errors="replace") for each in waiting))
    if row.startswith("idempotency:"):
        return _Key(name, row, kind, expires, members, _recorded_state(client.get(full_name)))
    return _Key(name, row, kind, expires, members)


def _recorded_state(value: bytes | None) -> str:
    try:
        found = json.loads(value or b"{}")
    except ValueError:
        return "not JSON"
    return str(found.get("state", "")) if isinstance(found, dict) else "not an object"


def _letters(client: Any, stream: str) -> set[str]:
    """Ids of the tasks whose dead letter exists."""
    if client.type(stream) != b"stream":
        return set()
    return set(_ids(client.xrange(stream)))


def _ids(entries: list[tuple[bytes, dict[bytes, bytes]]]) -> tuple[str, ...]:
    return tuple(fields[b"task_id"].decode(errors="replace") for _, fields in entries
                 if fields and b"task_id" in fields)
