"""Where the Toxiproxy server comes from: a URL, the PATH, the user's cache, or Go's builder.

Comes in: DTQ_TOXIPROXY_URL, the PATH, the cache. Goes out: `Found`, which `toxiproxy.Toxiproxy`
starts or connects to; or `ToxiproxyMissing`, which makes a scenario "not run".
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

VERSION = "2.12.0"
PACKAGE = f"github.com/Shopify/toxiproxy/v2/cmd/server@v{VERSION}"
BUILD_LIMIT_S = 600


class ToxiproxyMissing(Exception):
    """No Toxiproxy server is to be had; the message says what was tried and how to get one."""


@dataclass(frozen=True)
class Found:
    """Where a server comes from: a running one's `url`, or the `path` or `cache` of a program."""

    kind: Literal["url", "path", "cache"]
    where: str

    def __str__(self) -> str:
        origin = {"url": "running at", "path": "from the PATH:", "cache": "from the cache:"}
        return f"{origin[self.kind]} {self.where}"


def cached_server() -> Path:
    """The place in the user's cache where `install` puts the server."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    usual = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    cache = Path(given) if Path(given).is_absolute() else usual
    return cache / "dtq-contract" / "bin" / "toxiproxy-server"


def find() -> Found:
    """Return the server to use: DTQ_TOXIPROXY_URL, then the PATH, then the user's cache.

    Asks nothing of the network. Raises `ToxiproxyMissing`.
    """
    if url := os.environ.get("DTQ_TOXIPROXY_URL"):
        return Found("url", url)
    if on_path := shutil.which("toxiproxy-server"):
        return Found("path", on_path)
    cached = cached_server()
    if cached.is_file() and os.access(cached, os.X_OK):
        return Found("cache", str(cached))
    raise ToxiproxyMissing(
        f"there is no Toxiproxy server: DTQ_TOXIPROXY_URL is not set, toxiproxy-server is not on "
        f"the PATH, and {cached} does not exist. `python -m dtq_chaos.toxiproxy install` builds "
        f"it with Go; brew and Toxiproxy's release page have it ready-made.")


def install() -> Found:
    """Return the server to use; build it into the user's cache if there is none yet.

    Raises `ToxiproxyMissing` if it cannot be built: no Go, or no way to its sources.
    """
    try:
        return find()
    except ToxiproxyMissing as missing:
        go = shutil.which("go")
        if go is None:
            raise ToxiproxyMissing(f"{missing} Go is not on the PATH either.") from None
    target = cached_server()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix="build-") as folder:
            _build(go, Path(folder))
            (Path(folder) / "server").replace(target)
    except OSError as error:
        raise ToxiproxyMissing(f"Toxiproxy cannot be put into {target.parent}: {error}") from error
    return Found("cache", str(target))


def _build(go: str, folder: Path) -> None:
    """Build the server as `folder/server`, the name that Go gives it."""
    command = [go, "install", PACKAGE]
    said = f"`{' '.join(command)}`"
    try:
        done = subprocess.run(command, cwd=folder, env={**os.environ, "GOBIN": str(folder)},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=BUILD_LIMIT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise ToxiproxyMissing(f"{said} was not done after {BUILD_LIMIT_S} s. Set GOPROXY if the "
                               f"network needs it, or DTQ_TOXIPROXY_URL.") from error
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise ToxiproxyMissing(f"{said} exited with {done.returncode}: {last}. Set GOPROXY if the "
                               f"network needs it, or put a toxiproxy-server on the PATH.")


def stamped_version(program: Path) -> str | None:
    """The version that Go stamped into a server's program: one built by `go install` answers
    "git" when it is asked. None if there is no stamp, as in release binaries."""
    stamp = re.search(rb"\tgithub\.com/Shopify/toxiproxy/v2\tv(\d[\w.+-]*)", program.read_bytes())
    return stamp[1].decode() if stamp else None
