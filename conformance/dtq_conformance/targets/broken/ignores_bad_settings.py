"""Starts with the defaults when a setting is bad."""

from __future__ import annotations

import os
from collections.abc import Mapping

from dtq_reference import settings
from dtq_reference.errors import SettingsError
from dtq_reference.settings import Settings

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    load = settings.load

    def forgiving(environment: Mapping[str, str] = os.environ) -> Settings:
        try:
            return load(environment)
        except SettingsError:
            return load({"DTQ_REDIS_URL": environment["DTQ_REDIS_URL"]})

    settings.load = forgiving


DEFECT = Defect(
    "ignores_bad_settings",
    "Starts with the defaults when a setting is bad.",
    caught_by=("settings_checked_at_the_start",), also=("commands_as_promised",),
    put_in=_put_in)
