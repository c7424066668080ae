// pg-boss: https://timgit.github.io/pg-boss/#/api/workers

import { PgBoss } from "pg-boss";
import { run } from "../process.mjs";

await run(async ({ url, setting, role }) => {
  // One process looks after the tables; the others only add or work.
  const boss = new PgBoss({ connectionString: url, supervise: false, schedule: false, migrate: role === "prepare" });
  boss.on("error", (error) => console.error(String(error?.stack ?? error)));
  await boss.start();
  return {
    prepare: () => boss.createQueue("bench"),
    add(payloads) {
      if (payloads.length === 1) return boss.send("bench", { payload: payloads[0] });
      return boss.insert("bench", payloads.map((payload) => ({ data: { payload } })));
    },
    async work(ran) {
      const best = { batchSize: 500, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true };
      await boss.work("bench", setting === "default" ? {} : best, async (jobs) => ran(...jobs.map(({ data }) => data.payload)));
    },
  };
});
