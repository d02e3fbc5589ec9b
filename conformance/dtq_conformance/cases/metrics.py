"""Cases of metrics: counters of all processes add up, gauges tell what is there, ports are as set.
"""

from __future__ import annotations

import contextlib

import psutil

from dtq_conformance import exposition
from dtq_conformance.bench import Bench, Worker
from dtq_conformance.exchange import Expected
from dtq_conformance.front import api_of, inspected, send, unused_port, want
from dtq_conformance.trial import Trial
from dtq_conformance.waiting import WaitedTooLong, let_pass, wait_for

LATER_MS = 600_000
SOON_MS = 150


def _counters_add_up(bench: Bench) -> None:
    """Tasks succeed, are tried again, give up, run out of time and are cancelled."""
    with api_of(bench) as api:
        bench.submit(label="label-of-a-payload", through=api)
        bench.submit(through=api, delay_ms=1_000)
        bench.submit({"fail": "retryable", "until_attempt": 2}, through=api)
        api.get("//metrics", want("MET-01", "a scrape of the API", 200))
        ports = [unused_port() for _ in range(2)]
        workers = [bench.start_worker(DTQ_WORKER_METRICS_PORT=str(port)) for port in ports]
        bench.submit({"fail": "permanent"}, through=api)
        bench.submit({"sleep": 10_000}, through=api, timeout_ms=300, max_attempts=1)
        bench.submit(through=api, priority=10)
        later = bench.submit(through=api, delay_ms=LATER_MS)
        api.demand("cancel", f"/tasks/{later}/cancel", later)
        bench.submit_many(5, through=api)
        bench.await_all_terminal()
        for worker in workers:
            bench.await_ready(worker)
        with contextlib.suppress(WaitedTooLong):  # then it is judged all the same
            wait_for(lambda: _has_settled(bench, ports), limit_s=bench.timing.recovery_ms / 1000,
                     reason="the workers to have counted what they executed", every_s=0.1)
        for worker, port in zip(workers, ports, strict=True):
            _scrape(bench, worker, port, want("MET-05", "a scrape of a worker with a port", 0,
                                              says=["dtq_tasks_started_total"]))
        api.get("//metrics")
        _listens_nowhere(bench)


def _ends_without_an_attempt_count(bench: Bench) -> None:
    """The time of three tasks is over before anybody could begin them, in their queue and in the
    schedule; another one is executed."""
    port = unused_port()
    with api_of(bench) as api:
        for delay_ms in (0, 0, 2 * SOON_MS):
            bench.submit(through=api, ttl_ms=SOON_MS, delay_ms=delay_ms)
        let_pass(3 * SOON_MS)
        bench.submit(through=api)
        worker = bench.start_worker(DTQ_WORKER_METRICS_PORT=str(port))
        bench.await_all_terminal()
        with contextlib.suppress(WaitedTooLong):  # then it is judged all the same
            wait_for(lambda: _has_settled(bench, [port]), limit_s=bench.timing.recovery_ms / 1000,
                     reason="the worker to have counted what it executed", every_s=0.1)
        _scrape(bench, worker, port)
        api.get("//metrics")


def _has_settled(bench: Bench, ports: list[int]) -> bool:
    """Whether what the workers counted as ended is what the witness file says has ended."""
    scrapes = [exposition.read(send(port, "GET", "/metrics", None, {})[2]) for port in ports]
    return exposition.total(scrapes, "dtq_task_attempts_total") >= len(bench.witnessed("end")) \
        and exposition.total(scrapes, "dtq_worker_inflight") == 0


def _scrape(bench: Bench, worker: Worker, port: int, *expects: Expected) -> None:
    _, _, text, _ = send(port, "GET", "/metrics", None, {})
    inspected(bench, worker.name, ["GET", "/metrics"], text, *expects)


def _listens_nowhere(bench: Bench) -> None:
    """A worker without a port of metrics."""
    worker = bench.start_worker()
    bench.await_ready(worker)
    ports = []
    for pid in worker.process.pids():
        with contextlib.suppress(psutil.Error):
            ports += [connection.laddr.port for connection in psutil.Process(pid).net_connections()
                      if connection.status == psutil.CONN_LISTEN]
    inspected(bench, worker.name, ["ports that it listens on"], {"ports": sorted(ports)}, want(
        "MET-05", "a worker without a port", 0, holds={"ports": []}))


CASES = (
    Trial("conformance", "counters_add_up",
          "Tasks end in every way, and the processes are asked what they counted.",
          ("MET-01", "MET-02", "MET-03", "MET-04", "MET-05", "DLV-01"), _counters_add_up,
          needs=("metrics", "http", "retry", "dlq")),
    Trial("conformance", "ends_without_an_attempt_count",
          "The time of three tasks is over before an attempt could begin; that is counted too.",
          ("MET-02", "MET-03", "MET-04", "TTL-01", "DLV-01"), _ends_without_an_attempt_count,
          needs=("metrics", "http", "ttl")),
)
