//! Copies of a benchmark that keep a state busy.

use std::{
    env,
    io::{self, BufRead, BufReader, Write},
    process::{Child, ChildStdout, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use interval_queue_contract::QueueName;

use super::{commands::Speaker, places};

/// The first argument of a copy; the address of the state and a name follow.
const COPY: &str = "rival";

/// Processes that give a state one command after the other until this is dropped.
#[derive(Debug)]
pub(crate) struct Rivals(Vec<(Child, BufReader<ChildStdout>)>);

impl Rivals {
    /// Starts some and waits until they are at work.
    pub(crate) fn start(count: usize, address: &str) -> Self {
        let start = |n: usize| {
            let mut child = Command::new(env::current_exe().unwrap())
                .args([COPY, address, &format!("rival {n}")])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let output = BufReader::new(child.stdout.take().unwrap());
            (child, output)
        };
        let mut rivals = Self((0..count).map(start).collect());
        while rivals.commands().contains(&0) {}
        rivals
    }

    /// How many commands each of them has given until now.
    pub(crate) fn commands(&mut self) -> Vec<u64> {
        let mut answer = |(child, output): &mut (Child, BufReader<ChildStdout>)| {
            child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
            let mut line = String::new();
            output.read_line(&mut line).unwrap();
            line.trim().parse().expect("a rival says how many commands it has given")
        };
        self.0.iter_mut().map(&mut answer).collect()
    }
}

impl Drop for Rivals {
    fn drop(&mut self) {
        for (child, _) in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// If this process is a copy: says so by working until its standard input ends, one step after the other that
/// takes a ticket of `queue` and starts with it. Then it never returns.
pub(crate) fn work_if_copy(queue: &QueueName) {
    let arguments: Vec<String> = env::args().collect();
    let [_, mark, address, name] = &arguments[..] else { return };
    if mark != COPY {
        return;
    }
    let given = Arc::new(AtomicU64::new(0));
    let said = given.clone();
    thread::spawn(move || {
        for _ in io::stdin().lines().map_while(Result::ok) {
            println!("{}", said.load(Ordering::Relaxed));
        }
        std::process::exit(0);
    });
    super::runtime().block_on(async {
        let state = places::open(address).await;
        let mut speaker = Speaker::new(name);
        loop {
            state.apply(queue, speaker.step([], 1, 1)).await.unwrap();
            given.fetch_add(1, Ordering::Relaxed);
        }
    });
}
