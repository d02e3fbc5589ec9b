"""The lines of a history are strict: each says its kind, and nothing that is not of its kind."""

from __future__ import annotations

import msgspec
import pytest
from dtq_conformance.record import Fault, Footer, Header, Mark, Pace, Process, Stall, Witness

from tests.conformance.histories import born, fault, flat, header, mark, stall, start

LINES = [header(), start(10), mark(), stall(1, 2), *flat([born(1), fault("cut", 1, 2, worker=1)]),
         Pace(beats=1, first_ns=1, last_ns=2, longest_gap_ms=0.5), Footer(lines=1, sha256="")]
Line = Header | Witness | Process | Fault | Mark | Stall | Pace | Footer


@pytest.mark.parametrize("line", LINES, ids=lambda line: type(line).__name__)
def test_a_line_says_its_kind_and_takes_no_other_word(line: Line) -> None:
    told = msgspec.to_builtins(line)
    assert told["kind"] == type(line).__name__.lower()
    assert msgspec.convert(told, Line) == line
    with pytest.raises(msgspec.ValidationError, match="mood"):
        msgspec.convert(told | {"mood": "good"}, Line)
