//! Logs of runs, and notes.

#![allow(clippy::unwrap_used, reason = "a check")]

use interval_queue_contract::{Micros, StateErrorKind};
use interval_queue_task_contract::{
    Change, Command, Completion, Follow, Followed, LogLine, MAX_LOG, MAX_LOG_LINES, MAX_LOG_TEXT, Mark,
    NewLogLine, Outcome, Reply, RunLog, State, Step, TaskId, Token, Verb,
};

use crate::client::{Client, Handles, done, id as new_id, refusal, task, usual};

fn lines(id: TaskId, token: Token, numbers: std::ops::RangeInclusive<u32>, text: &str) -> RunLog {
    let line = |number| NewLogLine { number, age: Micros::from_millis(5), text: format!("{text}{number}") };
    RunLog { id, token, lines: numbers.map(line).collect() }
}

async fn follow(client: &Client, after: Option<Mark>) -> Followed {
    match client.apply(Command::Follow(Follow { after, most: 100 })).await.unwrap() {
        Reply::Followed(followed) => followed,
        other => panic!("a follow was answered by {other:?}"),
    }
}

async fn log_of(client: &Client, id: TaskId) -> Vec<LogLine> {
    client.stored(id).await.log
}

fn texts(log: &[LogLine]) -> Vec<&str> {
    log.iter().map(|line| line.text.as_str()).collect()
}

/// Lines are stored in order with their attempt, once each, also with and after the end of the run.
/// Another token, and a task that is leased again, accept none.
pub async fn a_run_leaves_its_log(handles: Handles) {
    let (one, other) = usual(handles).await;
    let id = one.add_one(task()).await;
    let mut worker = other.worker();
    let first = worker.one().await;
    let log = |token, numbers| vec![lines(id, token, numbers, "ü🦀'; \0 ")];
    let step = Step { log: log(first.1, 1..=2), ..worker.step() };
    worker.send(step).await;
    let step = Step { log: log(first.1, 2..=3), ..worker.step() };
    worker.send(step).await;
    let stored = log_of(&one, id).await;
    assert_eq!(texts(&stored), [1, 2, 3].map(|n| format!("ü🦀'; \0 {n}")));
    let leased = one.row(id).await.leased.unwrap();
    for (line, number) in stored.iter().zip(1..) {
        assert_eq!((line.token, line.number), (first.1, number));
        assert!(line.at + Micros::from_millis(5) >= leased);
    }
    let stale = Token { attempt: first.1.attempt + 1, ..first.1 };
    let step = Step { log: log(stale, 1..=9), ..worker.step() };
    worker.send(step).await;
    assert_eq!(log_of(&one, id).await, stored, "another token");

    let outcome = Outcome::Retry(Micros::ZERO, "again".into());
    let complete = vec![Completion { id, token: first.1, outcome }];
    let step = Step { log: log(first.1, 4..=4), complete, ..worker.step() };
    worker.send(step).await;
    let step = Step { log: log(first.1, 5..=5), ..worker.step() };
    worker.send(step).await;
    assert_eq!(log_of(&one, id).await.len(), 5, "with the end and after it");
    let second = worker.one().await;
    let step = Step { log: [log(first.1, 6..=6), log(second.1, 1..=1)].concat(), ..worker.step() };
    worker.send(step).await;
    let stored = log_of(&one, id).await;
    assert_eq!(stored.len(), 6, "an earlier run adds nothing");
    assert_eq!((stored[5].token, stored[5].number), (second.1, 1));
    worker.end(second, done()).await;
    assert_eq!(log_of(&one, id).await, stored, "kept with the ended task");
    one.touch(Verb::Retry, [id]).await;
    assert_eq!(log_of(&one, id).await, stored, "kept by a retry");
}

/// A run keeps its last lines, a task a bounded log. A purge removes it, and later lines do not
/// bring it back.
pub async fn a_log_is_bounded_and_goes_with_its_task(handles: Handles) {
    let (one, other) = usual(handles).await;
    let id = one.add_one(task()).await;
    let mut worker = other.worker();
    let mut tokens = Vec::new();
    for _ in 0..4 {
        let run = worker.one().await;
        tokens.push(run.1);
        let text = "x".repeat(MAX_LOG_TEXT - 3);
        for from in [1, 41] {
            let step = Step { log: vec![lines(id, run.1, from..=from + 39, &text)], ..worker.step() };
            worker.send(step).await;
        }
        worker.end(run, Outcome::Retry(Micros::ZERO, String::new())).await;
    }
    let log = log_of(&one, id).await;
    assert!(log.iter().map(LogLine::size).sum::<usize>() <= MAX_LOG);
    let of = |token: Token| log.iter().filter(move |line| line.token == token).map(|line| line.number);
    assert_eq!(of(tokens[3]).collect::<Vec<_>>(), (81 - MAX_LOG_LINES as u32..=80).collect::<Vec<_>>());
    assert_eq!(of(tokens[0]).count(), 0);
    assert_eq!(of(tokens[2]).next_back(), Some(80));

    let run = worker.one().await;
    for wrong in ["two\nlines".to_owned(), "x".repeat(MAX_LOG_TEXT + 1)] {
        let line = NewLogLine { number: 1, age: Micros::ZERO, text: wrong };
        let step = Step { log: vec![RunLog { id, token: run.1, lines: vec![line] }], ..worker.step() };
        assert_eq!(refusal(worker.try_send(step).await), StateErrorKind::Invalid);
    }
    worker.end(run, done()).await;
    one.touch(Verb::Purge, [id]).await;
    let step = Step { log: vec![lines(id, run.1, 1..=1, "late")], ..worker.step() };
    worker.send(step).await;
    assert_eq!(log_of(&one, id).await, []);
}

/// A note is stored in any state, also after a thousand lines. Followers learn of new lines.
pub async fn notes_are_kept_with_the_task(handles: Handles) {
    let (one, other) = usual(handles).await;
    let id = one.add_one(task()).await;
    let start = follow(&one, None).await;
    one.change(Change::Note(id, "called the customer".into())).await;
    let mut worker = other.worker();
    let run = worker.one().await;
    for from in (1..1_000).step_by(64) {
        let step = Step { log: vec![lines(id, run.1, from..=from + 63, &"y".repeat(450))], ..worker.step() };
        worker.send(step).await;
    }
    worker.end(run, done()).await;
    one.change(Change::Note(id, "paid".into())).await;
    let log = log_of(&other, id).await;
    let notes: Vec<_> = log.iter().filter(|line| line.is_note()).collect();
    assert_eq!(
        notes.iter().map(|note| note.text.as_str()).collect::<Vec<_>>(),
        ["called the customer", "paid"]
    );
    assert_eq!((notes[0].number, notes[1].number, log.len()), (1, 2, MAX_LOG_LINES + 2));
    let events = follow(&one, Some(start.mark)).await.events;
    let of_log = events.iter().filter(|event| event.is_log() && event.task == id);
    let states: Vec<_> = of_log.map(|event| event.to.unwrap()).collect();
    assert_eq!(states.len(), 18, "two notes and sixteen steps");
    assert!(states[1..17].iter().all(|state| *state == State::Leased) && states[17] == State::Done);
    let note = |id, text| Command::Change(Change::Note(id, text));
    assert_eq!(refusal(one.apply(note(new_id(), "lost".into())).await), StateErrorKind::NotFound);
    let long = "x".repeat(MAX_LOG_TEXT + 1);
    assert_eq!(refusal(one.apply(note(id, long)).await), StateErrorKind::Invalid);
}
