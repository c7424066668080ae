// What the harnesses of node libraries share that store tasks: how a process adds or runs them and tells how many, as
// `../tasks/crew.rs` says.

import { randomBytes } from "node:crypto";
import { createInterface } from "node:readline";

const now = () => process.hrtime.bigint();

/**
 * Runs one process. `open({ url, setting })` connects, and gives `add(payloads)`, which adds them at once, `work(ran)`, which
 * runs tasks, each of which calls `ran()`, and `prepare()` if something has to be made first.
 */
export async function run(open) {
  const [url, role, setting, , count, batch, size] = process.argv.slice(2);
  const library = await open({ url, setting, role });
  if (role === "prepare") await library.prepare();
  let [done, first, last] = [0, 0n, 0n];
  const ran = (number = 1) => {
    last = now();
    if (!first) first = last;
    done += number;
  };
  const tell = () => console.log(`${done} ${first} ${last} 0`);

  const lines = createInterface({ input: process.stdin });
  lines.once("close", () => {
    tell();
    process.exit(0);
  });
  const go = new Promise((resolve) => lines.once("line", resolve));
  console.log("ready");
  await go;
  setInterval(tell, 20);
  if (role === "work") await library.work(ran);
  if (role !== "add") return;
  const payloads = Array(Number(batch)).fill(randomBytes(Number(size)).toString("base64").slice(2, size));
  for (let added = 0; added < Number(count); added += payloads.length) {
    await library.add(payloads);
    ran(payloads.length);
  }
}
