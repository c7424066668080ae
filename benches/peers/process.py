"""What the harnesses of Python libraries share that store tasks: how a process adds or runs them and tells how many, as
`../tasks/crew.rs` says.
"""

import base64
import os
import sys
import threading
import time


class Process:
    """Its orders, and what it has done."""

    def __init__(self):
        self.url, self.role, self.setting, self.durability, *numbers = sys.argv[1:]
        self.count, self.batch, self.size = map(int, numbers)
        # It cannot be compressed to far fewer bytes.
        self.payload = base64.b64encode(os.urandom(self.size)).decode()[: max(self.size - 2, 0)]
        self.done = self.first = self.last = 0

    def ran(self, count=1):
        self.last = time.monotonic_ns()
        self.first = self.first or self.last
        self.done += count

    def begin(self):
        """Says that it is ready, and waits until it is to begin."""
        print("ready", flush=True)
        sys.stdin.readline()
        threading.Thread(target=self._listen, daemon=True).start()
        threading.Thread(target=self._repeat, daemon=True).start()

    def add_by(self, add):
        """Adds so many in all by a function that adds several at once."""
        while self.done < self.count:
            add([self.payload] * self.batch)
            self.ran(self.batch)

    def wait(self):
        """Until it is told to end."""
        threading.Event().wait()

    def _tell(self):
        # In one piece: two threads tell.
        os.write(1, f"{self.done} {self.first} {self.last} 0\n".encode())

    def _repeat(self):
        while True:
            time.sleep(0.02)
            self._tell()

    def _listen(self):
        sys.stdin.read()
        self._tell()
        os._exit(0)
