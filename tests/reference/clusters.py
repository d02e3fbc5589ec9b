"""A cluster on loopback for the tests: three masters and one replica of one server binary.

Each node has a folder and a port of its own (and the bus its, which a node announces). The replica
belongs to the master that has the slot of the tests' installation, so that killing that one is
followed by a failover.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis
from dtq_conformance.broker import embedded_binary, free_port
from dtq_conformance.lab import Lab, LabProcess
from dtq_conformance.waiting import wait_for
from dtq_reference.cluster import SLOTS, slot_of
from redis.backoff import NoBackoff
from redis.retry import Retry

LIMIT_S = 30.0
NODE_TIMEOUT_MS = 1_000
MASTERS = 3

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Node:
    """One server of the cluster."""

    port: int
    bus_port: int
    process: LabProcess

    def client(self) -> Any:
        """A client of this node alone, which follows nobody elsewhere."""
        return redis.Redis(port=self.port, retry=Retry(NoBackoff(), 0), socket_timeout=5)

    def ask(self, *command: object) -> Any:
        with self.client() as client:
            return client.execute_command(*command)


@dataclass(frozen=True)
class Cluster:
    """Three masters, which share the slots in equal parts, and the replica of one of them."""

    masters: Sequence[Node]
    replica: Node
    followed: Node

    @property
    def url(self) -> str:
        """Where an engine finds it: one node is enough."""
        first = next(node for node in self.masters if node != self.followed)
        return f"redis+cluster://127.0.0.1:{first.port}"

    def master_of(self, prefix: str) -> Node:
        """The master that the keys of this prefix were given to."""
        return self.masters[_place_of(prefix)]


def _place_of(prefix: str) -> int:
    slot = slot_of(prefix)
    assert slot is not None, f"{prefix} has no hash tag"
    return slot * MASTERS // SLOTS


@contextmanager
def running_cluster(lab: Lab, folder: Path, *, followed: str) -> Iterator[Cluster]:
    """Start a cluster whose replica belongs to the master of the prefix `followed`."""
    nodes: list[Node] = []
    try:
        for _ in range(MASTERS + 1):
            name = f"node-{next(_numbers)}"
            nodes.append(_start(lab, folder / name, name))
        yield _join(nodes, _place_of(followed))
    finally:
        for node in nodes:
            with suppress(ProcessLookupError):
                node.process.kill()
            node.process.wait(LIMIT_S)


def _start(lab: Lab, folder: Path, name: str) -> Node:
    folder.mkdir(parents=True)
    ports = [free_port() for _ in range(2)]
    for held, _ in ports:
        if held is not None:
            held.close()
    port, bus_port = ports[0][1], ports[1][1]
    process = lab.start(name, [
        str(embedded_binary()), "--bind", "127.0.0.1", "--port", str(port), "--dir", str(folder),
        "--save", "", "--cluster-enabled", "yes", "--cluster-port", str(bus_port),
        "--cluster-node-timeout", str(NODE_TIMEOUT_MS), "--repl-diskless-sync-delay", "0",
        "--set-proc-title", "no"], role="broker")
    node = Node(port, bus_port, process)

    def answers() -> bool:
        assert process.alive, process.log.read_text()
        with suppress(redis.ConnectionError):
            return bool(node.ask("PING"))
        return False

    wait_for(answers, reason=f"{name} to answer", limit_s=LIMIT_S)
    return node


def _join(nodes: Sequence[Node], place: int) -> Cluster:
    """Give each master its third of the slots, and let all meet."""
    masters, replica = nodes[:MASTERS], nodes[MASTERS]
    for number, master in enumerate(masters):
        first, last = (-(-SLOTS * each // MASTERS) for each in (number, number + 1))
        master.ask("CLUSTER", "ADDSLOTSRANGE", first, last - 1)
        master.ask("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
    for node in nodes:
        with node.client() as client:
            for other in nodes:
                if other != node:
                    client.execute_command("CLUSTER", "MEET", "127.0.0.1", other.port,
                                           other.bus_port)
    followed = masters[place]
    followed_id = followed.ask("CLUSTER", "MYID").decode()
    wait_for(lambda: all(f"cluster_known_nodes:{len(nodes)}" in _info(node) for node in nodes),
             reason="the nodes to know each other", limit_s=LIMIT_S)

    def follows() -> bool:
        with suppress(redis.ResponseError):
            replica.ask("CLUSTER", "REPLICATE", followed_id)
            return True
        return False

    wait_for(follows, reason="the replica to know its master", limit_s=LIMIT_S)
    wait_for(lambda: replica.ask("INFO", "replication")["master_link_status"] == "up",
             reason="the replica to have its link", limit_s=LIMIT_S)
    wait_for(lambda: all("cluster_state:ok" in _info(node) for node in nodes),
             reason="the cluster to be whole", limit_s=LIMIT_S)
    wait_for(lambda: all(_knows_replica(node, replica) for node in masters),
             reason="all to know the replica", limit_s=LIMIT_S)
    return Cluster(masters, replica, followed)


def _info(node: Node) -> str:
    return str(node.ask("CLUSTER", "INFO"))


def _knows_replica(node: Node, replica: Node) -> bool:
    lines = node.ask("CLUSTER", "NODES")
    text = lines.decode() if isinstance(lines, bytes) else str(lines)
    return bool(re.search(rf":{replica.port}\b.*slave", text))
