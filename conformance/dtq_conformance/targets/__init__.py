"""The targets that come with the harness, by name. Others are named `module:attribute`."""

from __future__ import annotations

from dtq_conformance.target import TargetKind
from dtq_conformance.targets.reference import REFERENCE

TARGETS: dict[str, TargetKind] = {"reference": REFERENCE}
