"""python-task-queue with a FileQueue: https://github.com/seung-lab/python-task-queue"""

import pathlib
import sys
from functools import partial

from taskqueue import TaskQueue, queueable

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from process import Process

process = Process()
queue = TaskQueue(f"fq://{process.url}", progress=False)


@queueable
def nothing(payload):
    process.ran(payload)


process.begin_with(lambda payloads: queue.insert([partial(nothing, payload) for payload in payloads]))
if process.runs:
    queue.poll()
process.wait()
