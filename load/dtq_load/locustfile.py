"""What Locust loads: the users, and what happens when a test starts and stops.

Runs in Locust's own process only, since Locust patches the standard library at import.
"""

from __future__ import annotations

from typing import Any

from locust import events
from locust.env import Environment

from dtq_load.assignment import meeting_here
from dtq_load.users import EngineUser, Sessions

__all__ = ["EngineUser"]


def listen(environment: Environment, **_: Any) -> None:
    """Open a session for each test that is started, and close it when the test stops."""
    sessions = Sessions(environment, meeting_here())
    environment.events.test_start.add_listener(sessions.start)  # type: ignore[no-untyped-call]
    environment.events.test_stop.add_listener(sessions.stop)  # type: ignore[no-untyped-call]


events.init.add_listener(listen)  # type: ignore[no-untyped-call]
