// sharded-interval-queue on Redis: https://github.com/hrishioa/sharded-interval-queue#redis

import ShardedIntervalQueue from "sharded-interval-queue";
import redis from "redis";
import { run, tell } from "../worker.mjs";

await run(async ({ store, interval }, started) => {
  const client = redis.createClient({ host: store.hostname, port: Number(store.port) });
  client.on("error", tell);
  const queue = new ShardedIntervalQueue("pace");
  queue.setStorageRedis(client);
  await queue.init(interval);
  return {
    add: (k, called) => void queue.add(async () => started(k, called)).catch(tell),
  };
});
