"""Signatures of entries, for installations that set DTQ_SIGNING_KEY: what a worker executes was
submitted by someone who has the key, and was not altered in Redis.

The attempt's number is not signed, since Redis counts it.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Protocol

import msgspec


class Signable(Protocol):
    """What a submission and a taken task have in common."""

    @property
    def task_id(self) -> str: ...

    @property
    def queue(self) -> str: ...

    @property
    def task_type(self) -> str: ...

    @property
    def max_attempts(self) -> int: ...

    @property
    def timeout_ms(self) -> int | None: ...

    @property
    def idempotency_key(self) -> str | None: ...


def sign(key: str, task: Signable, payload: str, priority: int) -> str:
    """HMAC-SHA256, in hexadecimal digits, over the fields as one JSON list (RFC 2104)."""
    fields = [task.task_id, task.queue, task.task_type, payload, task.max_attempts, priority,
              task.timeout_ms, task.idempotency_key or ""]
    return hmac.new(key.encode(), msgspec.json.encode(fields), hashlib.sha256).hexdigest()


def is_genuine(key: str, task: Signable, payload: str, priority: int, signature: str) -> bool:
    """Whether the signature is the key's, compared in constant time."""
    return hmac.compare_digest(sign(key, task, payload, priority).encode(), signature.encode())
