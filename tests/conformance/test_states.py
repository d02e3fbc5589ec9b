"""The transition table as data: the contract's diagram is drawn from it."""

from __future__ import annotations

from dtq_conformance.clauses import read_page
from dtq_conformance.states import BEGINNINGS, REQUEUE, TRANSITIONS, diagram, reachable
from dtq_conformance.target import STATUSES, TERMINAL


def test_the_diagram_in_the_contract_is_the_one_that_is_drawn() -> None:
    assert read_page().count("```mermaid") == 1
    assert f"```mermaid\n{diagram()}\n```\n" in read_page()


def test_the_diagram_shows_each_transition_once_and_the_requeue() -> None:
    arrows = [line.strip().partition(" : ")[0].split(" --> ")
              for line in diagram().splitlines()[1:]]
    wanted = [["[*]", state] for state in BEGINNINGS]
    wanted += [[state, after] for state, following in TRANSITIONS.items() for after in following]
    wanted += [[state, "[*]"] for state in TERMINAL]
    assert sorted(arrows) == sorted([*wanted, list(REQUEUE)])


def test_the_states_are_the_statuses_and_the_terminal_ones_have_no_way_out() -> None:
    assert set(TRANSITIONS) == set(STATUSES)
    assert {state for state, following in TRANSITIONS.items() if not following} == TERMINAL


def test_an_observation_can_be_followed_by_what_several_transitions_lead_to() -> None:
    assert reachable("pending") == frozenset(STATUSES)
    assert reachable("retrying") == frozenset(STATUSES) - {"pending"}
    assert reachable("failed") == {"failed"}
    assert reachable("no status") == {"no status"}
