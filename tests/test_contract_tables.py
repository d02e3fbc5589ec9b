"""The tables of CONTRACT.md and the reference engine say the same, in both directions.

A reader of the contract builds from its tables; here each is compared with what the engine has.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from typing import Any, get_args, get_origin

import msgspec
import pytest
from dtq_conformance.clauses import read_page, read_table
from dtq_conformance.key_table import KEY_TABLE
from dtq_conformance.states import REQUEUE, TRANSITIONS
from dtq_reference import cli, states
from dtq_reference.api import create_app
from dtq_reference.events import EVENT_TYPES
from dtq_reference.keys import Keys
from dtq_reference.metrics import METRICS
from dtq_reference.openapi import STATUS
from dtq_reference.settings import Settings, load
from dtq_reference.task import Task, TaskRequest

PAGE = read_page()

NO_KEYS = {"prefix", "streams", "events"}
"""Of `Keys`: what is a field, ten keys at once, and the channel."""

PARTS = {"task_prefix": "<task_id>", "result_prefix": "<task_id>", "once_prefix": "<key>",
         "idempotency_prefix": "<queue>:<key>", "worker_prefix": "<worker_id>"}
"""What a script appends to a prefix."""


def words(cell: str) -> list[str]:
    """What stands between backticks in a cell, or the cell itself."""
    return re.findall(r"`([^`]+)`", cell) or [cell]


def test_the_engines_transitions_are_the_contracts() -> None:
    assert states.TRANSITIONS == TRANSITIONS
    assert REQUEUE[0] in states.TERMINAL


def test_the_engine_names_each_key_of_the_table_and_no_other() -> None:
    keys = Keys("")
    found = {keys.stream("<queue>", "<level>"), keys.paused("<queue>")}  # type: ignore[arg-type]
    for name in {name for name in dir(keys) if not name.startswith("_")} - NO_KEYS:
        value = getattr(keys, name, "")
        if isinstance(value, str) and value:
            found.add(value + PARTS.get(name, ""))
    assert found == {rule.name for rule in KEY_TABLE}
    assert [row[0] for row in read_table(PAGE, "key")] == [rule.name for rule in KEY_TABLE]


def meta_of(annotation: Any) -> msgspec.Meta:
    """The limits of a field; none if it has none."""
    found = [each for each in get_args(annotation) if isinstance(each, msgspec.Meta)]
    if not found and get_origin(annotation) is not None:
        found = [meta_of(each) for each in get_args(annotation) if get_origin(each) is not None]
    return found[0] if found else msgspec.Meta()


def shown(value: object) -> str:
    """A default as the table shows it."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


SETTINGS = msgspec.structs.fields(Settings)


def test_the_settings_are_those_of_the_table_with_these_defaults() -> None:
    rows = {row[0]: row[1] for row in read_table(PAGE, "variable")}
    assert list(rows) == [f"DTQ_{field.name.upper()}" for field in SETTINGS]
    assert {name: default for name, default in rows.items() if default not in ("(none)", "(drawn)")
            } == {f"DTQ_{field.name.upper()}": shown(field.default) for field in SETTINGS
                  if field.default != ""}


def limits(accepts: str) -> tuple[float, float] | None:
    """The least and the most that a cell of numbers names."""
    found = re.match(r"([\d.]+) to (\d+)(?!\d| characters)", accepts)
    return (float(found.group(1)), float(found.group(2))) if found else None


NUMBERS = [(row[0], each) for row in read_table(PAGE, "variable") if (each := limits(row[2]))]


@pytest.mark.parametrize(("name", "bounds"), NUMBERS)
def test_a_number_of_the_settings_has_the_limits_of_the_table(
        name: str, bounds: tuple[float, float]) -> None:
    (kind,) = (type(field.default) for field in SETTINGS if f"DTQ_{field.name.upper()}" == name)
    meta = next(meta_of(field.type) for field in SETTINGS if f"DTQ_{field.name.upper()}" == name)
    assert kind in (int, float)
    assert (meta.ge, meta.le) == bounds


def test_every_number_among_the_settings_has_limits_in_the_table() -> None:
    assert {name for name, _ in NUMBERS} == {
        f"DTQ_{field.name.upper()}" for field in SETTINGS if type(field.default) in (int, float)}


def test_a_submission_has_the_fields_of_the_table_with_these_defaults() -> None:
    rows = {row[0]: row[2] for row in read_table(PAGE, "field")}
    fields = {field.name: field for field in msgspec.structs.fields(TaskRequest)}
    assert set(rows) == set(fields)
    request = TaskRequest(task_type="x")
    for name in ("queue", "priority", "max_attempts", "delay_ms", "payload", "metadata"):
        assert rows[name] == shown(getattr(request, name))


@pytest.mark.parametrize(("field", "least", "most"), [
    (row[0], float(found.group(1)), float(found.group(2))) for row in read_table(PAGE, "field")
    if (found := re.match(r"(\d+) to (\d+)(?!\d| char)", row[1]))])
def test_a_number_of_a_submission_has_the_limits_of_the_table(
        field: str, least: float, most: float) -> None:
    meta = next(meta_of(each.type) for each in msgspec.structs.fields(TaskRequest)
                if each.name == field)
    assert (meta.ge, meta.le) == (least, most)


def test_a_task_shows_the_fields_of_the_table() -> None:
    named = [word for row in read_table(PAGE, "shown") for word in words(row[0])]
    assert sorted(named) == sorted(Task.__struct_fields__)


def test_the_events_are_those_of_the_table() -> None:
    assert [row[0] for row in read_table(PAGE, "event")] == list(EVENT_TYPES)


def test_the_metrics_are_those_of_the_table_with_their_types_and_labels() -> None:
    assert [(name, kind, tuple(label for label in labels.split(", ") if label))
            for name, kind, labels, _ in read_table(PAGE, "metric")] == [
        (name, metric.kind, metric.labels) for name, metric in METRICS.items()]


def test_the_codes_are_those_of_the_table_with_their_statuses() -> None:
    assert {code: int(status) for code, status, _ in read_table(PAGE, "code")} == STATUS


def test_the_routes_are_those_of_the_table_with_the_statuses_of_success() -> None:
    document = create_app(load({})).openapi()
    routes = {f"{method.upper()} {path}": {int(status) for status in told["responses"]
                                           if status.startswith("2")}
              for path, methods in document["paths"].items() for method, told in methods.items()}
    assert routes == {route: {int(word) for word in status.split(", ")}
                      for route, status, _ in read_table(PAGE, "route")}


def commands(parser: argparse.ArgumentParser,
             name: str) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command that has none below it, with its parser."""
    below = [action for action in parser._actions
             if isinstance(action, argparse._SubParsersAction)]
    if not below:
        yield name, parser
    for action in below:
        for word, each in action.choices.items():
            yield from commands(each, f"{name} {word}")


def arguments_of(parser: argparse.ArgumentParser) -> set[str]:
    """A command's arguments as the table shows them: TASK_ID, [PAYLOAD], --yes."""
    actions = [action for action in parser._actions if action.dest != "help"]
    return {action.option_strings[0] if action.option_strings
            else f"[{action.dest.upper()}]" if action.nargs == "?" else action.dest.upper()
            for action in actions}


def test_the_commands_are_those_of_the_table_with_their_arguments() -> None:
    assert {command: set(arguments.replace("`", "").split())
            for command, arguments, _ in read_table(PAGE, "command")} == {
        name: arguments_of(parser) for name, parser in commands(cli._parser(), "dtq")}
