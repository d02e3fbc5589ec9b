"""Find the server: the address in a URL, and in a cluster the one node that has our keys, since all
keys of an installation are in one slot.

Comes in: the URL, and the key prefix, whose hash tag names the slot. Goes out: an address, and the
slot's master, as any node that is known tells it.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from dtq_reference.wire import Address, Connection, Node, ScriptError

SLOTS = 16_384

ASK_TIMEOUT_S = 1.0
"""How long a node may take to say who has the slot, before another one is asked."""


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

    def __init__(self, address: Address) -> None:
        self._address = address
        self._nodes = self._seeds = [(host, port) for host, port in address.nodes]

    def find(self) -> Node:
        """Ask the nodes, one after the other, for the slot's master; one that did not help is asked
        last from then on. Raises ConnectionError when none does."""
        problem: Exception | str = "nobody has it"
        for node in list(self._nodes):
            asked = self._address._replace(host=node[0], port=node[1])
            connection = Connection(asked, ASK_TIMEOUT_S)
            try:
                if master := self.master(node, connection.call("CLUSTER", "SLOTS")):
                    return master
            except (OSError, ScriptError) as error:
                problem = error
            finally:
                connection.close()
            self._nodes = [*(other for other in self._nodes if other != node), node]
        raise ConnectionError(f"no node tells the master of slot {self._address.slot}: {problem}")

    def master(self, asked: Node, reply: Any) -> Node | None:
        """The slot's master by the reply to CLUSTER SLOTS, all nodes of which are remembered.

        Each range is first slot, last slot, master, replicas; a node is its host, port and more. A
        host that is empty is the one that was asked. None when nobody has the slot.
        """
        ranges = [(first, last, [((node[0] or b"").decode() or asked[0], node[1])
                                 for node in nodes]) for first, last, *nodes in reply]
        told = [node for _, _, nodes in ranges for node in nodes]
        self._nodes = list(dict.fromkeys([asked, *told, *self._seeds]))
        return next((nodes[0] for first, last, nodes in ranges
                     if first <= self._address.slot <= last), None)


def finder(address: Address) -> Callable[[], Node] | None:
    """What finds the server anew for each connection; None where it stays where it is."""
    return Slot(address).find if address.nodes else None
