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
    process.ran()


process.begin()
if process.role == "add":
    process.add_by(lambda payloads: queue.insert([partial(nothing, payload) for payload in payloads]))
else:
    queue.poll()
process.wait()
