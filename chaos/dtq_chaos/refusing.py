"""What faults share by which a server of the lab's own refuses work while its settings are bad.

Seen at both ends: with which word a write of the harness's own is refused.
"""

from __future__ import annotations

from collections.abc import Mapping

from dtq_chaos.fault import Bite, Stage


def begin(stage: Stage, settings: Mapping[str, str]) -> Bite:
    """Make the settings bad."""
    _configure(stage, settings)
    return Bite(detail={"refused": [stage.bench.keyspace.refusal()]})


def end(stage: Stage, bite: Bite, settings: Mapping[str, str]) -> None:
    """Make the settings good again; what is seen before that joins what was seen at first."""
    bite.detail["refused"].append(stage.bench.keyspace.refusal())
    _configure(stage, settings)


def _configure(stage: Stage, settings: Mapping[str, str]) -> None:
    for setting, value in settings.items():
        stage.bench.lab.broker.configure(setting, value)
