"""PyrateLimiter with a bucket in SQLite that processes share under a file lock.

https://pyratelimiter.readthedocs.io/ (Backends, SQLiteBucket; asyncio & event loops).
Speaks as `worker.mjs` does; jobs are asyncio tasks.
"""

import argparse
import asyncio
import math
import os
import random
import sys
import time
import traceback

from pyrate_limiter import Limiter, Rate, SQLiteBucket


def order():
    """What the benchmark asks of this worker."""
    parser = argparse.ArgumentParser()
    for name in ["interval-us", "jobs", "worker", "workers", "seed"]:
        parser.add_argument(f"--{name}", type=int, required=True)
    for name in ["store", "out", "offer"]:
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--limiter", type=int)
    return parser.parse_args()


def offers(work):
    """When each job is offered, in nanoseconds from the beginning."""
    each = work.interval_us * 1000
    if work.offer != "sparse":
        return [(k * work.workers + work.worker) * each // 2 for k in range(work.jobs)]
    draw = random.Random(work.seed * 7919 + work.worker)
    at, all_of_them = 0.0, []
    for _ in range(work.jobs):
        at += draw.expovariate(1 / (2 * each * work.workers))
        all_of_them.append(math.floor(at))
    return all_of_them


async def caller(port):
    """What a job calls at its start, over a connection that is kept: the server on this port, if any. Its answers are
    thrown away."""
    if port is None:
        return lambda: None
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    async def throw_away():
        while await reader.read(65536):
            pass

    # Kept by what is returned: the loop itself keeps tasks weakly.
    reading = asyncio.create_task(throw_away())
    return lambda reading=reading: writer.write(b"GET / HTTP/1.1\r\nHost: limiter\r\n\r\n")


async def offer(work, limiter, call, file, began):
    async def job(k, called):
        if not await limiter.try_acquire_async("pace"):
            raise RuntimeError(f"job {k} was refused")
        started = time.monotonic_ns()
        call()
        os.write(file, b"S %d %d - %d\n" % (k, called, started))

    jobs = []
    for k, at in enumerate(offers(work)):
        wait = began + at - time.monotonic_ns()
        # Also when it is behind: the loop must get at the jobs.
        await asyncio.sleep(max(wait, 0) / 1e9)
        jobs.append(asyncio.create_task(job(k, time.monotonic_ns())))
    for result in await asyncio.gather(*jobs, return_exceptions=True):
        if isinstance(result, BaseException):
            traceback.print_exception(result)


async def main():
    work = order()
    file = os.open(work.out, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    bucket = SQLiteBucket.init_from_file(
        [Rate(1, work.interval_us // 1000)],
        db_path=work.store.removeprefix("sqlite:"),
        use_file_lock=True,
    )
    # The buffer is added to every wait, "to account for clock drift"; processes of one host have one clock.
    limiter = Limiter(bucket, buffer_ms=0)
    call = await caller(work.limiter)

    print("ready", flush=True)
    began = int(sys.stdin.readline().removeprefix("go "))
    cpu = time.process_time_ns()
    patience = work.jobs * work.interval_us / 1e6 * work.workers * 4 + 30
    try:
        await asyncio.wait_for(offer(work, limiter, call, file, began), patience)
    except asyncio.TimeoutError:
        pass
    os.write(file, b"C %d\n" % (time.process_time_ns() - cpu))
    print("done", flush=True)
    sys.stdin.read()
    # The limiter's own thread would keep the process.
    os._exit(0)


asyncio.run(main())
