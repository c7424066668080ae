//! What a command costs: alone, with many shards in the record, and while four processes share the file.
//!
//! `cargo bench -p interval-queue-json-file -- [alone|crowd]... [DIRECTORY]...`; by default all of it, in the
//! system's directory for temporary files and on `/dev/shm`. Times are microseconds.
#![allow(clippy::disallowed_methods, reason = "it measures")]
#![allow(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::{
    env,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command as Program, Stdio},
    time::{Duration, Instant},
};

use interval_queue_json_file::{Builder, Clock, Fsync, JsonFileState, Replacement};
use support::{Taker, look, open_queue};

/// Tells a copy of this program what it is to do.
const ARGUMENT: &str = "JSON_FILE_BENCH_ARGUMENT";
const PROCESSES: usize = 4;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    if let Ok(argument) = env::var(ARGUMENT) {
        // A task, since that is where commands are given.
        return runtime.block_on(async { tokio::spawn(one_of_the_crowd(argument)).await.unwrap() });
    }
    let arguments: Vec<_> = env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let (wanted, places): (Vec<_>, Vec<_>) =
        arguments.into_iter().partition(|argument| !argument.contains('/'));
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    let mut places: Vec<_> = places.into_iter().map(PathBuf::from).collect();
    if places.is_empty() {
        places = vec![env::temp_dir(), "/dev/shm".into()];
    }
    for place in places {
        if is_wanted("alone") {
            let place = place.clone();
            runtime.block_on(async { tokio::spawn(async move { alone(&place).await }).await.unwrap() });
        }
        if is_wanted("crowd") {
            for replacement in [Replacement::InPlace, Replacement::Rename] {
                crowd(&place, "as fast as they can", Pace::Hammer, replacement);
                crowd(&place, "100 a second each", Pace::Steady, replacement);
            }
        }
    }
}

/// One process after the other: nobody waits for the lock.
async fn alone(place: &Path) {
    let directory = tempfile::tempdir_in(place).unwrap();
    let path = |name: &str| directory.path().join(name);
    println!("\n{}, alone: p50, p99 of a take", place.display());
    for shards in [1, 4, 10, 30, 100, 1_000] {
        let builder = JsonFileState::builder(path(&format!("{shards}.json")));
        measure_takes(&format!("{shards} shards"), builder, shards, 2_000).await;
    }
    let rename = JsonFileState::builder(path("rename.json")).replacement(Replacement::Rename);
    measure_takes("1 shard, by rename", rename, 1, 2_000).await;
    let always = JsonFileState::builder(path("always.json")).fsync(Fsync::Always);
    measure_takes("1 shard, flushed", always, 1, 200).await;
    let stamped = JsonFileState::builder(path("stamped.json")).clock(Clock::FileServer);
    measure_takes("1 shard, server's clock", stamped, 1, 200).await;
    let state = JsonFileState::open(path("4.json")).await.unwrap();
    let mut times = Vec::new();
    for _ in 0..2_000 {
        let began = Instant::now();
        look(&state).await.unwrap();
        times.push(began.elapsed());
    }
    print("a look, 4 shards", times);
}

async fn measure_takes(name: &str, builder: Builder, shards: usize, takes: usize) {
    let state = builder.open().await.unwrap();
    open_queue(&state).await.unwrap();
    // The last of them is the one that is measured.
    for shard in 1..shards {
        Taker::new(&state, &format!("shard {shard}")).take().await.unwrap();
    }
    let mut taker = Taker::new(&state, "one that takes");
    let mut times = Vec::new();
    let began = Instant::now();
    while times.len() < takes && began.elapsed() < Duration::from_secs(5) {
        let began = Instant::now();
        taker.take().await.unwrap();
        times.push(began.elapsed());
    }
    print(name, times);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// The next command as soon as the last one is answered.
    Hammer,
    /// A hundred commands a second.
    Steady,
}

/// Four processes on one file, each alone with its commands: what each gets, and how long it waits.
fn crowd(place: &Path, name: &str, pace: Pace, replacement: Replacement) {
    let directory = tempfile::tempdir_in(place).unwrap();
    let path = directory.path().join("state.json");
    let begin = Instant::now();
    let processes: Vec<_> = (0..PROCESSES)
        .map(|n| {
            Program::new(env::current_exe().unwrap())
                .env(ARGUMENT, format!("{pace:?}:{replacement:?}:{n}:{}", path.display()))
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let mut all = Vec::new();
    let mut shares = Vec::new();
    let (mut worst_p99, mut cpu) = (Duration::ZERO, 0);
    for mut process in processes {
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut times = Vec::new();
        for line in lines.map_while(Result::ok) {
            match line.strip_prefix("cpu ") {
                Some(micros) => cpu += micros.parse::<u64>().unwrap(),
                None => times.push(Duration::from_nanos(line.parse().unwrap())),
            }
        }
        assert!(process.wait().unwrap().success());
        times.sort();
        worst_p99 = worst_p99.max(times[times.len() * 99 / 100]);
        shares.push(times.len());
        all.extend(times);
    }
    assert!(begin.elapsed() < Duration::from_secs(30));
    let count = all.len();
    println!(
        "\n{}, {replacement:?}, {PROCESSES} processes, {name}: {count} commands, shares {:?} %, worst p99 {worst_p99:?}, {:.1} µs of CPU each",
        place.display(),
        shares.iter().map(|share| share * 100 / count).collect::<Vec<_>>(),
        cpu as f64 / count as f64,
    );
    print("all of them", all);
}

async fn one_of_the_crowd(argument: String) {
    let mut parts = argument.splitn(4, ':');
    let pace = if parts.next() == Some("Hammer") { Pace::Hammer } else { Pace::Steady };
    let replacement =
        if parts.next() == Some("InPlace") { Replacement::InPlace } else { Replacement::Rename };
    let shard = format!("shard {}", parts.next().unwrap());
    let builder = JsonFileState::builder(parts.next().unwrap()).replacement(replacement);
    let state = builder.open().await.unwrap();
    open_queue(&state).await.unwrap();
    let mut taker = Taker::new(&state, &shard);
    // Until all are there.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let begin = Instant::now();
    let cpu = cpu_micros();
    let mut times = Vec::with_capacity(1 << 20);
    while begin.elapsed() < Duration::from_millis(2_000) {
        if pace == Pace::Steady {
            let random = begin.elapsed().subsec_nanos() as u64 % 10;
            tokio::time::sleep(Duration::from_millis(4 + random)).await;
        }
        let began = Instant::now();
        taker.take().await.unwrap();
        times.push(began.elapsed());
    }
    println!("cpu {}", cpu_micros() - cpu);
    let lines: String = times.iter().map(|time| format!("{}\n", time.as_nanos())).collect();
    print!("{lines}");
}

/// CPU time of this process so far, as fine as the kernel tells it.
fn cpu_micros() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let nanos = tasks.filter_map(|task| {
        let text = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    nanos.sum::<u64>() / 1_000
}

fn print(name: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |hundredths: usize| {
        times[(times.len() * hundredths / 100).min(times.len() - 1)].as_nanos() as f64 / 1e3
    };
    println!("{name:>24}: p50 {:9.1}  p99 {:9.1}  max {:9.1}", at(50), at(99), at(100));
}
