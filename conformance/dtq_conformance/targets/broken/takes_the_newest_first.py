"""Takes of a level the newest entry that waits, not the oldest."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("take", "    local read = redis.call('XREADGROUP', 'GROUP', GROUP, call.consumer, "
                    "'COUNT',\n                            call.room - #tasks, 'STREAMS', "
                    "KEYS[level], '>')\n    if not read then return nil end\n",
            "    local newest\n"
            "    for _, each in ipairs(redis.call('XREVRANGE', KEYS[level], '+', '-')) do\n"
            "      newest = newest or not redis.call('XPENDING', KEYS[level], GROUP, each[1], "
            "each[1], 1)[1] and each\n"
            "    end\n"
            "    if not newest then return nil end\n"
            "    redis.call('XGROUP', 'SETID', KEYS[level], GROUP, '$')\n"
            "    redis.call('XCLAIM', KEYS[level], GROUP, call.consumer, 0, newest[1], "
            "'RETRYCOUNT', 1, 'FORCE', 'JUSTID')\n"
            "    local read = {{KEYS[level], {newest}}}\n")


DEFECT = Defect(
    "takes_the_newest_first",
    "Takes of a level the newest entry that waits, not the oldest.",
    caught_by=("strict_priority",), also=(),
    put_in=_put_in)
