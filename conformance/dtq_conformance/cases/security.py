"""Cases of security: keys, traces, logs, signatures, and payloads that look like code."""

from __future__ import annotations

import contextlib
from pathlib import Path

from dtq_conformance.bench import Bench
from dtq_conformance.checkers.secrets_stay_secret import AUDIT, FORGED
from dtq_conformance.front import Api, api_of, inspected, search_logs, want
from dtq_conformance.trial import Trial

KEY = "open-sesame-of-the-judge"
SIGNING_KEY = "seal-of-the-judge"
SECRET_PAYLOAD = "payload-that-nobody-may-read"
LINE = "2026-01-01 ERROR a line that was sent"
LATER_MS = 600_000
NOBODY = "0123456789abcdef" * 2


def _only_the_key_opens(bench: Bench) -> None:
    """Destructive requests without the key, with other keys, and with the key."""
    bench.start_worker()
    with api_of(bench) as api:
        _needs_no_key(bench, api)
        waiting = bench.submit(through=api, delay_ms=LATER_MS)
        dead, other, third = (bench.submit({"fail": "permanent"}, through=api) for _ in range(3))
        bench.await_all_terminal([dead, other, third])
        paths = (("cancel", f"/tasks/{waiting}/cancel", waiting),
                 ("pause", "/queue/default/pause", None),
                 ("discard", f"/dlq/{other}/discard", other),
                 ("requeue", f"/dlq/{dead}/requeue", dead),
                 ("purge_dead_letters", "/dlq/purge", None),
                 ("resume", "/queue/default/resume", None))
        for name, path, task_id in paths:
            api.demand(name, path, task_id, want(
                "SEC-02", f"a {name} without a key", 401, code="UNAUTHENTICATED"))
            for key in (KEY[:-1], KEY + "x", KEY.upper(), ""):
                api.demand(name, path, task_id, want(
                    "SEC-02", f"a {name} with another key", 403, code="FORBIDDEN"),
                    headers={"X-API-Key": key})
        api.get(f"/tasks/{waiting}", want("SEC-02", "a look at the task after requests without the "
                                          "key", 200, holds={"status": "pending"}))
        api.get("/queues/default", want("SEC-02", "a look at the queue after requests without the "
                                        "key", 200, holds={"paused": False, "dlq_depth": 3}))
        for name, path, task_id in paths:
            api.demand(name, path, task_id, want("SEC-02", f"a {name} with the key", 200, 202),
                       headers={"X-API-Key": KEY, "X-Request-ID": f"judge-{name}"})
        bench.await_all_terminal()
        _look_at_the_audit(bench)


def _needs_no_key(bench: Bench, api: Api) -> None:
    for path in ("/tasks", "/queues", "/workers", "/dlq", "//health", "//ready", "//metrics"):
        api.get(path, want("SEC-04", f"a look at {path} without a key", 200))
    api.post("/tasks", {"task_type": "probe_task", "task_id": bench.new_id(), "priority": 10},
             want("SEC-04", "a submission without a key", 400, code="INVALID_TASK"))


def _look_at_the_audit(bench: Bench) -> None:
    client, prefix = bench.keyspace.client, bench.keyspace.prefix
    entries = [{name.decode(): value.decode() for name, value in fields.items()}
               for _, fields in client.xrange(f"{prefix}stream:audit")]
    inspected(bench, "audit", [AUDIT], entries)


def _logs_show_nothing(bench: Bench) -> None:
    """At the finest level: tasks with a secret in them, requests and entries with line breaks."""
    bench.start_worker()
    with api_of(bench) as api:
        bench.submit({"return": SECRET_PAYLOAD}, label=SECRET_PAYLOAD, through=api)
        for kind in ("permanent", "unknown", "retryable"):
            bench.submit({"fail": kind}, label=SECRET_PAYLOAD, through=api, max_attempts=2)
        bench.submit({"return_unserialisable": True}, label=SECRET_PAYLOAD, through=api)
        bench.submit({"sleep": 5_000}, label=SECRET_PAYLOAD, through=api, timeout_ms=200,
                     max_attempts=1)
        api.post("/tasks", None, want("SEC-06", "half a submission", 400),
                 raw=f'{{"task_type": "{SECRET_PAYLOAD}'.encode())
        for path in (f"/tasks/x%0a{LINE}", f"/nothing%0d%0a{LINE}", f"/tasks?queue=%0a{LINE}"):
            api.get(path)
        api.get("//health", headers={"X-Request-ID": f"x {LINE}"})
        api.demand("cancel", f"/tasks/{NOBODY}/cancel", NOBODY, headers={"X-API-Key": KEY + "x"})
        _forge_an_entry(bench)
        bench.await_all_terminal()
        for text in (SECRET_PAYLOAD,):
            search_logs(bench, "payload", text)
        for text in (KEY, SIGNING_KEY):
            search_logs(bench, "secret", text)
        search_logs(bench, "forged line", LINE)


def _forge_an_entry(bench: Bench) -> None:
    """An entry whose fields begin new lines, as whoever can write to Redis may leave one."""
    if not bench.has_schema:
        return
    client, prefix = bench.keyspace.client, bench.keyspace.prefix
    client.xadd(f"{prefix}stream:default:p5", {
        "task_id": f"x\n{LINE}", "queue": f"default\n{LINE}", "task_type": f"t\n{LINE}",
        "payload": "{}", "attempt": "1", "max_attempts": "1", "priority": "5",
        "timeout_ms": "1000", "idempotency_key": f"\n{LINE}"})


def _code_in_payloads_is_text(bench: Bench) -> None:
    """Payloads and task types that would leave a file behind if anybody ran them."""
    trace = Path(bench.lab.folder, "somebody-ran-it")
    lures = (f"__import__('os').system('touch {trace}')", f"$(touch {trace})", f"`touch {trace}`",
             f"{{{{ cycler.__init__.__globals__.os.system('touch {trace}') }}}}",
             f"!!python/object/apply:os.system ['touch {trace}']")
    bench.start_worker()
    for lure in lures:
        bench.submit({"return": lure}, label=lure)
    for task_type in ("os.system", "os:system", f"__import__('os').system('touch {trace}')"):
        bench.submit({"return": f"touch {trace}"}, task_type=task_type, max_attempts=1)
    bench.await_all_terminal()
    inspected(bench, "harness", ["what payloads would leave behind"], {"exists": trace.exists()},
              want("SEC-01", "a look for what payloads would leave behind", 0,
                   holds={"exists": False}))


def _forged_entries_never_run(bench: Bench) -> None:
    """Clients with another signing key, and with none, beside one with the right key."""
    bench.start_worker()
    bench.submit_many(3)
    for key in ("another-seal", ""):
        with contextlib.closing(bench.open_target(
                bench.lab.broker.url, DTQ_SIGNING_KEY=key)) as intruder:
            for _ in range(2):
                task_id = bench.submit(through=intruder)
                inspected(bench, "harness", [FORGED, task_id], {"signing_key": key})


CASES = (
    Trial("conformance", "only_the_key_opens",
          "Destructive requests without the key, with other keys, and with the key.",
          ("SEC-02", "SEC-04", "SEC-05", "DLV-01"), _only_the_key_opens,
          needs=("security", "http", "redis-schema", "cancel", "pause", "dlq"),
          settings={"DTQ_API_KEY": KEY}),
    Trial("conformance", "logs_show_nothing",
          "Secrets in payloads and keys, line breaks in requests and entries; then logs are read.",
          ("SEC-06", "SEC-07", "DLV-01"), _logs_show_nothing, needs=("security", "http"),
          settings={"DTQ_API_KEY": KEY, "DTQ_SIGNING_KEY": SIGNING_KEY, "DTQ_LOG_LEVEL": "DEBUG"}),
    Trial("conformance", "code_in_payloads_is_text",
          "Payloads and task types that look like code.",
          ("SEC-01", "DLV-01"), _code_in_payloads_is_text, needs=("security",)),
    Trial("conformance", "forged_entries_never_run",
          "Tasks of clients that do not know the signing key.",
          ("SEC-08", "DLV-01"), _forged_entries_never_run, needs=("security", "dlq"),
          settings={"DTQ_SIGNING_KEY": SIGNING_KEY}),
)
