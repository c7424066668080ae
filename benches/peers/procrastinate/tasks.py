"""procrastinate: https://procrastinate.readthedocs.io/en/stable/howto/production/concurrency.html and
https://procrastinate.readthedocs.io/en/stable/howto/advanced/batch.html
"""

import asyncio
import logging
import pathlib
import sys

import procrastinate

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from process import Process

process = Process()
# It would say that an app should be in a module of its own.
logging.getLogger("procrastinate").setLevel(logging.ERROR)
app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=process.url))


@app.task(name="nothing")
async def nothing(payload):
    process.ran(payload)


async def main():
    async with app.open_async():
        if process.role == "prepare":
            await app.schema_manager.apply_schema_async()
        process.begin()
        while process.role == "add" and process.done < process.count:
            await add([process.payload] * process.batch)
            process.tally(process.batch)
        if process.role == "offer":
            for payloads in process.offers():
                await add(payloads)
                process.tally(len(payloads))
        if process.runs:
            concurrency = int(process.setting.split(" ")[1])
            worker = app.run_worker_async(concurrency=concurrency, install_signal_handlers=False)
            await asyncio.gather(worker, top_up())
        process.wait()


async def add(payloads):
    if len(payloads) == 1:
        await nothing.defer_async(payload=payloads[0])
    else:
        await nothing.batch_defer_async(*[{"payload": payload} for payload in payloads])


async def top_up():
    while process.role == "steady":
        if process.is_short():
            process.added += process.batch
            await add([process.payload] * process.batch)
        else:
            await asyncio.sleep(0.002)


asyncio.run(main())
