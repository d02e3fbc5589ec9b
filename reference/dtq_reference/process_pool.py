"""Run sync handlers in child processes, which can be killed at the time limit.

A child is started when none is idle, loads the worker's task modules, and then executes one order
after the other. Worker and child share one socket, and a message is its length in four bytes, then
msgpack. When the socket ends the worker is gone, and so is the child, also from within a handler.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import dataclasses
import os
import queue
import signal
import socket
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

import msgspec

from dtq_reference import handlers, logs
from dtq_reference.errors import RetryableError
from dtq_reference.executor import (
    Failure,
    UnknownTaskType,
    bounded_result,
    contain,
    failure_of,
)
from dtq_reference.handlers import TaskContext
from dtq_reference.settings import Settings

START_LIMIT_S = 60.0
"""How long a child may take to load the task modules."""

PR_SET_PDEATHSIG = 1
"""`prctl` of Linux: the signal that a process gets when its parent ends, whatever it does then."""

_encode = msgspec.msgpack.encode


class Start(msgspec.Struct, frozen=True):
    """The first message to a child; its answer is an empty result."""

    settings: Settings
    path: list[str]
    modules: list[str]


class Order(msgspec.Struct, frozen=True):
    """One attempt; its answer is the result as JSON, or a `Failure`."""

    task_type: str
    payload: bytes
    context: TaskContext


class WorkerLost(RetryableError):
    """The process that was to execute an attempt died, or there was none to be had."""


@dataclass(frozen=True)
class Child:
    """The worker's end of one child process."""

    process: asyncio.subprocess.Process
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @classmethod
    async def start(cls) -> Child:
        """Start a process, which then waits for its first message."""
        ours, theirs = socket.socketpair()
        with theirs:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "dtq_reference.process_pool", str(theirs.fileno()),
                stdin=asyncio.subprocess.DEVNULL, pass_fds=[theirs.fileno()])
        return cls(process, *await asyncio.open_unix_connection(sock=ours))

    async def ask(self, message: Start | Order, *, limit_s: float) -> bytes | Failure:
        """The answer to a message. Without one the process is killed: raises TimeoutError at the
        time limit, and `WorkerLost` when the process has died."""
        try:
            async with asyncio.timeout(limit_s):
                self.writer.write(_framed(_encode(message)))
                size = int.from_bytes(await self.reader.readexactly(4))
                return msgspec.msgpack.decode(await self.reader.readexactly(size),
                                              type=bytes | Failure)
        except TimeoutError:
            await self._kill()
            raise TimeoutError(f"the handler's process was killed after {limit_s:g} s") from None
        except (EOFError, OSError):
            code = await self._kill()
            raise WorkerLost(f"the handler's process ended with code {code}") from None

    async def _kill(self) -> int:
        """Its exit code. `process.kill` would reap one that is dead, and nobody knew the code."""
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process.pid, signal.SIGKILL)
        self.writer.close()
        return await self.process.wait()


class ProcessPool:
    """As many children as there were handlers to run at once."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._idle: list[Child] = []

    async def run(self, task_type: str, payload: bytes, context: TaskContext, *,
                  limit_s: float) -> bytes | Failure:
        """Execute one attempt in a child; the time limit counts from when one is there. Raises
        TimeoutError or `WorkerLost`: then the child is gone, and the next attempt gets another."""
        child = await self._child()
        context = dataclasses.replace(context, deadline=time.monotonic() + limit_s)
        answer = await child.ask(Order(task_type, payload, context), limit_s=limit_s)
        self._idle.append(child)
        return answer

    async def _child(self) -> Child:
        while self._idle:
            child = self._idle.pop()
            if not child.reader.at_eof():
                return child
        try:
            child = await Child.start()
        except OSError as error:
            raise WorkerLost(f"no process could be started: {error}") from error
        await child.ask(Start(self._settings, sys.path, handlers.loaded_modules()),
                        limit_s=START_LIMIT_S)
        return child


def _framed(message: bytes) -> bytes:
    return len(message).to_bytes(4) + message


# In the child -------------------------------------------------------------------------------------

def main() -> None:
    """Execute orders until the worker is gone. Signals that ask the worker to stop are its own
    business; they are handled, not ignored, so that what a handler starts does not inherit it."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    channel = socket.socket(fileno=int(sys.argv[1]))
    channel.set_inheritable(False)
    messages: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(channel, messages), daemon=True).start()
    start = msgspec.msgpack.decode(messages.get(), type=Start)
    logs.configure(start.settings)
    sys.path[:] = start.path
    handlers.load_modules(start.modules)
    answer: bytes | Failure = b""
    while True:
        channel.sendall(_framed(_encode(answer)))
        order = msgspec.msgpack.decode(messages.get(), type=Order)
        answer = _execute(order, start.settings.result_max_bytes)


def _listen(channel: socket.socket, messages: queue.SimpleQueue[bytes]) -> None:
    """Pass messages on; when the worker is gone end the process, whatever it is doing."""
    try:
        with channel.makefile("rb") as file:
            while header := file.read(4):
                messages.put(file.read(int.from_bytes(header)))
    finally:
        os._exit(0)


def _execute(order: Order, result_max_bytes: int) -> bytes | Failure:
    try:
        handler = handlers.find(order.task_type)
        if handler is None:
            raise UnknownTaskType(f"unknown_task_type:{order.task_type}")
        payload: Any = msgspec.json.decode(order.payload)
        return bounded_result(contain(handler.function, payload, order.context), result_max_bytes)
    except Exception as error:
        return failure_of(error)


if __name__ == "__main__":
    main()
