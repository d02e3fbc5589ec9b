"""The transition table says what the contract says, and no more."""

from __future__ import annotations

from dtq_conformance.target import STATUSES
from dtq_conformance.target import TERMINAL as TERMINAL_OF_THE_CONTRACT
from dtq_reference.states import TERMINAL, TRANSITIONS


def test_the_states_are_those_of_the_contract() -> None:
    assert set(TRANSITIONS) == set(STATUSES)
    assert TERMINAL == TERMINAL_OF_THE_CONTRACT
    assert set().union(*TRANSITIONS.values()) <= set(TRANSITIONS)


def test_a_terminal_state_has_no_way_out_and_every_other_leads_to_one() -> None:
    for state in TRANSITIONS:
        reached, front = {state}, {state}
        while front:
            front = set().union(*(TRANSITIONS[each] for each in front)) - reached
            reached |= front
        assert reached == {state} if state in TERMINAL else reached & TERMINAL
