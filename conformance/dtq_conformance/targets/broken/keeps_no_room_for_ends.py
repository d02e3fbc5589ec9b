"""Drops whatever comes for a slow client whose events are full, the end of a task too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtq_conformance.targets.defect import Defect

if TYPE_CHECKING:
    from dtq_reference.events import Mailbox


def _put_in() -> None:
    from dtq_reference import events  # needs what the API needs, and that need not be installed

    put = events.Mailbox.put

    def put_if_there_is_room(self: Mailbox, text: str, *, is_terminal: bool) -> None:
        if len(self) < events.MAILBOX_SIZE:
            put(self, text, is_terminal=is_terminal)

    events.Mailbox.put = put_if_there_is_room  # type: ignore[method-assign]


DEFECT = Defect(
    "keeps_no_room_for_ends",
    "Drops whatever comes for a slow client whose events are full, the end of a task too.",
    caught_by=("one_event_per_transition",), also=(),
    put_in=_put_in)
