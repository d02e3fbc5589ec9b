"""The client that the Python peers share: what it asks of the app, and what it answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from dtq_load.peer_apps import client
from dtq_load.peer_apps.client import BULK, Client


class App:
    """A task queue that executes at once."""

    def __init__(self) -> None:
        self.said: list[object] = []

    def client(self) -> Client:
        return Client(submit=self.submit, submit_bulk=self.submit_bulk, wait=lambda number: number,
                      hold=lambda number, ms: self.said.append((number, ms)),
                      connect=self.said.append)

    def submit(self, number: int) -> int:
        self.said.append(number)
        return number

    def submit_bulk(self, numbers: Sequence[int]) -> None:
        self.said.append(len(numbers))


def ask(app: App, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    client.run(app.client(), words)
    answer: dict[str, object] = json.loads(capsys.readouterr().out)
    return answer


def test_tasks_are_submitted_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    app = App()
    assert ask(app, capsys, "submit", "3").keys() == {"seconds"}
    assert app.said == ["submit", 0, 1, 2]


def test_or_in_pieces(capsys: pytest.CaptureFixture[str]) -> None:
    app = App()
    ask(app, capsys, "submit", str(2 * BULK + 1), "--bulk")
    assert app.said == ["submit", BULK, BULK, 1]


def test_the_first_latency_does_not_count(capsys: pytest.CaptureFixture[str]) -> None:
    app = App()
    found = ask(app, capsys, "latency", "4")["ms"]
    assert isinstance(found, list)
    assert len(found) == 4
    assert app.said == ["latency", 0, 1, 2, 3, 4]


def test_a_wrong_result_is_no_latency(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="task 0 has the result 'wrong'"):
        client.run(Client(lambda number: number, len, lambda _: "wrong", divmod), ["latency", "1"])


def test_held_tasks_are_numbered_and_witnessed(capsys: pytest.CaptureFixture[str], tmp_path: Path,
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    app = App()
    ask(app, capsys, "hold", "2", "500")
    assert app.said == ["hold", (0, 500), (1, 500)]
    witness = tmp_path / "witness"
    witness.touch()
    monkeypatch.setenv("BENCH_WITNESS", str(witness))
    client.hold(7, 1)
    assert [line.split()[:2] for line in witness.read_text().splitlines()] == \
        [["start", "7"], ["end", "7"]]
