// Bottleneck, clustered: https://github.com/SGrondin/bottleneck#clustering

import Bottleneck from "bottleneck";
import Redis from "ioredis";
import { now, run, tell } from "../worker.mjs";

await run(async ({ store, interval }, started) => {
  const limiter = new Bottleneck({
    // "How long to wait after launching a job before launching another one"; the way to an even pace.
    minTime: interval,
    // "It is strongly recommended that you give an id to every limiter."
    id: "pace",
    datastore: "ioredis",
    clientOptions: { host: store.hostname, port: Number(store.port) },
    Redis,
  });
  limiter.on("error", tell);
  const accepted = new Map();
  limiter.on("queued", ({ options }) => accepted.set(options.id, now()));
  await limiter.ready();
  return {
    add(k, called) {
      const id = String(k);
      const job = async () => {
        started(k, called, accepted.get(id));
        accepted.delete(id);
      };
      // "It is strongly recommended that you set an expiration on every job, since that lets the cluster recover from
      // crashed or disconnected clients."
      limiter.schedule({ id, expiration: 5000 }, job).catch(tell);
    },
  };
});
