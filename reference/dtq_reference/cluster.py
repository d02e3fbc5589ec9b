"""Where the server is, as the settings tell it: a URL, and in a cluster the slot of the key prefix,
since all keys of an installation are in one slot. `wire.Slot` finds the master of that.
"""

from __future__ import annotations

import binascii
import re
from urllib.parse import parse_qsl, unquote, urlsplit

from dtq_reference.wire import Address

SLOTS = 16_384


def slot_of(prefix: str) -> int | None:
    """The slot of all keys with this prefix; None if it has no hash tag, since then each key has
    its own. The hash is CRC-16/XMODEM: redis.io/docs/latest/operate/oss_and_stack/reference/
    cluster-spec, "Hash tags"."""
    tag = re.match(r"[^{]*\{([^}]+)\}", prefix)
    return binascii.crc_hqx(tag.group(1).encode(), 0) % SLOTS if tag else None


def address_of(url: str, prefix: str = "") -> Address:
    """The address in redis://USER:PASSWORD@HOST:PORT/DB, rediss:// (TLS), unix://PATH?db=DB, or
    redis+cluster://HOST:PORT,HOST:PORT, and there the slot of the prefix. Raises ValueError."""
    parts = urlsplit(url)
    credentials, _, places = parts.netloc.rpartition("@")
    username, _, password = map(unquote, credentials.partition(":"))
    nodes = [(node.hostname or "localhost", node.port or 6379)
             for node in (urlsplit(f"//{place}") for place in places.split(","))]
    options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    is_file, is_cluster = parts.scheme == "unix", parts.scheme.endswith("+cluster")
    path = unquote(parts.path)
    db = int(options.pop("db", "" if is_file else path.strip("/")) or 0)
    if options or parts.fragment or (is_file and not path) or (len(nodes) > 1 and not is_cluster):
        raise ValueError(f"what {parts.scheme} URLs do not have")
    return Address(
        *nodes[0], nodes=nodes if is_cluster else (), slot=slot_of(prefix) if is_cluster else None,
        path=path if is_file else "", tls=parts.scheme.startswith("rediss"), username=username,
        password=password, db=db)
