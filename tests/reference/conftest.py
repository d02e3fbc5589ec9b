"""A broker that all tests of the engine share; each test has an installation of its own on it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest
from dtq_conformance import nursery
from dtq_conformance.lab import Lab
from dtq_conformance.waiting import wait_for

from tests.reference.engine import LEASE_S, Engine
from tests.reference.processes import ending_what_starts


@pytest.fixture(scope="session")
def lab(request: pytest.FixtureRequest,
        tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    broker: str = request.config.getoption("--engine-broker")
    with Lab(tmp_path_factory.mktemp("logs"), broker=broker) as lab:
        with lab.broker.connect() as client:
            wait_for(lambda: client.info("server")["uptime_in_seconds"] > LEASE_S,
                     reason="the server to be older than a lease", limit_s=20)
        yield lab


@pytest.fixture(scope="module")
def forked(lab: Lab) -> Iterator[None]:
    """The processes of a module's tests are forked: to start Python and to import takes longer than
    most of what they do. None of them may outlive the module, as the shared lab does."""
    with nursery.forking(("dtq_reference.cli", "dtq_reference.worker", "dtq_reference.api")):
        yield


@pytest.fixture
def engine(lab: Lab) -> Iterator[Engine]:
    engine = Engine(lab.broker.url, f"t-{secrets.token_hex(4)}:")
    with ending_what_starts(lab):
        yield engine
    if left := list(engine.redis.scan_iter(f"{engine.keys.prefix}*", count=1000)):
        engine.redis.delete(*left)
    engine.close()
