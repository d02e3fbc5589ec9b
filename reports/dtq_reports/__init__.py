"""The reports room: from the files of a run to a page that answers "was anything lost?".

It reads run folders only (history.jsonl, verdict.json, schedule.json), so any old run can be drawn
again. It judges nothing: statuses and sentences come from the verdict, numbers from the history.
"""
