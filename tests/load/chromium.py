"""Debian's headless Chromium, driven over its debugging pipe as a user would drive it."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dtq_conformance.waiting import wait_for

from tests.reports.browser import CHROMIUM, FLAGS

LIMIT_S = 120.0

ONLY_THIS_MACHINE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"

IN_FRONT = ("--disable-background-timer-throttling", "--disable-renderer-backgrounding",
            "--disable-backgrounding-occluded-windows")
"""A page that asks every two seconds keeps doing so, though nobody is seen to look at it."""

LAUNCH = """
import fcntl, os, sys
reads, writes = (fcntl.fcntl(int(each), fcntl.F_DUPFD_CLOEXEC, 5) for each in sys.argv[1:3])
os.dup2(reads, 3)
os.dup2(writes, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Chromium reads from its descriptor 3 and writes to its 4."""


class Tab:
    """One tab. Commands and answers are JSON, each ended by a NUL byte."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._rest = b""
        self._number = 0
        self._session: str | None = None
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target,
                                  flatten=True)["sessionId"]

    def open(self, address: str) -> None:
        """Go to a page and wait until it is loaded."""
        self._ask("Page.navigate", url=address)
        self.await_true("document.readyState === 'complete'")

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression in the page."""
        answer = self._ask("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def await_true(self, script: str) -> Any:
        """Wait until an expression is true in the page; returns its value."""
        return wait_for(lambda: self.run(script), reason=script, limit_s=LIMIT_S, every_s=0.1)

    def screenshot(self, picture: Path) -> None:
        """Save what the tab shows."""
        picture.write_bytes(base64.b64decode(self._ask("Page.captureScreenshot")["data"]))

    def _ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        question = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            question["sessionId"] = self._session
        os.write(self._to, json.dumps(question).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            pass
        assert "error" not in answer, answer["error"]
        result: dict[str, Any] = answer["result"]
        return result

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            piece = os.read(self._from, 65_536)
            assert piece, "Chromium has ended"
            self._rest += piece
        message, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found


@contextlib.contextmanager
def tab(folder: Path) -> Iterator[Tab]:
    """A tab of a Chromium with a new profile in `folder`."""
    browser_reads, to_browser = os.pipe()
    from_browser, browser_writes = os.pipe()
    command = [str(CHROMIUM), *FLAGS, *IN_FRONT, ONLY_THIS_MACHINE,
               "--remote-debugging-pipe", "--window-size=1200,900",
               f"--user-data-dir={folder / 'profile'}"]
    launch = [sys.executable, "-c", LAUNCH, str(browser_reads), str(browser_writes)]
    with (folder / "chromium.log").open("wb") as log:
        browser = subprocess.Popen([*launch, *command], stdout=log, stderr=log,
                                   pass_fds=(browser_reads, browser_writes))
    os.close(browser_reads)
    os.close(browser_writes)
    try:
        yield Tab(to_browser, from_browser)
    finally:
        browser.terminate()
        browser.wait(LIMIT_S)
        os.close(to_browser)
        os.close(from_browser)
