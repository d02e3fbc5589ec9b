"""What the tests of the benchmark's peers share: a server of their module, and its packages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec

import pytest
from dtq_load.bench.stand import Stand

from tests.load import peer_run


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """A server of this module's own, with the processes of its peers."""
    with peer_run.stand_in(tmp_path_factory.mktemp("stand")) as stand:
        yield stand


@pytest.fixture
def python_peers(need: Callable[[object, str], None]) -> None:
    """The libraries that the extra brings."""
    for module in ("huey", "dramatiq", "taskiq_redis", "celery"):
        need(find_spec(module), f"{module}: pip install 'dtq-contract[bench]'")
