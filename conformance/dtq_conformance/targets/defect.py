"""A broken engine is the reference with one defect, which says by whom it must be caught."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from dataclasses import dataclass

from dtq_reference.scripts import SCRIPTS, Script

from dtq_conformance.target import Site
from dtq_conformance.targets.reference import ReferenceKind, ReferenceTarget


@dataclass(frozen=True)
class Defect:
    """One way to be wrong. `put_in` changes the reference within this process.

    Of the checkers, all of `caught_by` must convict it, and those in `also` may.
    """

    name: str
    wrong: str
    caught_by: tuple[str, ...]
    also: tuple[str, ...]
    put_in: Callable[[], None]


@dataclass(frozen=True)
class BrokenKind(ReferenceKind):
    """The reference with a defect, in its workers and in the client. For a process of its own:
    what is put in stays in."""

    defect: Defect | None = None

    def open(self, site: Site) -> ReferenceTarget:
        """Put the defect in and make it ready to be worked."""
        if self.defect is not None and not _put_in:
            self.defect.put_in()
            _put_in.append(self.defect)
        return super().open(site)


_put_in: list[Defect] = []


def kind_of(defect: Defect) -> BrokenKind:
    """The target that has this defect."""
    return BrokenKind(
        name=f"broken:{defect.name}", defect=defect,
        program=(sys.executable, "-m", "dtq_conformance.targets.broken", defect.name))


def rewrite(script: str, old: str, new: str) -> None:
    """Replace one passage of a script. It must stand there exactly once, so that a change of the
    reference cannot heal a broken engine unseen."""
    source = SCRIPTS[script].source
    if source.count(old) != 1:
        raise LookupError(f"{script}.lua has {source.count(old)} times, not once: {old!r}")
    source = source.replace(old, new)
    SCRIPTS[script] = Script(script, source, hashlib.sha1(source.encode()).hexdigest())
