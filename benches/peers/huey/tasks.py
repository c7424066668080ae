"""huey with SqliteHuey: https://huey.readthedocs.io/ (SqliteHuey; Consumer)"""

import logging
import pathlib
import sys
import time

from huey import SqliteHuey

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from process import Process

process = Process()
# It knows two ways: a sync with each commit, and none at all. Processes wait for each other in SQLite, for longer than
# five seconds if they have to.
huey = SqliteHuey("bench", filename=process.url, fsync=process.durability == "full", timeout=600)
# A line for each task that begins and ends is for applications that look at it.
logging.getLogger("huey").setLevel(logging.WARNING)


@huey.task()
def nothing(payload):
    process.ran()


def add(payloads):
    """It has no call that adds several."""
    for payload in payloads:
        nothing(payload)


process.begin()
if process.role == "add":
    process.add_by(add)
while process.role == "work":
    # What a worker of its consumer does in its loop, with a shorter sleep where there is nothing.
    task = huey.dequeue()
    if task is None:
        time.sleep(0.001)
    else:
        huey.execute(task)
process.wait()
