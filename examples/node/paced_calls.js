// Calls that are made at once, paced together with every other process on the queue.
//
// `interval-queue turns` runs beside this program for as long as it does, and prints a line at each turn:
// no process a call, no package to install.
//
//     INTERVAL_QUEUE_STORE=file:pace.json INTERVAL_QUEUE_NAME=api node examples/node/paced_calls.js
//
// Arguments: how many calls to make, 5 unless given. It prints the ticket and the time of each.

const { spawn } = require("node:child_process");
const { createInterface } = require("node:readline");

/** Turns of a queue. */
class Pace {
  constructor(...options) {
    this.askers = [];
    this.process = spawn("interval-queue", ["turns", ...options], { stdio: ["pipe", "pipe", "inherit"] });
    this.ended = new Promise((resolve) => {
      const end = (why) => {
        this.failure = new Error(`interval-queue has ended: ${why}`);
        this.askers.splice(0).forEach(({ reject }) => reject(this.failure));
        resolve();
      };
      this.process.on("error", (error) => end(error.message));
      this.process.on("close", () => end("its last line on stderr says why"));
    });
    this.process.stdin.on("error", () => {}); // It has ended, which "close" tells.
    createInterface({ input: this.process.stdout }).on("line", (line) => {
      this.askers.shift().resolve(Number(line.split(" ")[1]));
    });
  }

  /** Waits for a turn. Gives its ticket. */
  turn(weight = 1) {
    if (this.failure) return Promise.reject(this.failure);
    return new Promise((resolve, reject) => {
      this.askers.push({ resolve, reject });
      this.process.stdin.write(`turn ${weight}\n`);
    });
  }

  close() {
    this.process.stdin.end();
    return this.ended;
  }
}

async function call(pace, number) {
  const ticket = await pace.turn();
  console.log(`ticket ${ticket} at ${(Date.now() / 1000).toFixed(6)}: call ${number} of Node.js`);
}

async function main() {
  const calls = Number(process.argv[2] ?? 5);
  const pace = new Pace("--every", "200ms");
  await Promise.all(Array.from({ length: calls }, (_, number) => call(pace, number)));
  await pace.close();
}

main().catch((error) => {
  console.error(error.message);
  process.exitCode = 1;
});
