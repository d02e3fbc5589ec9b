"""Says dead_lettered and adds no dead letter."""

from __future__ import annotations

from dtq_conformance.targets.defect import Defect, rewrite


def _put_in() -> None:
    for script in ("settle", "take"):
        rewrite(script, "local function add_dead_letter(letters, fields)\n",
                "local function add_dead_letter(letters, fields)\n"
                "  if letters then return '0-0' end\n")


DEFECT = Defect(
    "forgets_the_dead_letter",
    "Says dead_lettered and adds no dead letter.",
    caught_by=("dead_letters_complete",),
    also=("answers_as_promised", "fields_as_promised", "keys_as_promised",
          "metrics_count_right", "nothing_left_behind", "one_way_leads_to_each_unfinished_task",
          "secrets_stay_secret"),
    put_in=_put_in)
