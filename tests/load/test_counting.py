"""What MONITOR shows, counted by who sent it."""

from __future__ import annotations

from dtq_load.bench.counting import count

SHOWN = b"""+OK\r
+1764500000.000001 [0 127.0.0.1:4001] "EVALSHA" "abc" "1" "key" "a \\"quoted\\" one"\r
+1764500000.000002 [0 lua] "HSET" "task" "a" "b"\r
+1764500000.000003 [0 lua] "PUBLISH" "events" "+1 [0 lua] \\"SET\\""\r
+1764500000.000004 [0 127.0.0.1:4999] "XLEN" "stream"\r
+1764500000.000005 [0 127.0.0.1:4002] "XREAD" "BLOCK" "1000"\r
"""


def test_clients_and_scripts_are_told_apart_and_our_own_looks_left_out() -> None:
    assert count(SHOWN, own="127.0.0.1:4999") == (2, 2)
