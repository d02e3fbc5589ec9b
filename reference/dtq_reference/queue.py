"""The client: submit tasks and look at them. Needs no worker and no server but Redis."""

from __future__ import annotations

from typing import Any

import msgspec

from dtq_reference import calls
from dtq_reference.keys import Keys
from dtq_reference.settings import Settings
from dtq_reference.task import DeadLetter, Task, request_from
from dtq_reference.transport import Transport

RESEND_LIMIT_S = 30.0
"""A submission is sent again for at most this long, or the retention time if that is less:
after that the first copy may have finished and been forgotten."""


class Queue:
    """A connection to one installation. Not for use by several threads at once."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.keys = Keys(settings.key_prefix)
        self._transport = Transport(settings.redis_url)

    def submit(self, **fields: Any) -> tuple[str, str]:
        """Submit a task; the fields are those of `TaskRequest`, of which task_type is needed.

        Returns the task's id and the state that it was accepted in. A lost answer is sent for
        again, with the same id. Raises `DtqError` (refused, nothing kept) or `BrokerUnreachable`
        (unknown).
        """
        request = request_from(fields, max_payload_bytes=self.settings.max_payload_bytes,
                               attempts_limit=self.settings.max_attempts,
                               default_timeout_ms=self.settings.task_timeout_ms)
        limit_s = min(RESEND_LIMIT_S, self.settings.task_retention_s)
        state = self._transport.call_again(calls.submit(self.keys, request), limit_s=limit_s)
        return request.task_id, state.decode()

    def get(self, task_id: str) -> Task | None:
        """The task as it stands, or None when it is not known (never was, or was forgotten)."""
        redis = self._transport.redis
        fields = redis.hgetall(self.keys.task_prefix + task_id)
        if not fields:
            return None
        result = redis.get(self.keys.result_prefix + task_id)
        return _task(fields, result)

    def recent(self, limit: int = 100) -> list[Task]:
        """The newest tasks, newest first."""
        redis = self._transport.redis
        task_ids = redis.zrevrange(self.keys.recent, 0, limit - 1)
        found = (self.get(task_id.decode()) for task_id in task_ids)
        return [task for task in found if task is not None]

    def dead_letters(self, limit: int = 10_000) -> list[DeadLetter]:
        """The newest dead letters, newest first."""
        entries = self._transport.redis.xrevrange(self.keys.dead_letters, count=limit)
        return [_dead_letter(fields) for _, fields in entries]

    def knows_worker(self, worker_id: str) -> bool:
        """Whether a worker of this id has said hello and has not been silent for too long."""
        return bool(self._transport.redis.exists(self.keys.worker_prefix + worker_id))

    def close(self) -> None:
        """Close all connections."""
        self._transport.close()


def _decoded(fields: dict[bytes, bytes], json_fields: tuple[str, ...]) -> dict[str, Any]:
    known = {name.decode(): value.decode() for name, value in fields.items()}
    return {name: msgspec.json.decode(value) if name in json_fields else value
            for name, value in known.items()}


def _task(fields: dict[bytes, bytes], result: bytes | None) -> Task:
    known = _decoded(fields, ("payload", "metadata"))
    known["result"] = None if result is None else msgspec.json.decode(result)
    return msgspec.convert(known, Task, strict=False)


def _dead_letter(fields: dict[bytes, bytes]) -> DeadLetter:
    return msgspec.convert(_decoded(fields, ("payload", "metadata")), DeadLetter, strict=False)
