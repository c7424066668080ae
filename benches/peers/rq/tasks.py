"""rq: https://python-rq.org/docs/workers/ and https://python-rq.org/docs/#bulk-job-enqueueing"""

import logging
import pathlib
import sys

import rq
from redis import Redis

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from process import Process

process = Process()
redis = Redis.from_url(process.url)
queue = rq.Queue("bench", connection=redis)
# A job is a function that the worker can import.
NOTHING = "builtins.len"


class Worker(getattr(rq, process.setting if process.runs else "Worker")):
    """Counts here what runs in a process of its own with the worker that is the default."""

    def execute_job(self, job, queue):
        process.ran(*job.args)
        return super().execute_job(job, queue)


def add(payloads):
    if len(payloads) == 1:
        queue.enqueue(NOTHING, payloads[0])
    else:
        queue.enqueue_many([rq.Queue.prepare_data(NOTHING, (payload,)) for payload in payloads])


process.begin_with(add)
if process.runs:
    # Two lines for each job are for those who look at them.
    Worker([queue], connection=redis).work(logging_level=logging.WARNING)
process.wait()
