"""A small job queue on Redis lists: LPUSH, BRPOP, done."""

import json
import signal
import sys
import threading
import uuid

import redis

HANDLERS = {}


def handler(function):
    """Register a function as the handler of jobs that bear its name."""
    HANDLERS[function.__name__] = function
    return function


class TinyQueue:
    """Jobs wait in one list; whoever pops a job runs it."""

    def __init__(self, url, name="tiny:jobs"):
        self.redis = redis.Redis.from_url(url)
        self.name = name

    def push(self, kind, arguments, job_id=None):
        job_id = job_id or uuid.uuid4().hex
        job = {"id": job_id, "kind": kind, "arguments": arguments}
        self.redis.lpush(self.name, json.dumps(job))
        return job_id

    def pop(self):
        found = self.redis.brpop(self.name, timeout=1)
        return json.loads(found[1]) if found else None


def work(queue, stopping):
    while not stopping.is_set():
        job = queue.pop()
        if job is None:
            continue
        try:
            HANDLERS[job["kind"]](job["id"], job["arguments"])
        except Exception as error:
            print(f"job {job['id']} failed: {error}", file=sys.stderr)


def main():
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    url, name, threads = sys.argv[1:]
    pool = [threading.Thread(target=work, args=(TinyQueue(url, name), stopping))
            for _ in range(int(threads))]
    for thread in pool:
        thread.start()
    for thread in pool:
        thread.join()
