// BullMQ: https://docs.bullmq.io/guide/workers/concurrency and https://docs.bullmq.io/guide/queues/adding-bulks

import { Queue, Worker } from "bullmq";
import Redis from "ioredis";
import { run } from "../process.mjs";

await run(async ({ url, setting, role }) => {
  const place = new URL(url);
  const connect = (options) => new Redis({ host: place.hostname, port: Number(place.port), ...options });
  const queue = ["add", "steady", "offer"].includes(role) ? new Queue("bench", { connection: connect() }) : undefined;
  await queue?.waitUntilReady();
  return {
    add(payloads) {
      if (payloads.length === 1) return queue.add("nothing", { payload: payloads[0] });
      return queue.addBulk(payloads.map((payload) => ({ name: "nothing", data: { payload } })));
    },
    async work(ran) {
      // https://docs.bullmq.io/guide/going-to-production: "maxRetriesPerRequest: null" for workers.
      const connection = connect({ maxRetriesPerRequest: null });
      const concurrency = Number(setting.split(" ")[1]);
      const worker = new Worker("bench", async (job) => ran(job.data.payload), { connection, concurrency });
      worker.on("error", (error) => console.error(String(error)));
    },
  };
});
