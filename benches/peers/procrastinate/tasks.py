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
    process.ran()


async def main():
    async with app.open_async():
        if process.role == "prepare":
            await app.schema_manager.apply_schema_async()
        process.begin()
        while process.role == "add" and process.done < process.count:
            if process.batch == 1:
                await nothing.defer_async(payload=process.payload)
            else:
                await nothing.batch_defer_async(*[{"payload": process.payload}] * process.batch)
            process.ran(process.batch)
        if process.role == "work":
            concurrency = int(process.setting.split(" ")[1])
            await app.run_worker_async(concurrency=concurrency, install_signal_handlers=False)
        process.wait()


asyncio.run(main())
