// What the harnesses of node libraries share that store tasks: how a process adds or runs them and reports how many, as
// `../tasks/task_crew.rs` describes.

import { randomBytes } from "node:crypto";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

// Tasks that become due within this time are added together, as by `../tasks/roles.rs`.
const TICK = 2_000_000n;
// How many tasks a process is ahead at most that adds what it runs.
const AHEAD = 500;

const now = () => process.hrtime.bigint();

/**
 * Runs one process. `open({ url, setting, role })` connects, and returns `add(payloads)`, which adds them at once, `work(ran)`,
 * which runs tasks, each of which calls `ran(payload)`, and `prepare()` if something must be made first.
 */
export async function run(open) {
  const [url, role, setting, , ...numbers] = process.argv.slice(2);
  const [count, batch, size] = numbers.map(Number);
  const library = await open({ url, setting, role });
  if (role === "prepare") await library.prepare();
  let [done, first, last] = [0, 0n, 0n];
  const late = [];
  const tally = (number) => {
    last = now();
    if (!first) first = last;
    done += number;
  };
  const ran = (...payloads) => {
    tally(payloads.length);
    if (role === "timed") late.push(...payloads.map((due) => (last - BigInt(due)) / 1000n));
  };
  const report = () => console.log(`${done} ${first} ${last} 0`);

  const lines = createInterface({ input: process.stdin });
  lines.once("close", () => {
    report();
    if (role === "timed") console.log(`late ${late.join(" ")}`);
    process.exit(0);
  });
  const go = new Promise((resolve) => lines.once("line", resolve));
  console.log("ready");
  await go;
  setInterval(report, 20);
  if (["work", "steady", "timed"].includes(role)) await library.work(ran);
  const payloads = Array(batch).fill(randomBytes(size).toString("base64").slice(2, size));
  if (role === "add") {
    for (let added = 0; added < count; added += batch) {
      await library.add(payloads);
      tally(batch);
    }
  } else if (role === "steady") {
    for (let added = 0; ; ) {
      if (added < done + AHEAD) {
        await library.add(payloads);
        added += batch;
      } else await sleep(2);
    }
  } else if (role === "offer") await offer(count, library.add, tally);
}

/** Offers tasks at random instants, `rate` a second (a Poisson process). The payload is the instant at which a task is due. */
async function offer(rate, add, tally) {
  const still = new Int32Array(new SharedArrayBuffer(4));
  for (let due = now(); ; ) {
    const [instant, payloads] = [now(), []];
    for (; due <= instant; due += BigInt(Math.floor((-Math.log(1 - Math.random()) / rate) * 1e9))) payloads.push(`${due}`);
    if (payloads.length) await add(payloads);
    tally(payloads.length);
    const next = due > instant + TICK ? due : instant + TICK;
    // Timers of node have milliseconds; this process has nothing else to do.
    const left = Number(next - now());
    if (left > 0) Atomics.wait(still, 0, 0, left / 1e6);
  }
}
