"""A schedule: made in advance from a seed, saved, and read back."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from dtq_chaos.schedule import Entry, Schedule, ScheduleError, When, load

SCHEDULE = Schedule(
    scenario="story", target="reference", broker="embedded", seed=7,
    entries=[Entry(fault="stop_worker", when=When(event="start", count=3, label="victim"),
                   until=When(event="exit", worker="worker-1"), parameters={"worker": "w"}),
             Entry(fault="kill_worker", when=When(event="at_once"))])


def saved(folder: Path, content: bytes | None = None) -> Path:
    path = folder / "schedule.json"
    path.write_bytes(msgspec.json.encode(SCHEDULE) if content is None else content)
    return path


def test_a_saved_schedule_is_read_back_as_it_was(tmp_path: Path) -> None:
    assert load(saved(tmp_path)) == SCHEDULE


@pytest.mark.parametrize(("event", "words"), [
    (When(event="start", count=3, label="victim"), "start 3 of victim"),
    (When(event="in_hand", count=8, worker="worker-1"), "in_hand 8 of worker-1"),
    (When(event="at_once"), "at_once 1")])
def test_an_event_is_told_in_words(event: When, words: str) -> None:
    assert str(event) == words


def test_a_folder_without_a_schedule_is_said_to_be_no_run_of_chaos(tmp_path: Path) -> None:
    with pytest.raises(ScheduleError, match=r"schedule\.json cannot be read: No such file or"):
        load(tmp_path / "schedule.json")


@pytest.mark.parametrize(("content", "complaint"), [
    (b"", "truncated"), (b"[]", "Expected `object`"), (b"{}", "missing required field"),
    (msgspec.json.encode(SCHEDULE)[:-20], "truncated"),
    (msgspec.json.encode(SCHEDULE).replace(b'"seed"', b'"sead"'), "sead"),
    (msgspec.json.encode(SCHEDULE).replace(b'"start"', b'"sunrise"'), "sunrise")])
def test_what_is_no_schedule_is_refused_with_the_reason(
        tmp_path: Path, content: bytes, complaint: str) -> None:
    with pytest.raises(ScheduleError, match=complaint):
        load(saved(tmp_path, content))
