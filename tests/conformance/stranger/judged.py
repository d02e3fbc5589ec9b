"""tinyqueue as a target of dtq-conformance."""

import sys

import tinyqueue
from dtq_conformance.probe import run_probe
from dtq_conformance.target import Command


@tinyqueue.handler
def probe_task(job_id, arguments):
    return run_probe(arguments, task_id=job_id)


class Tiny:
    name = "tinyqueue"
    claims = frozenset({"delivery"})
    recovery_ms = 5000

    def open(self, site):
        return TinyAtSite(site)


class TinyAtSite:
    def __init__(self, site):
        self.url, self.list = site.broker_url, site.prefix + "jobs"
        self.queue = tinyqueue.TinyQueue(self.url, self.list)

    def worker(self, worker_id, concurrency, *, broker_url=None):
        return Command([sys.executable, "-m", "judged", broker_url or self.url, self.list,
                        str(concurrency)])

    def submit(self, submission):
        self.queue.push(submission.task_type, submission.payload, submission.task_id)

    def close(self):
        self.queue.redis.close()


TINY = Tiny()

if __name__ == "__main__":
    tinyqueue.main()
