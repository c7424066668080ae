// BullMQ: every process adds jobs and runs one worker of the set; the limiter is shared by the set.
// https://docs.bullmq.io/guide/rate-limiting

import { Queue, Worker } from "bullmq";
import Redis from "ioredis";
import { setTimeout as sleep } from "node:timers/promises";
import { lastOffer, now, run, tell } from "../worker.mjs";

await run(async (order, started, accepted) => {
  const connect = (options) => new Redis({ host: order.store.hostname, port: Number(order.store.port), ...options });
  const queue = new Queue("pace", {
    connection: connect(),
    // https://docs.bullmq.io/guide/queues/auto-removal-of-jobs
    defaultJobOptions: { removeOnComplete: true },
  });
  const worker = new Worker("pace", async ({ data }) => started(data.k, data.called, "-", data.out), {
    // https://docs.bullmq.io/guide/going-to-production: "maxRetriesPerRequest: null" for workers.
    connection: connect({ maxRetriesPerRequest: null }),
    limiter: { max: 1, duration: order.interval },
    // The default concurrency, 1: jobs that end at once never wait for each other, and 10 or 50 paced them less evenly.
  });
  queue.on("error", tell);
  worker.on("error", tell);
  await Promise.all([queue.waitUntilReady(), worker.waitUntilReady()]);

  let offered = 0;
  return {
    add(k, called) {
      offered++;
      const added = queue.add("job", { k, called: String(called), out: order.out });
      added.then(() => accepted(k), tell).finally(() => offered--);
    },
    async over(began) {
      const end = began + BigInt(lastOffer(order));
      for (;;) {
        const ahead = Number(end - now()) / 1e6;
        if (ahead > 0) await sleep(ahead);
        const waiting = await queue.getJobCountByTypes("waiting", "prioritized", "delayed", "paused");
        await sleep(Math.max(waiting * order.interval, 50));
        if (offered === 0 && waiting === 0) return;
      }
    },
  };
});
