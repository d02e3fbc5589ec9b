"""An outcome is unknown unless proven."""

from __future__ import annotations

import msgspec
import pytest
from dtq_conformance.operation import Operation, Outcome, Refused, outcome_of


class RefusedByANovice(Refused):
    """A target's own kind of refusal."""


@pytest.mark.parametrize(("error", "outcome"), [
    (None, "ok"), (Refused("QUEUE_FULL", "no"), "refused"), (RefusedByANovice("X", ""), "refused"),
    (TimeoutError(), "unknown"), (ConnectionResetError(), "unknown"), (ValueError(), "unknown"),
    (KeyboardInterrupt(), "unknown")], ids=repr)
def test_only_a_refusal_proves_that_nothing_happened(
        error: BaseException | None, outcome: Outcome) -> None:
    assert outcome_of(error) == outcome


def test_a_refusal_keeps_code_and_message() -> None:
    refused = Refused("INVALID_TASK", "priority is 10")
    assert (refused.code, refused.message) == ("INVALID_TASK", "priority is 10")
    assert str(refused) == "INVALID_TASK: priority is 10"


def test_an_operation_with_an_unknown_field_is_not_read() -> None:
    line = (b'{"kind":"operation","name":"look","asked_ns":1,"answered_ns":2,"outcome":"ok",'
            b'"mood":"good"}')
    with pytest.raises(msgspec.ValidationError, match="mood"):
        msgspec.json.decode(line, type=Operation)
