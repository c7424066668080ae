//! A process that is killed between two statements of a group of commands: all of them are stored, or none is.

use std::{
    io::Write,
    sync::{Arc, mpsc},
};

use interval_queue_contract::{Micros, QueueName};
use interval_queue_task_conformance::interleaved::{
    INTERLEAVINGS, Member, Prepared, Session, SessionState, Sessions,
};
use interval_queue_test_support::{Process, files::block_on};

use super::{
    client::Client,
    clients::{Clients, Clock, Setting, opened},
    hold::Hold,
};

async fn group() -> Prepared {
    let meeting = INTERLEAVINGS.iter().find(|meeting| meeting.name == "a_group_and_a_step").unwrap();
    Prepared::of(meeting).await
}

fn say(what: &str) {
    // In one write: a killed process leaves no half of a line.
    std::io::stdout().write_all(format!("\nsays {what}\n").as_bytes()).unwrap();
}

/// Sends the group, runs so many statements of it, says whether that was all, and waits to be killed.
fn run_some() {
    let mut orders = std::io::stdin().lines().map_while(Result::ok);
    let mut order = || orders.next().unwrap();
    let (path, queue, statements) =
        (order(), QueueName::new(order()).unwrap(), order().parse::<usize>().unwrap());
    block_on(async {
        let prepared = group().await;
        let (clock, hold) = (Clock::default(), Arc::new(Hold::default()));
        let now = Micros::get(prepared.now());
        clock.store(now, std::sync::atomic::Ordering::Relaxed);
        let store =
            Arc::new(opened(path.as_ref(), &clock, Some(&hold), std::time::Duration::from_secs(60)).await);
        let Member::Commands(commands) = &prepared.members()[0] else { panic!("it is a group") };
        let mut held = Client { store, hold }.begin(false, &queue, commands).await;
        let mut stands = SessionState::Held;
        for _ in 0..=statements {
            stands = held.go_on().await;
        }
        say(if stands == SessionState::Over { "over" } else { "held" });
        // Nobody says more. What is held is held until this process is killed.
        orders.for_each(drop);
    });
}

#[test]
fn a_killed_batch_is_stored_as_a_whole_or_not_at_all() {
    const NAME: &str = "tasks::interleaved::killed::a_killed_batch_is_stored_as_a_whole_or_not_at_all";
    if Process::is_copy() {
        return run_some();
    }
    block_on(async {
        let clients = Clients::new(Setting::default()).await;
        let mut prepared = group().await;
        for statements in 0.. {
            let queue = prepared.queue(&clients).await;
            let (sender, says) = mpsc::channel();
            let mut copy = Process::start(NAME, move |line| {
                line.strip_prefix("says ").into_iter().for_each(|word| _ = sender.send(word.to_owned()));
            });
            copy.tell(&format!("{}\n{queue}\n{statements}", clients.path().display()));
            let is_over = says.recv().unwrap() == "over";
            copy.kill();
            let done: &[_] = if is_over { &[(0, None)] } else { &[] };
            let found = prepared.check(clients.store(), &queue, done).await;
            assert!(found.is_ok(), "killed after {statements} statements: {found:?}");
            if is_over {
                assert!(statements > 50, "{statements}");
                return;
            }
        }
    });
}
