"""The server of a run in a container: a process of the lab that stands for it.

`python -m dtq_conformance.container NAME IMAGE PORT ARGUMENT…` starts the container by
testcontainers, or starts it again if there is one of that name, passes its log on, and ends as the
server in it ends: of the same signal, or with the same code. So it is recorded and looked at like
any process of the lab. The container keeps its files until it is removed, by the broker that
started it or, when the harness is gone, by the guard; both know its name in advance.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from typing import Any

os.environ.setdefault("TESTCONTAINERS_RYUK_DISABLED", "true")  # the guard clears up
os.environ.setdefault("TESTCONTAINERS_HOST_OVERRIDE", "127.0.0.1")

REMOVED_LOOKS = 2
"""In how many looks in a row there must be no container: one may just be being made."""


class EngineMissing(Exception):
    """No container engine can be worked from here. The message says why and what to do."""


def engine() -> Any:
    """A client of the container engine that DOCKER_HOST names. Raises `EngineMissing`."""
    try:
        import docker
    except ImportError as error:
        raise EngineMissing("A broker in a container needs testcontainers, which is not installed "
                            "here: pip install 'dtq-contract[docker]'.") from error
    try:
        client = docker.from_env()
        client.ping()
    except Exception as error:  # whatever lies between here and the engine
        raise EngineMissing(f"No container engine can be reached: {error}. Start one, name its "
                            "socket in DOCKER_HOST, or use --broker embedded.") from error
    return client


def remove(name: str) -> None:
    """Remove the container of this name with its files, running or not. Raises `EngineMissing`."""
    import docker

    client = engine()
    with contextlib.closing(client):
        for _ in range(REMOVED_LOOKS):
            with contextlib.suppress(docker.errors.NotFound):
                client.api.remove_container(name, force=True, v=True)


def send_kill(name: str) -> None:
    """SIGKILL the server in the container; its files stay."""
    client = engine()
    with contextlib.closing(client):
        client.api.kill(name, "SIGKILL")


def _start(name: str, image: str, port: int, arguments: list[str]) -> Any:
    """A new container. Its port is the host's 127.0.0.1:port or, where the engine has no bridge to
    map ports with, that of the host's own network."""
    from testcontainers.core.container import DockerContainer

    client = engine()
    with contextlib.closing(client):
        has_bridge = bool(client.networks.list(names=["bridge"]))
    container = DockerContainer(image).with_name(name)
    if has_bridge:
        container.with_kwargs(ports={"6379/tcp": ("127.0.0.1", port)})
        container.with_command(["--bind", "0.0.0.0", "--port", "6379", "--protected-mode", "no",
                                *arguments])
    else:
        container.with_kwargs(network_mode="host")
        container.with_command(["--bind", "127.0.0.1", "--port", str(port), *arguments])
    return container.start().get_wrapped_container()


def main(name: str, image: str, port: int, arguments: list[str]) -> int:
    """Start it, pass its log on, and return its exit code; die of the signal that it died of."""
    import docker

    client = engine()
    try:
        container = client.containers.get(name)
        container.start()
    except docker.errors.NotFound:
        container = _start(name, image, port, arguments)
    for chunk in container.logs(stream=True, follow=True):
        os.write(1, chunk)
    code = int(container.wait()["StatusCode"])
    if code > 128:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), code - 128)
    return code


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]))
    except Exception as failure:  # its last line is what the broker's error quotes
        sys.exit(f"the container {sys.argv[1]} of {sys.argv[2]} cannot be started: {failure}")
