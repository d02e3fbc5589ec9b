"""Signatures of entries, for installations that set DTQ_SIGNING_KEY: what a worker executes was
submitted by someone who has the key, and was not altered in Redis.

The attempt's number is not signed, since Redis counts it.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

import msgspec

from dtq_reference.keys import LEVELS

if TYPE_CHECKING:
    from dtq_reference.calls import Taken
    from dtq_reference.task import TaskRequest


def sign(key: str, task: TaskRequest | Taken, payload: str, priority: int) -> str:
    """HMAC-SHA256, in hexadecimal digits, over the fields as one JSON list (RFC 2104)."""
    fields = [task.task_id, task.queue, task.task_type, payload, task.max_attempts, priority,
              task.timeout_ms, task.idempotency_key or ""]
    return hmac.new(key.encode(), msgspec.json.encode(fields), "sha256").hexdigest()


def is_genuine(key: str, taken: Taken) -> bool:
    """Whether the entry's signature is the key's, compared in constant time. An entry's priority
    is that of the stream it was taken from."""
    expected = sign(key, taken, taken.payload.decode(errors="replace"), LEVELS[taken.level - 1])
    return hmac.compare_digest(expected.encode(), taken.signature.encode())
