"""What is installed: the lock covers pyproject.toml, commands can be called, the contract is there.

Wheel and sdist themselves are opened, installed and run by `nox -s build`.
"""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def plain(requirement: str) -> str:
    """The name of a requirement as the index spells it."""
    return re.split(r"[\[<>=!~ ;]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def test_the_lock_names_every_dependency() -> None:
    lists = [PYPROJECT["project"]["dependencies"],
             *PYPROJECT["project"]["optional-dependencies"].values(),
             *PYPROJECT["dependency-groups"].values()]
    locked = {plain(line) for line in (ROOT / "requirements.lock").read_text().splitlines()
              if re.match(r"[a-z]", line)}
    missing = {plain(name) for names in lists for name in names} - locked - {"dtq-contract"}
    assert not missing, f"run nox -s lock; the lock lacks {sorted(missing)}"


@pytest.mark.parametrize("name", sorted(PYPROJECT["project"]["scripts"]))
def test_each_command_can_be_called(name: str) -> None:
    (command,) = entry_points(group="console_scripts", name=name)
    assert callable(command.load())


def test_the_installed_package_has_the_contract_of_this_checkout() -> None:
    installed = files("dtq_conformance").joinpath("CONTRACT.md").read_text()
    assert installed == (ROOT / "CONTRACT.md").read_text()


@pytest.mark.parametrize("room", ["reference", "conformance", "chaos", "load", "reports"])
def test_each_package_carries_its_types(room: str) -> None:
    (package,) = (ROOT / room).glob("dtq_*")
    assert (package / "py.typed").exists()
