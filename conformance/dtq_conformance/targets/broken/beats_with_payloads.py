"""Sends the payloads of all that it has in hand with each heartbeat."""

from __future__ import annotations

from dtq_reference.hands import Hands

from dtq_conformance.targets.defect import Defect


def _put_in() -> None:
    about = Hands.about

    def about_and_payloads(self: Hands) -> dict[str, str | int]:
        payloads = b"".join(hold.taken.payload for hold in self.holds.values())
        return {**about(self), "in_hand": payloads.decode()}

    Hands.about = about_and_payloads  # type: ignore[method-assign]


DEFECT = Defect(
    "beats_with_payloads",
    "Sends the payloads of all that it has in hand with each heartbeat.",
    caught_by=("duplicates_justified",), also=("nothing_left_behind", "one_holder_at_a_time"),
    put_in=_put_in)
