"""Find the one node of a cluster that has our keys: all keys of an installation are in one slot.

Comes in: a `redis+cluster://` URL and the key prefix, whose hash tag names the slot. Goes out: the
address of the slot's master, as any node that is known tells it. Pure: who asks is the transport
and the heartbeat's process, each with a connection of its own.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

SLOTS = 16_384

ASK_TIMEOUT_S = 1.0
"""How long a node may take to say who has the slot, before another one is asked."""

Node = tuple[str, int]


def is_cluster(url: str) -> bool:
    """Whether this URL names nodes of a cluster."""
    return urlsplit(url).scheme.endswith("+cluster")


def plain_url(url: str) -> str:
    """The URL of the first node alone, as redis-py reads it; any other URL stays as it is."""
    if not is_cluster(url):
        return url
    parts = urlsplit(url)
    credentials, at, places = parts.netloc.rpartition("@")
    return parts._replace(scheme=parts.scheme.removesuffix("+cluster"),
                          netloc=credentials + at + places.split(",")[0]).geturl()


def slot_of(prefix: str) -> int | None:
    """The slot of all keys with this prefix; None if it has no hash tag, since then each key has
    its own. The hash is CRC-16/XMODEM: redis.io/docs/latest/operate/oss_and_stack/reference/
    cluster-spec, "Hash tags"."""
    tag = re.match(r"[^{]*\{([^}]+)\}", prefix)
    return binascii.crc_hqx(tag.group(1).encode(), 0) % SLOTS if tag else None


def nodes_of(url: str) -> list[Node]:
    """The hosts and ports in a cluster's URL. Raises ValueError."""
    places = urlsplit(url).netloc.rpartition("@")[2].split(",")
    split = [urlsplit(f"//{place}") for place in places]
    return [(place.hostname or "localhost", place.port or 6379) for place in split]


class Slot:
    """The nodes that are known, and what they say of one slot."""

    def __init__(self, number: int, nodes: list[Node]) -> None:
        self.number = number
        self._seeds = nodes
        self._nodes = nodes

    def nodes(self) -> Iterator[Node]:
        """Whom to ask, one after the other: one that did not help is asked last from then on."""
        for node in list(self._nodes):
            yield node
            self._nodes = [*(other for other in self._nodes if other != node), node]

    def master(self, asked: Node, reply: Any) -> Node | None:
        """The slot's master by the reply to CLUSTER SLOTS, and all nodes that it names.

        Each range is first slot, last slot, master, replicas; a node is its host, port and more. A
        host that is empty is the one that was asked. None when nobody has the slot.
        """
        ranges = [(first, last, [((node[0] or b"").decode() or asked[0], node[1])
                                 for node in nodes]) for first, last, *nodes in reply]
        told = [node for _, _, nodes in ranges for node in nodes]
        self._nodes = list(dict.fromkeys([asked, *told, *self._seeds]))
        return next((nodes[0] for first, last, nodes in ranges if first <= self.number <= last),
                    None)


def slot_in(url: str, prefix: str) -> Slot | None:
    """The slot of a cluster's URL; None for a single server. Raises ValueError when the prefix has
    no hash tag."""
    if not is_cluster(url):
        return None
    number = slot_of(prefix)
    if number is None:
        raise ValueError("a cluster needs a hash tag in DTQ_KEY_PREFIX, such as {orders}:")
    return Slot(number, nodes_of(url))
