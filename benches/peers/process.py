"""What the harnesses of Python libraries share that store tasks: how a process adds or runs them and reports how many, as
`../tasks/task_crew.rs` describes.
"""

import base64
import os
import random
import sys
import threading
import time

# Tasks that become due within this time, in nanoseconds, are added together, as by `../tasks/roles.rs`.
TICK = 2_000_000
# How many tasks a process is ahead at most that adds what it runs.
AHEAD = 500


class Process:
    """Its orders, and what it has done."""

    def __init__(self):
        self.url, self.role, self.setting, self.durability, *numbers = sys.argv[1:]
        self.count, self.batch, self.size = map(int, numbers)
        # It cannot be compressed to far fewer bytes.
        self.payload = base64.b64encode(os.urandom(self.size)).decode()[: max(self.size - 2, 0)]
        self.done = self.added = self.first = self.last = 0
        self.late = []
        self.lock = threading.Lock()
        self.add = None

    @property
    def runs(self):
        """Whether it runs tasks."""
        return self.role in ("work", "steady", "timed")

    def tally(self, count):
        self.last = time.monotonic_ns()
        self.first = self.first or self.last
        self.done += count

    def ran(self, *payloads):
        """Called for tasks when they run. With an `add` it tops up what it runs."""
        self.tally(len(payloads))
        if self.role == "timed":
            self.late += [(self.last - int(due)) // 1000 for due in payloads]
        if self.add and self.is_short():
            self.top_up()

    def is_short(self):
        return self.role == "steady" and self.added < self.done + AHEAD

    def top_up(self):
        while self.is_short():
            self.added += self.batch
            self.add([self.payload] * self.batch)

    def begin(self):
        """Reports that it is ready, and waits until it is to begin."""
        print("ready", flush=True)
        sys.stdin.readline()
        threading.Thread(target=self._listen, daemon=True).start()
        threading.Thread(target=self._repeat, daemon=True).start()

    def begin_with(self, add):
        """Begins, and does all that is done by a function that adds several at once."""
        self.begin()
        if self.role == "add":
            while self.done < self.count:
                add([self.payload] * self.batch)
                self.tally(self.batch)
        elif self.role == "offer":
            for payloads in self.offers():
                add(payloads)
                self.tally(len(payloads))
        elif self.role == "steady":
            self.add = add
            self.top_up()

    def offers(self):
        """Waits, and yields the tasks that are due, as random instants of `count` a second (a Poisson process). The payload is the
        instant at which a task is due."""
        due = time.monotonic_ns()
        while True:
            now, payloads = time.monotonic_ns(), []
            while due <= now:
                payloads.append(str(due))
                due += int(random.expovariate(self.count) * 1e9)
            if payloads:
                yield payloads
            time.sleep(max(0, max(due, now + TICK) - time.monotonic_ns()) / 1e9)

    def wait(self):
        """Until it is to end."""
        threading.Event().wait()

    def _report(self):
        with self.lock:
            print(self.done, self.first, self.last, 0, flush=True)

    def _repeat(self):
        while True:
            time.sleep(0.02)
            self._report()

    def _listen(self):
        sys.stdin.read()
        self._report()
        with self.lock:
            print("late", *self.late, flush=True)
            os._exit(0)
