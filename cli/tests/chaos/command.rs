//! What `interval-queue work` runs for each task in a scene: a run that logs what it does, as a handler does.
//! Its guard may end it with SIGKILL, so it also logs that it lives.

use std::{
    env, io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use serde_json::Value;
use signal_hook::{consts::SIGTERM, flag};

use crate::{
    log::{Logged, Pen},
    process::{micros, ms, now},
};

pub(crate) fn run(pen: &Pen) {
    let is_told_to_end = Arc::new(AtomicBool::new(false));
    flag::register(SIGTERM, is_told_to_end.clone()).unwrap();
    let of_task = |name: &str| env::var(format!("INTERVAL_QUEUE_TASK_{name}")).unwrap();
    let run = Logged::begin(pen, of_task("ID"), of_task("TOKEN"));
    let payload: Value = serde_json::from_reader(io::stdin()).unwrap();
    let until = now() + micros(ms(payload["ms"].as_u64().unwrap()));
    let mut beat = 0;
    while now() < until {
        if is_told_to_end.load(Ordering::Relaxed) {
            run.hears();
            run.end("released");
            std::process::exit(75);
        }
        if now() > beat {
            run.lives();
            beat = now() + micros(ms(20));
        }
        thread::sleep(ms(2));
    }
    if of_task("ATTEMPT").parse::<u64>().unwrap() <= payload["fails"].as_u64().unwrap() {
        run.end("failed");
        std::process::exit(1);
    }
    run.end("done");
    std::process::exit(0);
}
