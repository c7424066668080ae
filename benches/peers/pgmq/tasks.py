"""pgmq, installed as plain SQL: https://pgmq.github.io/pgmq-py/getting_started/ and https://pgmq.github.io/pgmq/"""

import logging
import pathlib
import sys
import time

from pgmq import PGMQueue, install_pgmq_from_sql

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from process import Process

process = Process()
# A line for each statement is for applications that read it.
logging.disable(logging.INFO)
if process.role == "prepare":
    install_pgmq_from_sql(dsn=process.url)
queue = PGMQueue(conn_string=process.url, init_extension=False, pool_size=1)
if process.role == "prepare":
    queue.create_queue("bench")


def add(payloads):
    messages = [{"payload": payload} for payload in payloads]
    if len(messages) == 1:
        queue.send("bench", messages[0])
    else:
        queue.send_batch("bench", messages)


process.begin_with(add)
# It archives as the documentation's first example does; in batches it deletes, which is cheaper.
batch = 100 if process.setting == "batches" else 1
while process.runs:
    messages = queue.read_batch("bench", vt=30, batch_size=batch)
    if not messages:
        time.sleep(0.001)
        continue
    process.ran(*[message.message["payload"] for message in messages])
    if batch == 1:
        queue.archive("bench", messages[0].msg_id)
    else:
        queue.delete_batch("bench", [message.msg_id for message in messages])
process.wait()
