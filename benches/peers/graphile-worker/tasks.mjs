// graphile-worker: https://worker.graphile.org/docs/library/run and https://worker.graphile.org/docs/performance

import { makeWorkerUtils, run as work, Logger } from "graphile-worker";
import { run } from "../process.mjs";

const quiet = new Logger(() => () => {});
// As "localQueue" in https://worker.graphile.org/docs/performance, with several jobs at once.
const best = {
  concurrentJobs: 24,
  worker: { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 },
};

await run(async ({ url, setting, role }) => {
  const utils = ["work", "timed"].includes(role) ? undefined : await makeWorkerUtils({ connectionString: url, logger: quiet });
  return {
    prepare: () => utils.migrate(),
    add(payloads) {
      if (payloads.length === 1) return utils.addJob("nothing", { payload: payloads[0] });
      return utils.addJobs(payloads.map((payload) => ({ identifier: "nothing", payload: { payload } })));
    },
    async work(ran) {
      const worker = setting === "default" ? {} : best.worker;
      const preset = { worker: { connectionString: url, logger: quiet, ...worker } };
      if (setting !== "default") preset.worker.concurrentJobs = best.concurrentJobs;
      const taskList = { nothing: async ({ payload }) => ran(payload) };
      await work({ preset, taskList, noHandleSignals: true });
    },
  };
});
