"""Calls that many threads make, paced together with every other process on the queue.

`interval-queue turns` runs beside this program for as long as it does, and prints a line at each turn:
no process a call, no library to install.

    INTERVAL_QUEUE_STORE=file:pace.json INTERVAL_QUEUE_NAME=api python3 examples/python/paced_calls.py

Arguments: how many calls to make, 5 unless given. It prints the ticket and the time of each.
"""

import queue
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor


class Pace:
    """Turns of a queue. `turn` may be called from any thread."""

    def __init__(self, *options, program="interval-queue"):
        self._process = subprocess.Popen(
            [program, "turns", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self._asking = threading.Lock()
        self._askers = queue.SimpleQueue()
        threading.Thread(target=self._hand_out, daemon=True).start()

    def turn(self, weight=1):
        """Waits for a turn and returns its ticket."""
        answer = queue.SimpleQueue()
        with self._asking:
            self._askers.put(answer)
            try:
                self._process.stdin.write(f"turn {weight}\n")
            except OSError:
                pass  # It has ended, which its output tells.
        ticket = answer.get()
        if ticket is None:
            raise RuntimeError("interval-queue has ended: its last line on stderr says why")
        return ticket

    def _hand_out(self):
        for line in self._process.stdout:
            self._askers.get().put(int(line.split()[1]))
        while True:
            self._askers.get().put(None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait()


def call(pace, number):
    ticket = pace.turn()
    print(f"ticket {ticket} at {time.time():.6f}: call {number} of Python", flush=True)


if __name__ == "__main__":
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with Pace("--every", "200ms") as pace, ThreadPoolExecutor() as threads:
        list(threads.map(lambda number: call(pace, number), range(calls)))
