"""BullMQ on Node as a peer of the benchmark: https://docs.bullmq.io.

Its app stands in `peer_apps/bullmq/` with the versions of what it needs. It runs from a copy in the
user's cache, since Node looks for packages beside the file: `npm ci` puts them there, once for each
content of the three files, when the version is asked for.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import redis

from dtq_load.bench.peer import APPS, NotInstalled, Peer, Size

APP = APPS / "bullmq"
FILES = ("app.mjs", "package.json", "package-lock.json")
KEYS = "bull:bench"
INSTALL_LIMIT_S = 300.0


def folder() -> Path:
    """Where this version of the app is installed, or will be."""
    content = hashlib.sha256(b"\0".join((APP / name).read_bytes() for name in FILES))
    given = os.environ.get("XDG_CACHE_HOME", "")
    usual = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    cache = Path(given) if Path(given).is_absolute() else usual
    return cache / "dtq-contract" / f"bullmq-{content.hexdigest()[:12]}"


def install() -> Path:
    """Return the folder with everything in it. Raises `NotInstalled`."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise NotInstalled(f"BullMQ needs Node 20 or later and npm, and there is no {program} "
                               "on the PATH: install Node.")
    place = folder()
    if place.is_dir():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix="bullmq-") as made:
        fresh = Path(made, "app")
        fresh.mkdir()
        for name in FILES:
            shutil.copy(APP / name, fresh)
        _npm_ci(fresh)
        if not place.is_dir():  # another process may have been faster
            fresh.rename(place)
    return place


def _npm_ci(place: Path) -> None:
    command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    try:
        done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False,
                              timeout=INSTALL_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise NotInstalled(f"BullMQ was not installed within {INSTALL_LIMIT_S:g} s by "
                           f"`{' '.join(command)}`: is the npm registry within reach?") from None
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise NotInstalled(f"BullMQ is not installed, and `{' '.join(command)}` exited with "
                           f"{done.returncode}: {last}")


def version() -> str:
    """Of BullMQ and its client library, as installed. Raises `NotInstalled`."""
    packages = install() / "node_modules"
    found = {name: json.loads((packages / name / "package.json").read_text())["version"]
             for name in ("bullmq", "ioredis")}
    return f"{found['bullmq']} with ioredis {found['ioredis']}"


def left(client: redis.Redis, _submitted: int) -> int:
    """A script moves a job from waiting to active, and one from active to completed with its
    result."""
    with client.pipeline(transaction=True) as both:
        both.llen(f"{KEYS}:wait")
        both.llen(f"{KEYS}:active")
        return sum(both.execute())


def kept(client: redis.Redis) -> int:
    return int(client.zcard(f"{KEYS}:completed"))


def command(*words: str) -> list[str]:
    return ["node", str(folder() / "app.mjs"), *words]


PEER = Peer(
    name="bullmq", language="JavaScript",
    settings="One Node process with the option concurrency, the function in the process itself, "
             "an ioredis client without a limit of retries, as its guide for production asks; "
             "bulk is addBulk, latency is waitUntilFinished over QueueEvents; a slot is a promise.",
    guarantee="At least once, for one death: jobs whose lock, 30 s and renewed every 15, has run "
              "out go back at the second look, 30 s apart, after the death; a job whose worker "
              "dies a second time fails instead (maxStalledCount 1; its documentation and its "
              "scripts).",
    size=Size(1, 200),
    sweep=tuple(Size(1, slots) for slots in (1, 20, 50, 100, 200, 400)),
    version=version, worker=lambda size: command("work", str(size.slots)),
    client=command(), left=left, kept=kept)
