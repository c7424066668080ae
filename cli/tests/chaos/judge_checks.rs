//! The judge, checked: it finds each promise broken in a log that was made up, and nothing in one that is right.

use std::{collections::BTreeMap, fs, sync::LazyLock};

use interval_queue::contract::Micros;
use interval_queue_tasks::{State, Stored, Task, TaskId, TaskQueue, Token};

use crate::{
    chaos_facts::{Case, Event, Facts, What},
    log::Log,
};

const A: &str = "01957b6e-5e1a-7c3e-9a53-00000000000a";
const B: &str = "01957b6e-5e1a-7c3e-9a53-00000000000b";

/// A task that was added to the memory, to be made another one.
static ONE: LazyLock<Stored> = LazyLock::new(|| {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let queue = TaskQueue::builder("one").connect("memory:").await.unwrap();
        let id = queue.add(Task::new("default", &0)).await.unwrap().id();
        queue.task(id).await.unwrap().unwrap()
    })
});

fn stored(id: &str, state: State, attempt: u32) -> (TaskId, Stored) {
    let mut stored = ONE.clone();
    stored.task.id = id.parse().unwrap();
    (stored.task.state, stored.task.token) = (state, Token { incarnation: Micros::new(5), attempt });
    (stored.task.id, stored)
}

/// What the judge says of this log, in which `A` and `B` are tasks, and of what is stored in the end.
fn judged_in(case: Case, log: &str, left: impl IntoIterator<Item = (TaskId, Stored)>) -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    fs::write(&path, log.replace('A', A).replace('B', B).replace("    ", "")).unwrap();
    let mut log = Log::at(path);
    log.refresh();
    let facts = Facts::new(case, log.lines, left.into_iter().collect::<BTreeMap<_, _>>());
    facts.broken(&|_, _| 0).join("\n")
}

fn judged(log: &str, left: impl IntoIterator<Item = (TaskId, Stored)>) -> String {
    judged_in(Case::default(), log, left)
}

/// One producer and two tasks, of which the second waits for the first.
const ADDED: &str = "1 0 adding A///0 B//A/0\n2 0 added 0 A B\n";

fn both_done() -> [(TaskId, Stored); 2] {
    [stored(A, State::Done, 1), stored(B, State::Done, 1)]
}

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    let log =
        format!("{ADDED}3 1 begun A 5.1\n4 1 ended A 5.1 done\n5 2 begun B 5.1\n6 2 ended B 5.1 done\n");
    assert_eq!(judged(&log, both_done()), "");
}

#[test]
fn a_task_that_is_gone_is_found_and_one_that_stays() {
    let found = judged("1 0 adding A///0\n2 0 added 0 A\n", []);
    assert!(found.contains("acknowledged, and is gone"), "{found}");
    assert_eq!(judged("1 0 adding A///0\n", []), "", "it was never acknowledged");
    let found = judged("1 0 adding A///0\n2 0 added 0 A\n", [stored(A, State::Ready, 0)]);
    assert!(found.contains("ready in the end"), "{found}");
    let found = judged("1 0 adding A///0\n2 0 added 0 A\n", [stored(A, State::Failed, 1)]);
    assert!(found.contains("nothing was wrong with it"), "{found}");
}

#[test]
fn two_runs_at_a_time_are_found() {
    let done = [stored(A, State::Done, 2)];
    let log = "1 1 begun A 5.1\n2 2 begun A 5.2\n3 1 dropped A 5.1\n4 2 ended A 5.2 done\n";
    let found = judged(log, done.clone());
    assert!(found.contains("two at a time"), "{found}");
    let stopped = |at, what| Event { at, who: 1, what };
    let case = Case { events: vec![stopped(1, What::Frozen), stopped(2, What::Thawed)], ..Case::default() };
    assert_eq!(judged_in(case, log, done.clone()), "", "it was stopped");
    let killed = Case { events: vec![stopped(1, What::Killed)], ..Case::default() };
    assert_eq!(judged_in(killed, "1 1 begun A 5.1\n2 2 begun A 5.2\n4 2 ended A 5.2 done\n", done), "");
}

#[test]
fn two_of_a_key_at_a_time_are_found() {
    let log = "1 0 adding A/key//0 B/key//0\n2 1 begun A 5.1\n3 2 begun B 5.1\n4 1 ended A 5.1 done\n5 2 ended B 5.1 done\n";
    let found = judged(log, both_done());
    assert!(found.contains("of key two at a time"), "{found}");
}

#[test]
fn a_token_used_twice_and_a_second_run_of_once_are_found() {
    let again = "1 1 begun A 5.1\n2 1 ended A 5.1 failed\n3 2 begun A 5.1\n4 2 ended A 5.1 done\n";
    let found = judged(again, [stored(A, State::Done, 1)]);
    assert!(found.contains("one token, two runs"), "{found}");
    let again =
        "0 0 adding A///1\n1 1 begun A 5.1\n2 1 dropped A 5.1\n3 2 begun A 5.2\n4 2 ended A 5.2 done\n";
    let found = judged(again, [stored(A, State::Done, 2)]);
    assert!(found.contains("at most once, and two runs"), "{found}");
}

#[test]
fn an_unowned_and_an_unreported_end_are_found() {
    let found = judged("1 1 begun A 5.1\n2 1 ended A 5.1 failed\n", [stored(A, State::Done, 1)]);
    assert!(found.contains("no such run was"), "{found}");
    let log = "1 1 begun A 5.1\n2 1 ended A 5.1 done\n3 2 begun A 5.2\n4 2 ended A 5.2 done\n";
    let found = judged(log, [stored(A, State::Done, 2)]);
    assert!(found.contains("nobody was told"), "{found}");
    assert_eq!(judged(&format!("{log}5 1 lost A 5.1\n"), [stored(A, State::Done, 2)]), "");
}

#[test]
fn a_start_before_its_upstream_is_done_is_found() {
    let log =
        format!("{ADDED}3 1 begun A 5.1\n4 2 begun B 5.1\n5 1 ended A 5.1 done\n6 2 ended B 5.1 done\n");
    let found = judged(&log, both_done());
    assert!(found.contains("begins too early"), "{found}");
}

/// Who waits before it tries again may be told after all tasks have ended.
#[test]
fn a_scene_knows_who_was_not_answered() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let said = |lines| {
        fs::write(&path, lines).unwrap();
        let mut log = Log::at(path.clone());
        log.refresh();
        log.unanswered.into_iter().collect::<Vec<_>>()
    };
    let fails = "1 1 answered\n2 2 answered\n3 1 trouble no room left\n4 2 trouble no room left\n";
    assert_eq!(said(fails.to_owned()), [1, 2]);
    assert_eq!(said(format!("{fails}5 2 answered\n")), [1]);
}
