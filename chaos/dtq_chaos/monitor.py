"""See what the broker is asked, by its MONITOR command: how often something about one task, and
by which scripts."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import Any

import redis
from dtq_conformance.waiting import wait_for


class Monitor:
    """Watches all commands that clients send, as a context manager."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._lines: list[tuple[int, str]] = []
        self._marker = "dtq-monitor-is-watching"
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Monitor:
        self._thread.start()

        def is_watching() -> bool:
            self._client.echo(self._marker)
            return any(self._marker in line for _, line in self._lines)

        wait_for(is_watching, reason="MONITOR to show commands", limit_s=10, every_s=0.02)
        return self

    def __exit__(self, *_: object) -> None:
        self._monitor.connection.disconnect()
        self._thread.join(5)

    def _watch(self) -> None:
        try:
            with self._client.monitor() as self._monitor:
                for command in self._monitor.listen():
                    if command["client_type"] != "lua":
                        self._lines.append((time.monotonic_ns(), command["command"]))
        except (redis.RedisError, OSError, ValueError, AttributeError):
            return  # disconnected: the end of watching

    def scripts(self) -> set[str]:
        """The SHA-1 of each script that was called by it so far."""
        return {_script(line) for _, line in list(self._lines)
                if line.upper().startswith("EVALSHA ")}

    def times_sent(self, task_id: str, *, not_before_ns: int = 0) -> int:
        """How often the most repeated call of a script that names this task was sent so far,
        of the scripts that nobody had called about it before that instant (CLOCK_MONOTONIC)."""
        calls = [(at_ns, line) for at_ns, line in list(self._lines)
                 if task_id in line and line.upper().startswith(("EVALSHA", "EVAL "))]
        known = {_script(line) for at_ns, line in calls if at_ns < not_before_ns}
        sent = Counter(line for _, line in calls if _script(line) not in known)
        return max(sent.values(), default=0)


def _script(line: str) -> str:
    return line.split(" ", 2)[1]
