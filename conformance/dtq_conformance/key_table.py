"""The contract's key table as data, and what an audit of the key space writes into a history.

From the contract's section *Redis schema*; a test compares the two. `audit` fills the records,
`nothing_left_behind` judges them. Names stand without the prefix of the installation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import msgspec

Type = Literal["stream", "set", "zset", "hash", "string"]

Expires = Literal["never", "always", "when terminal"]

AtRest = Literal["stays", "empty", "gone"]
"""What becomes of a key when no task is unfinished: it stays, has no entry left, or is gone."""


@dataclass(frozen=True)
class KeyRule:
    """One row of the table. `most` bounds the number of its members, where there is a bound."""

    name: str
    type: Type
    expires: Expires
    at_rest: AtRest
    most: int | None = None


LEVEL, LETTERS, TASK, SCHEDULE = ("stream:<queue>:p<level>", "stream:dead-letter",
                                  "task:<task_id>", "retry:schedule")

KEY_TABLE: tuple[KeyRule, ...] = (
    KeyRule(LEVEL, "stream", "never", "empty"),
    KeyRule(LETTERS, "stream", "never", "stays"),
    KeyRule("stream:audit", "stream", "never", "stays"),
    KeyRule("queues", "set", "never", "stays"),
    KeyRule(SCHEDULE, "zset", "never", "gone"),
    KeyRule("retry:depth", "hash", "never", "gone"),
    KeyRule(TASK, "hash", "when terminal", "stays"),
    KeyRule("result:<task_id>", "string", "always", "stays"),
    KeyRule("idempotency:<queue>:<key>", "string", "when terminal", "stays"),
    KeyRule("once:<key>", "string", "always", "stays"),
    KeyRule("worker:<worker_id>", "hash", "always", "stays"),
    KeyRule("workers", "set", "never", "stays"),
    KeyRule("queue:<queue>:paused", "string", "never", "stays"),
    KeyRule("tasks:recent", "zset", "never", "stays", most=10_000),
    KeyRule("lock:scheduler", "string", "always", "stays"),
)

_PARTS = {"<queue>": "[a-z0-9][a-z0-9_-]{0,63}", "<level>": "[0-9]", "<task_id>": "[0-9a-f]{32}",
          "<worker_id>": "[A-Za-z0-9_-]+", "<key>": ".+"}

_PATTERNS = {rule.name: re.compile("".join(_PARTS.get(part) or re.escape(part)
                                           for part in re.split(r"(<\w+>)", rule.name)), re.DOTALL)
             for rule in KEY_TABLE}

RULES: dict[str, KeyRule] = {rule.name: rule for rule in KEY_TABLE}


def rule_of(name: str) -> KeyRule | None:
    """The row that explains a key; None if none does."""
    return next((rule for rule in KEY_TABLE if _PATTERNS[rule.name].fullmatch(name)), None)


class KeyGroup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keys that are alike: of one row of the table ("" if no row explains them), one type, one
    state, all with or all without expiry, all with or all without members.

    `state` is a task's status or an idempotency record's state; `has_letter` tells whether the
    dead letter of these tasks exists. `members` counts entries, fields or members, `pending` what
    is pending in streams. At most five names and five ids of the tasks concerned are kept.
    """

    row: str
    type: str
    expires: bool
    state: str = ""
    has_letter: bool = False
    count: int
    members: int
    pending: int = 0
    names: list[str] = []
    task_ids: list[str] = []


class KeysAtRest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True,
                 tag_field="kind", tag="keys"):
    """The whole key space under the prefix, read once the workers had stopped."""

    at_ns: int
    groups: list[KeyGroup]
