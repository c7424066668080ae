//! Many simulations at once, until one breaks a promise.

use std::{
    io::{self, IsTerminal, Write},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use indicatif::{ProgressBar, ProgressStyle};
use interval_queue_sim::{Entry, Violation};

use crate::{
    args::{ReplayOptions, RunOptions, World},
    clock::{fresh_seed, now},
    report::{self, Summary},
    subject::Transcript,
};

/// True if no promise was broken.
pub(crate) fn run(options: &RunOptions) -> bool {
    let fresh = fresh_seed();
    let seeds = options.seeds.clone().unwrap_or(fresh..fresh + 1_000);
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    let threads = options.threads.unwrap_or(cores).min(seeds.end - seeds.start);
    let subject = options.world.subject();

    let began = now();
    let next = AtomicU64::new(seeds.start);
    let total = Mutex::new(Summary::default());
    let bar = progress(seeds.end - seeds.start, options.json);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end || locked(&total).found.is_some() {
                        break;
                    }
                    let result = subject.simulate(seed);
                    bar.inc(1);
                    locked(&total).add(seed, result);
                }
            });
        }
    });
    bar.finish_and_clear();
    let total = total.into_inner().unwrap_or_else(PoisonError::into_inner);
    let words = options.world.words();
    if options.json {
        println!("{}", report::json(&total, &seeds, &words, began.elapsed()));
    } else {
        report::summary(&total, &seeds, &words, began.elapsed());
    }
    if let Some((seed, violation)) = &total.found {
        explain(*seed, violation, &options.world);
    }
    total.found.is_none()
}

pub(crate) fn replay(options: &ReplayOptions) -> bool {
    let transcript = options.world.subject().replay(options.seed);
    // The reader may have closed the pipe.
    let _ = print(&transcript);
    transcript.violation.is_none()
}

fn print(transcript: &Transcript) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    writeln!(out, "{}", transcript.plan)?;
    for entry in &transcript.journal {
        writeln!(out, "{entry}")?;
    }
    match &transcript.violation {
        Some(violation) => writeln!(out, "\n{violation}")?,
        None => writeln!(out, "\nno violation: {}", transcript.result)?,
    }
    out.flush()
}

/// Prints the shortest plan that breaks the promise, and the journal around it.
fn explain(seed: u64, violation: &Violation, world: &World) {
    eprintln!("seed {seed} breaks {violation}\n");
    eprintln!("The shortest plan found that breaks the same promise:\n");
    let transcript = world.subject().shortest(seed, violation.promise);
    eprintln!("{}\nWhat happened, the last {} things:\n", transcript.plan, report::MAX_SHOWN_ENTRIES);
    let first = transcript.journal.len().saturating_sub(report::MAX_SHOWN_ENTRIES);
    transcript.journal[first..].iter().for_each(|entry: &Entry| eprintln!("{entry}"));
    eprintln!("\nAll of it: interval-queue-sim replay {seed} {}", world.words());
}

fn progress(seeds: u64, hidden: bool) -> ProgressBar {
    if hidden || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style =
        ProgressStyle::with_template("{bar:30} {human_pos} of {human_len} seeds, {per_sec}, {eta} to go");
    ProgressBar::new(seeds).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
