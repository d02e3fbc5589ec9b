"""The fronts of a target: its HTTP API and its command, asked as their users ask them.

Comes in: a bench whose target serves them (`target.ServesApi`, `target.HasCommand`). Goes out:
an `Exchange` in the history for each question, with what the contract expects of the answer. An
`Api` can also be submitted through, like any client of the target.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from dtq_conformance.bench import READY_LIMIT_S, Bench, TargetFault
from dtq_conformance.broker import free_port, last_line
from dtq_conformance.exchange import Exchange, Expected, LogSearch, code_of
from dtq_conformance.history import Fault
from dtq_conformance.lab import LabProcess
from dtq_conformance.operation import Operation, Refused
from dtq_conformance.target import Accepted, Command, HasCommand, ServesApi, Submission
from dtq_conformance.waiting import WaitedTooLong, wait_for

ROOT = "/api/v1"
ANSWER_LIMIT_S = 15.0
"""How long an answer is waited for; a target gives up on its broker long before."""

COMMAND_LIMIT_S = 30.0
HOST = "127.0.0.1"


def want(clause: str, told: str, *status: int, **more: Any) -> Expected:
    """What a clause asks of an answer; see `Expected`."""
    return Expected(clause=clause, told=told, status=list(status), **more)


class Api:
    """One API process of the target, and a client of it."""

    def __init__(self, bench: Bench, process: LabProcess, port: int) -> None:
        self._bench = bench
        self.process = process
        self.port = port

    def ask(self, method: str, path: str, body: Any = None, *expects: Expected,
            raw: bytes | None = None, headers: Mapping[str, str] | None = None) -> Exchange:
        """Ask for a path behind /api/v1, or at the root if it begins with `//`. `raw` is sent as it
        is in place of `body`."""
        path = path[1:] if path.startswith("//") else ROOT + path
        content = raw if raw is not None else None if body is None else json.dumps(body).encode()
        given = dict(headers or {})
        if content is not None:
            given.setdefault("Content-Type", "application/json")
        asked_ns = time.monotonic_ns()
        status, answered, text, trouble = send(self.port, method, path, content, given)
        sent = {"headers": dict(headers or {}), "body": body if raw is None else None,
                "bytes": len(content or b"")}
        exchange = Exchange(
            asked_ns=asked_ns, answered_ns=time.monotonic_ns(), via="http",
            server=self.process.name, words=[method, path], sent=sent, status=status,
            headers=answered, body=_decoded(text), messages=trouble, expects=list(expects))
        self._bench.records.append(exchange)
        return exchange

    def get(self, path: str, *expects: Expected, **more: Any) -> Exchange:
        """Ask with GET."""
        return self.ask("GET", path, None, *expects, **more)

    def post(self, path: str, body: Any = None, *expects: Expected, **more: Any) -> Exchange:
        """Ask with POST."""
        return self.ask("POST", path, body, *expects, **more)

    # ------------------------------------------------------------ as a client of the target

    def submit(self, submission: Submission) -> Accepted:
        """Submit a task through the API. Raises `Refused`."""
        return accepted(self.post("/tasks", fields_of(submission)))

    def worker(self, worker_id: str, concurrency: int, *, broker_url: str | None = None) -> Any:
        """The command of a worker: that of the bench's own target."""
        return self._bench.target.worker(worker_id, concurrency, broker_url=broker_url)

    def close(self) -> None:
        """Nothing is kept open between two questions."""

    def demand(self, name: str, path: str, task_id: str | None, *expects: Expected,
               headers: Mapping[str, str] | None = None) -> Exchange:
        """Ask for something that changes a task or its queue. The history has it as the operation
        of this name too, as if it had been asked of the target itself."""
        if name == "requeue" and task_id:
            self._bench.look(task_id)
        asked_ns = time.monotonic_ns()
        exchange = self.post(path, None, *expects, headers=headers)
        requested = code_of(exchange) == "CANCEL_REQUESTED"
        good = requested or exchange.status in (200, 202)
        self._bench.records.append(Operation(
            name=name, task_id=task_id, asked_ns=asked_ns, answered_ns=exchange.answered_ns,
            outcome="ok" if good else "unknown" if (exchange.status or 500) >= 500 else "refused",
            answer={"said": "requested" if requested else "cancelled"} if name == "cancel" and good
            else {} if good else dict(exchange.body) if isinstance(exchange.body, dict) else {}))
        if name == "requeue":
            self._bench.last_looks.pop(task_id or "", None)
        return exchange

    def note(self, fields: Mapping[str, Any], status: int, body: Any, asked_ns: int) -> None:
        """Record a submission that came another way, as an item of a batch did."""
        said = body if isinstance(body, dict) else {}
        task_id = str(fields.get("task_id") or said.get("task_id"))
        submission = Submission(task_id=task_id, payload=dict(fields.get("payload", {})), **{
            name: fields[name] for name in ("priority", "max_attempts", "timeout_ms", "delay_ms",
                                            "idempotency_key") if name in fields})
        if status == 202:
            self._bench.submissions.setdefault(task_id, submission)
        self._bench.records.append(Operation(
            name="submit", task_id=task_id, asked_ns=asked_ns, answered_ns=time.monotonic_ns(),
            outcome="ok" if status in (200, 202) else "refused",
            request=msgspec.to_builtins(submission),
            answer={} if status == 202 else {
                name: said[name] for name in ("code", "message", "task_id", "duplicate")
                if name in said}))


def send(port: int, method: str, path: str, content: bytes | None, headers: Mapping[str, str],
         ) -> tuple[int | None, dict[str, str], str, str]:
    """Send one request; returns status, headers, body and, if no answer came, why."""
    connection = http.client.HTTPConnection(HOST, port, timeout=ANSWER_LIMIT_S)
    try:
        connection.request(method, quote(path, safe="/?&=%,.:~"), content, dict(headers))
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
        return (answer.status, {name.lower(): value for name, value in answer.getheaders()},
                text, "")
    except (OSError, http.client.HTTPException) as error:
        return None, {}, "", f"{type(error).__name__}: {error}"
    finally:
        connection.close()


_held: list[socket.socket] = []
"""What keeps outgoing connections off the ports that the target's servers are to have."""


def unused_port() -> int:
    """A port that nobody else gets for as long as this process lives: a server of the target does,
    if it sets SO_REUSEADDR, as servers do."""
    held, port = free_port()
    if held is not None:
        _held.append(held)
    return port


def fields_of(submission: Submission) -> dict[str, Any]:
    """A submission as the body of a request."""
    fields: dict[str, Any] = {
        name: getattr(submission, name) for name in (
            "task_id", "task_type", "payload", "priority", "max_attempts", "timeout_ms",
            "delay_ms")}
    if submission.idempotency_key is not None:
        fields["idempotency_key"] = submission.idempotency_key
    if submission.ttl_ms:
        fields["metadata"] = {"ttl_seconds": submission.ttl_ms / 1000}
    return fields


def accepted(exchange: Exchange) -> Accepted:
    """What became of a submission. Raises `Refused` if it surely was not accepted, and
    `ConnectionError` if nobody can say."""
    if exchange.status in (200, 202) and isinstance(exchange.body, dict):
        return Accepted(task_id=str(exchange.body.get("task_id")),
                        duplicate=exchange.body.get("duplicate") is True)
    code = code_of(exchange)
    if (400 <= (exchange.status or 0) < 500) or code == "BROKER_UNAVAILABLE":
        about = exchange.body if isinstance(exchange.body, dict) else {}
        raise Refused(code, str(about.get("message", "")), **{
            name: about[name] for name in ("task_id", "status") if name in about})
    raise ConnectionError(f"{exchange.status}: {exchange.messages or exchange.body}")


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


@contextlib.contextmanager
def api_of(bench: Bench, **settings: str) -> Iterator[Api]:
    """Start an API process of the target and stop it at the end. `settings` are DTQ_ variables, on
    top of those of the run. Raises `TargetFault` if it does not serve."""
    target = bench.target
    if not isinstance(target, ServesApi):
        raise TargetFault("The target claims http, and has no api().")
    port = unused_port()
    command = target.api(port)
    count = sum(process.role == "api" for process in bench.lab.processes())
    process = bench.lab.start(f"api-{count + 1}", command.argv, role="api",
                              environment={**command.environment, **settings})
    api = Api(bench, process, port)
    try:
        wait_for(lambda: not process.alive or _serves(api), reason="the API to serve",
                 limit_s=READY_LIMIT_S)
    except WaitedTooLong as late:
        raise TargetFault(f"{late}; the last line of {process.log} is: {last_line(process.log)}") \
            from late
    if not process.alive:
        process.wait(READY_LIMIT_S)
        raise TargetFault(f"The API exited with code {process.exit_code} before it served; the "
                          f"last line of {process.log} is: {last_line(process.log)}")
    try:
        yield api
    finally:
        process.resume()
        process.terminate()
        try:
            process.wait(READY_LIMIT_S)
        except WaitedTooLong:
            process.kill()


def _serves(api: Api) -> bool:
    status, *_ = send(api.port, "GET", "/health", None, {})
    return status is not None


def run_command(bench: Bench, *arguments: str, expects: Sequence[Expected] = (), typed: str = "",
                settings: Mapping[str, str] | None = None) -> Exchange:
    """Run the target's command to its end. `typed` stands on its standard input; `settings` are
    DTQ_ variables on top of those of the run."""
    command = _command(bench, *arguments)
    asked_ns = time.monotonic_ns()
    done = bench.lab.run(command.argv, environment={**command.environment, **(settings or {})},
                         typed=typed, limit_s=COMMAND_LIMIT_S)
    exchange = Exchange(
        asked_ns=asked_ns, answered_ns=time.monotonic_ns(), via="command", server="command",
        words=list(arguments), sent={"settings": dict(settings or {}), "typed": typed},
        status=done.returncode, body=_decoded(done.stdout), messages=done.stderr,
        expects=list(expects))
    bench.records.append(exchange)
    return exchange


def start_command(bench: Bench, *arguments: str,
                  settings: Mapping[str, str] | None = None) -> LabProcess:
    """Start a command of the target that runs until it is stopped."""
    command = _command(bench, *arguments)
    return bench.lab.start("-".join(arguments), command.argv, role="command",
                           environment={**command.environment, **(settings or {})})


def _command(bench: Bench, *arguments: str) -> Command:
    target = bench.target
    if not isinstance(target, HasCommand):
        raise TargetFault("The target claims cli or configuration, and has no command().")
    return target.command(*arguments)


def inspected(bench: Bench, server: str, words: Sequence[str], body: Any,
              *expects: Expected) -> Exchange:
    """Record what the harness saw itself, and what is expected of it."""
    now_ns = time.monotonic_ns()
    exchange = Exchange(asked_ns=now_ns, answered_ns=now_ns, via="inspection", server=server,
                        words=list(words), status=0, body=body, expects=list(expects))
    bench.records.append(exchange)
    return exchange


def search_logs(bench: Bench, what: Any, text: str) -> None:
    """Search the logs of all processes of the target for a text, and record what was found. Of a
    `forged line` only lines count that begin with the text."""
    for process in bench.lab.processes():
        if process.role not in ("worker", "api"):
            continue
        lines = process.log.read_text(errors="replace").splitlines()
        hits = [line for line in lines
                if (line.lstrip().startswith(text) if what == "forged line" else text in line)]
        bench.records.append(LogSearch(
            at_ns=time.monotonic_ns(), process=process.name, lines=len(lines), what=what,
            text=text, found=[hit[:300] for hit in hits[:5]]))


@contextlib.contextmanager
def broker_away(bench: Bench) -> Iterator[bool]:
    """Within, the broker answers nobody; False where it is not ours to be stopped."""
    process = bench.lab.broker.process
    if process is None:
        yield False
        return
    process.stop()
    for phase in ("begin", "bit"):
        _note_away(bench, phase)
    try:
        yield True
    finally:
        process.resume()
        _note_away(bench, "end")


def _note_away(bench: Bench, phase: Any) -> None:
    number = sum(isinstance(record, Fault) and record.phase == phase for record in bench.records)
    bench.records.append(Fault(at_ns=time.monotonic_ns(), fault="stop_broker", number=number,
                               phase=phase, effect="broker_away"))
