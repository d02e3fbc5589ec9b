"""The reference as a target: its settings, and its words in those of the protocol."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest
from dtq_conformance.lab import Lab
from dtq_conformance.operation import Refused
from dtq_conformance.target import (
    CLAIMS,
    AdministersDeadLetters,
    Cancels,
    HasCommand,
    ListsDeadLetters,
    Pauses,
    Purges,
    ServesApi,
    ShowsReadiness,
    Site,
    Submission,
    faults_in,
    load_target,
)
from dtq_conformance.targets.reference import REFERENCE, ReferenceTarget, derived

from tests.conformance.histories import T, U
from tests.conformance.miniature import TIMING, lab_in


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab_in(tmp_path_factory.mktemp("logs")) as lab:
        yield lab


@pytest.fixture(scope="module")
def target(lab: Lab) -> Iterator[ReferenceTarget]:
    target = REFERENCE.open(Site(lab.broker.url, "p:", lab.witness, TIMING))
    yield target
    target.close()


def submission(task_id: str, **fields: int) -> Submission:
    return Submission(task_id=task_id, payload={"steps": [], "label": ""}, **fields)


def test_a_task_is_seen_as_it_was_submitted(target: ReferenceTarget) -> None:
    target.submit(submission(T, priority=8, max_attempts=3))
    seen = target.look(T)
    assert seen is not None
    assert faults_in(seen, task_id=T) == []
    assert (seen.status, seen.attempt, seen.max_attempts, seen.priority) == ("queued", 1, 3, 8)


def test_what_was_never_submitted_is_not_known(target: ReferenceTarget) -> None:
    assert target.look("f" * 32) is None


def test_a_submission_outside_the_limits_is_refused_with_a_code(target: ReferenceTarget) -> None:
    with pytest.raises(Refused) as caught:
        target.submit(submission(U, priority=10))
    assert caught.value.code == "INVALID_TASK"
    assert target.look(U) is None


@pytest.mark.parametrize("ability", [Cancels, Pauses, Purges, AdministersDeadLetters])
def test_it_can_do_what_its_claims_need(target: ReferenceTarget, ability: type) -> None:
    assert isinstance(target, ability)


def test_it_lists_dead_letters_and_shows_which_workers_are_ready(target: ReferenceTarget) -> None:
    assert isinstance(target, ListsDeadLetters)
    assert isinstance(target, ShowsReadiness)
    assert target.dead_letters() == []
    assert not target.is_ready("worker-1")


def test_the_intervals_of_the_run_are_those_of_the_worker(lab: Lab) -> None:
    timing = msgspec.structs.replace(TIMING, lease_ms=1500, heartbeat_ms=250, reap_ms=350,
                                     schedule_ms=45, drain_ms=2500)
    target = REFERENCE.open(Site(lab.broker.url, "p:", lab.witness, timing))
    environment = target.worker("worker-1", 2).environment
    target.close()
    assert {name: environment[f"DTQ_{name}"] for name in (
        "VISIBILITY_TIMEOUT_S", "HEARTBEAT_INTERVAL_S", "REAP_INTERVAL_S",
        "SCHEDULER_INTERVAL_S", "DRAIN_TIMEOUT_S")} == {
        "VISIBILITY_TIMEOUT_S": "1.5", "HEARTBEAT_INTERVAL_S": "0.25", "REAP_INTERVAL_S": "0.35",
        "SCHEDULER_INTERVAL_S": "0.045", "DRAIN_TIMEOUT_S": "2.5"}
    assert environment["DTQ_REDIS_URL"] == lab.broker.url


def test_its_api_and_its_command_have_the_settings_of_the_site(lab: Lab) -> None:
    site = Site(lab.broker.url, "p:", lab.witness, TIMING, {"DTQ_MAX_QUEUE_DEPTH": "7"})
    target = REFERENCE.open(site)
    api, command = target.api(8123), target.command("dlq", "list")
    target.close()
    assert isinstance(target, ServesApi) and isinstance(target, HasCommand)
    assert list(api.argv)[3:5] == ["api", "run"]
    assert list(command.argv)[3:] == ["dlq", "list"]
    assert api.environment["DTQ_API_PORT"] == "8123"
    for each in (api, command, target.worker("worker-1", 2)):
        assert each.environment["DTQ_MAX_QUEUE_DEPTH"] == "7"
        assert each.environment["DTQ_KEY_PREFIX"] == "p:"


def test_it_claims_what_can_be_claimed_and_a_derived_engine_claims_the_same() -> None:
    assert load_target("reference").claims <= frozenset(CLAIMS)
    other = derived("other", ["dtq-other"])
    assert (other.name, other.program, other.claims) == ("other", ["dtq-other"], REFERENCE.claims)
