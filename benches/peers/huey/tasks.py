"""huey with SqliteHuey: https://huey.readthedocs.io/ (SqliteHuey; Consumer)"""

import logging
import pathlib
import sys
import time

from huey import SqliteHuey
from huey.storage import SqliteStorage

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from process import Process

process = Process()


class Storage(SqliteStorage):
    """Its option `fsync` sets `synchronous` to FULL or OFF. This sets FULL or NORMAL, as ours is compared with."""

    def _create_connection(self):
        connection = super()._create_connection()
        connection.execute(f"pragma synchronous={'full' if process.durability == 'full' else 'normal'}")
        return connection


# Processes wait for each other in SQLite, for longer than five seconds if they have to.
huey = SqliteHuey("bench", storage_class=Storage, filename=process.url, timeout=600)
# A line for each task that begins and ends is for applications that look at it.
logging.getLogger("huey").setLevel(logging.WARNING)


@huey.task()
def nothing(payload):
    process.ran(payload)


def add(payloads):
    """It has no call that adds several."""
    for payload in payloads:
        nothing(payload)


process.begin_with(add)
while process.runs:
    # What a worker of its consumer does in its loop, with a shorter sleep where there is nothing.
    task = huey.dequeue()
    if task is None:
        time.sleep(0.001)
    else:
        huey.execute(task)
process.wait()
