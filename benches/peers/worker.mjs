// What the harnesses of node libraries share: how a worker talks to the benchmark, when it offers its jobs, and what it
// writes down.

import { openSync, writeSync } from "node:fs";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";

export const now = () => process.hrtime.bigint();

/** What the benchmark asks of this worker. */
function order() {
  const text = { type: "string" };
  const names = ["store", "interval-us", "jobs", "worker", "workers", "out", "offer", "seed"];
  const options = Object.fromEntries([...names, "limiter"].map((name) => [name, text]));
  const { values } = parseArgs({ options });
  for (const name of names) if (values[name] === undefined) throw new Error(`--${name} is missing`);
  const micros = Number(values["interval-us"]);
  // The libraries measured here take whole milliseconds.
  if (!(micros >= 1000 && micros % 1000 === 0)) throw new Error(`${micros} us are not whole milliseconds`);
  return {
    store: new URL(values.store),
    interval: micros / 1000,
    jobs: Number(values.jobs),
    worker: Number(values.worker),
    workers: Number(values.workers),
    out: values.out,
    sparse: values.offer === "sparse",
    seed: Number(values.seed),
    limiter: values.limiter && Number(values.limiter),
  };
}

/** What a job calls at its start, over a connection that is kept: the server on this port, if any. Its answers are thrown away. */
async function caller(port) {
  if (!port) return () => {};
  const socket = connect({ port, host: "127.0.0.1", noDelay: true });
  await new Promise((resolve, reject) => socket.once("connect", resolve).once("error", reject));
  socket.on("error", tell).resume();
  return () => socket.write("GET / HTTP/1.1\r\nHost: limiter\r\n\r\n");
}

/** Random numbers from 0 to below 1 that a seed decides (mulberry32). */
function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** When each job of `worker` is offered, in nanoseconds from the beginning. */
function offers({ interval, jobs, workers, sparse, seed }, worker) {
  const each = interval * 1e6;
  if (!sparse) return Array.from({ length: jobs }, (_, k) => Math.round(((k * workers + worker) * each) / 2));
  const draw = random(seed * 7919 + worker);
  let at = 0;
  return Array.from({ length: jobs }, () => Math.round((at += -Math.log(1 - draw()) * 2 * each * workers)));
}

/** When the last job of any worker is offered. */
export function lastOffer(order) {
  return Math.max(...Array.from({ length: order.workers }, (_, worker) => offers(order, worker).at(-1) ?? 0));
}

/**
 * Runs one worker. `open(order, started, accepted)` opens the library's queue and warms it. It returns `add(k, called)`,
 * which adds a job without waiting for earlier ones. The first thing a job does is `started(k, called, accepted)`.
 *
 * Where jobs may start in other processes, `started` is also told the file of the worker that added the job, that worker calls
 * `accepted(k)`, and `over(began)` resolves when all jobs have started.
 */
export async function run(open) {
  const work = order();
  const file = openSync(work.out, "a");
  const files = new Map([[work.out, file]]);
  let kept = "";
  let left = work.jobs;
  let allStarted;
  const all = new Promise((resolve) => (allStarted = resolve));
  const call = await caller(work.limiter);
  const started = (k, called, accepted = "-", out = work.out) => {
    const at = now();
    call();
    if (!files.has(out)) files.set(out, openSync(out, "a"));
    writeSync(files.get(out), `S ${k} ${called} ${accepted} ${at}\n`);
    if (--left === 0) allStarted();
  };
  // Of a job that starts elsewhere: told at the end, so that it costs no write of its own.
  const accepted = (k) => (kept += `A ${k} ${now()}\n`);
  const queue = await open(work, started, accepted);

  const lines = createInterface({ input: process.stdin });
  const closed = new Promise((resolve) => lines.once("close", resolve));
  const go = new Promise((resolve) => lines.once("line", resolve));
  console.log("ready");
  const line = await go;
  const began = BigInt(line.slice("go ".length));
  const cpu = process.cpuUsage();

  const due = offers(work, work.worker).map((at) => began + BigInt(at));
  let k = 0;
  const offer = () => {
    for (; k < due.length; k++) {
      const wait = due[k] - now();
      if (wait > 0n) return void setTimeout(offer, Math.ceil(Number(wait) / 1e6));
      queue.add(k, now());
    }
  };
  offer();

  const patience = work.jobs * work.interval * work.workers * 4 + 30_000;
  let timer;
  const enough = new Promise((resolve) => (timer = setTimeout(resolve, patience)));
  await Promise.race([queue.over ? queue.over(began) : all, enough]);
  clearTimeout(timer);
  const { user, system } = process.cpuUsage(cpu);
  writeSync(file, `${kept}C ${(user + system) * 1000}\n`);
  console.log("done");
  await closed;
  process.exit(0);
}

/** For promises that nobody waits for: what goes wrong is told, and the jobs that did not start are counted by the benchmark. */
export const tell = (error) => console.error(String(error?.stack ?? error));
