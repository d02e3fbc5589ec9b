"""The Lua scripts: one atomic step of the contract each, one file each, in `scripts/`.

`common.lua` is put in front of every script. A script gets its keys in KEYS and one msgpack map
in ARGV[1]; its head says what is in them and what it returns.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import resources

NAMES = ("submit", "take", "settle", "renew", "release", "promote", "register", "goodbye", "sweep",
         "cancel", "requeue", "discard", "pause", "forget_queue", "read")


@dataclass(frozen=True)
class Script:
    """A script's whole source and the SHA-1 by which the server knows it."""

    name: str
    source: str
    sha: str


def make(name: str, body: str) -> Script:
    """Join a script's body with the common part; a shebang line stays the first line."""
    common = _read("common")
    if body.startswith("#!"):
        shebang, _, body = body.partition("\n")
        source = f"{shebang}\n{common}\n{body}"
    else:
        source = f"{common}\n{body}"
    return Script(name, source, hashlib.sha1(source.encode()).hexdigest())


def _read(name: str) -> str:
    file = resources.files("dtq_reference") / "scripts" / f"{name}.lua"
    return file.read_text(encoding="utf-8")


SCRIPTS: dict[str, Script] = {name: make(name, _read(name)) for name in NAMES}
