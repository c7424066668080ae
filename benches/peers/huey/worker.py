"""huey with SqliteHuey: a process that adds some tasks and runs as many, again and again.

https://huey.readthedocs.io/ (SqliteHuey; Consumer). Its arguments are the database, how often SQLite syncs (`relaxed` or
`full`), how many are added before as many are run, and how many there are in all. It begins at a line on its standard
input, and prints what it has used of the processor, in seconds.
"""

import logging
import sys
import time

from huey import SqliteHuey

file, durability, added, tasks = sys.argv[1:]
added, tasks = int(added), int(tasks)
# It knows two ways: a sync with each commit, and none at all. Processes wait for each other in SQLite, for longer than
# five seconds if they have to.
huey = SqliteHuey("bench", filename=file, fsync=durability == "full", timeout=600)
# A line for each task that begins and ends is for applications that look at it.
logging.getLogger("huey").setLevel(logging.WARNING)


@huey.task()
def nothing(payload):
    pass


def run_one():
    """What a worker of its consumer does in its loop. Here it does not go to sleep between."""
    task = huey.dequeue()
    if task is not None:
        huey.execute(task)
    return task is not None


payload = "x" * 98
print("ready", flush=True)
sys.stdin.readline()
before = time.process_time()
for _ in range(tasks // added):
    # It has no call that adds several.
    for _ in range(added):
        nothing(payload)
    for _ in range(added):
        run_one()
while run_one():
    pass
print(time.process_time() - before, flush=True)
