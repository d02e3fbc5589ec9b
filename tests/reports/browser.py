"""A page seen by Debian's headless Chromium: what it shows, complains about, and asks for."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

CHROMIUM = shutil.which("chromium")
ABSENT = "chromium is not on the PATH (Debian: apt-get install chromium)"

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--enable-logging=stderr",
         "--host-resolver-rules=MAP * ~NOTFOUND")

BROWSER_ITSELF = "not an origin"
"""What the net log names as the initiator of a request that no page has made."""


@dataclass(frozen=True)
class Seen:
    """The page's DOM, what the console said, and each URL that the page asked for."""

    dom: str
    console: tuple[str, ...]
    requests: tuple[str, ...]


def see(page: Path, folder: Path) -> Seen:
    """Open a page from the disk with a new profile in `folder`, as a user's browser would."""
    log = folder / "net-log.json"
    done = subprocess.run(
        [str(CHROMIUM), *FLAGS, f"--user-data-dir={folder / 'profile'}", f"--log-net-log={log}",
         "--dump-dom", page.as_uri()],
        capture_output=True, text=True, timeout=300, check=True)
    events = json.loads(log.read_text())["events"]
    asked = [event["params"] for event in events if "initiator" in event.get("params", {})]
    urls = [str(params["url"]) for params in asked if params["initiator"] != BROWSER_ITSELF]
    return Seen(done.stdout, tuple(re.findall(r"CONSOLE.*", done.stderr)),
                tuple(dict.fromkeys(urls)))


def screenshot(page: Path, picture: Path, folder: Path, *, height_px: int) -> None:
    """Save what the top of the page looks like in a window that is 1200 pixels wide."""
    subprocess.run(
        [str(CHROMIUM), *FLAGS, f"--user-data-dir={folder / 'profile'}", "--hide-scrollbars",
         f"--screenshot={picture}", f"--window-size=1200,{height_px}", page.as_uri()],
        capture_output=True, timeout=300, check=True)
