"""The key table as data: the same as the contract's, and it tells keys apart."""

from __future__ import annotations

import re

import pytest
from dtq_conformance.clauses import read_page
from dtq_conformance.key_table import KEY_TABLE, rule_of


def test_the_table_is_the_contracts() -> None:
    rows = re.findall(r"^\| `([^`]+)` \| (\w+) \| ([\w ]+) \| (\w+) \|", read_page(), re.MULTILINE)
    assert rows == [(rule.name, rule.type, rule.expires, rule.at_rest) for rule in KEY_TABLE]


@pytest.mark.parametrize(("name", "row"), [
    ("stream:default:p0", "stream:<queue>:p<level>"),
    ("stream:a-b_9:p9", "stream:<queue>:p<level>"),
    ("stream:dead-letter", "stream:dead-letter"), ("task:" + "0a" * 16, "task:<task_id>"),
    ("idempotency:default:a:b\nc", "idempotency:<queue>:<key>"), ("workers", "workers"),
    ("worker:worker-1", "worker:<worker_id>"), ("queue:default:paused", "queue:<queue>:paused"),
    ("once:x", "once:<key>"), ("lock:scheduler", "lock:scheduler")])
def test_a_key_is_explained_by_its_row(name: str, row: str) -> None:
    rule = rule_of(name)
    assert rule is not None
    assert rule.name == row


@pytest.mark.parametrize("name", [
    "", "stream:default:p10", "stream:Default:p1", "stream:default", "task:" + "0A" * 16,
    "task:" + "0a" * 15, "task:" + "0a" * 16 + "\n", "retry:claimed", "cancelled", "once:",
    "xtask:" + "0a" * 16, "lock:scheduler:2", "queues\n"])
def test_no_row_explains_another_key(name: str) -> None:
    assert rule_of(name) is None
