"""x"""
from dtq_conformance.target import TargetKind, UnknownTarget
def load(name: str) -> TargetKind:
    raise UnknownTarget(name)
