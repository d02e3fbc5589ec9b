"""The HTTP API for the tests, served on a free port by the server that `dtq api run` uses."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import msgspec
from dtq_conformance.waiting import wait_for
from dtq_reference import api
from dtq_reference.settings import Settings

from tests.reference.engine import Engine

API = "/api/v1"
TASK_ID = "0123456789abcdef" * 2
LIMIT_S = 20.0


class Client:
    """Asks the API of one installation. A path begins behind the prefix, `//` at the root."""

    def __init__(self, http: httpx.Client) -> None:
        self.http = http

    def __call__(self, method: str, path: str, body: Any = None, *, content: bytes | None = None,
                 **headers: str) -> httpx.Response:
        if body is not None:
            content = json.dumps(body).encode()
        return self.http.request(
            method, path[1:] if path.startswith("//") else API + path, content=content,
            headers={name.replace("_", "-"): value for name, value in headers.items()})

    def get(self, path: str, **headers: Any) -> httpx.Response:
        return self("GET", path, **headers)

    def post(self, path: str, body: Any = None, **options: Any) -> httpx.Response:
        return self("POST", path, body, **options)

    def submit(self, **fields: Any) -> str:
        answer = self.post("/tasks", {"task_type": "echo_task", **fields})
        assert answer.status_code == 202, answer.text
        task_id: str = answer.json()["task_id"]
        return task_id


@contextmanager
def served(settings: Settings, known_types: frozenset[str] | None = None) -> Iterator[str]:
    """The API in a thread of this process; gives its address."""
    settings = msgspec.structs.replace(settings, api_port=0)
    server, listening = api.server_for(api.create_app(settings, known_types), settings)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        wait_for(lambda: server.started or not thread.is_alive(), reason="the API to be served",
                 limit_s=LIMIT_S)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(LIMIT_S)
        assert not thread.is_alive(), "the API did not stop"


@contextmanager
def asked(engine: Engine, known_types: frozenset[str] | None = None,
          **settings: Any) -> Iterator[Client]:
    """A client of the API; `settings` are those of `Settings`."""
    configured = engine.with_settings(**settings).settings if settings else engine.settings
    with served(configured, known_types) as url, httpx.Client(base_url=url) as http:
        yield Client(http)


def is_refusal(answer: httpx.Response, status: int, code: str) -> bool:
    """Whether it is refused in the one form, for this reason."""
    body = answer.json()
    assert body["request_id"] == answer.headers["x-request-id"]
    assert body["message"].endswith("."), body
    assert "Traceback" not in answer.text
    assert (answer.status_code, body["code"]) == (status, code), answer.text
    return True
