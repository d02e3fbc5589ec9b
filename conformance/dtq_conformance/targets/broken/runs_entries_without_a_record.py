"""Executes an entry whose task has no record, from what the entry itself says."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    rewrite("take", "    bury_orphan(entry)\n",
            "    local key = call.task_prefix .. fields_of(entry.flat).task_id\n"
            "    redis.call('HSET', key, unpack(entry.flat))\n"
            "    redis.call('HSET', key, 'status', 'queued', 'entry_id', entry.id,\n"
            "               'created_at', NOW, 'available_at', NOW, 'metadata', '{}')\n"
            "    entry.task = read_entry(entry.level, entry.id, entry.flat).task\n"
            "    return false\n")


DEFECT = Defect(
    "runs_entries_without_a_record",
    "Executes an entry whose task has no record, from what the entry itself says.",
    caught_by=("dead_letters_complete", "nothing_invented"), also=("nothing_left_behind",),
    put_in=_put_in)
