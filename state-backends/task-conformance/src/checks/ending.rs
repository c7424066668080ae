//! Tasks whose run has ended.

use std::time::Duration;

use interval_queue_contract::Micros;
use interval_queue_task_contract::{
    AttemptEnd, Change, Json, NewTask, Outcome, Policy, PolicyOverride, SettingsChange, State, Step, Stop,
    Verb,
};

use crate::client::{Handles, attempts, done, in_seconds, opened, seconds, task, usual};

/// A result is stored unchanged; for `null` none is stored.
pub async fn a_result_is_kept(handles: Handles) {
    let (one, other) = usual(handles).await;
    let ids = one.add([task(), task()]).await;
    let mut worker = one.worker();
    let result = Json::new(" {\"a\" : [1.50, \"ü\\u0000\"]} ").unwrap();
    for result in [result.clone(), Json::default()] {
        let run = worker.one().await;
        worker.end(run, Outcome::Done(result)).await;
    }
    assert_eq!(other.stored(ids[0]).await.result, Some(result));
    assert_eq!(other.stored(ids[1]).await.result, None);
}

/// A result that is too large fails the run and notifies the worker.
pub async fn too_large_a_result_is_a_failure(handles: Handles) {
    let (one, _) =
        opened(handles, SettingsChange { max_payload: Some(8), ..SettingsChange::default() }).await;
    one.add_one(NewTask { policy: attempts(1), ..task() }).await;
    let mut worker = one.worker();
    let run = worker.one().await;
    let large = Outcome::Done(Json::new("\"1234567\"").unwrap());
    let stepped = worker.complete(run, large).await;
    assert_eq!((stepped.refused, stepped.lost), (vec![run.0], vec![]));
    assert_eq!(one.state(run.0).await, State::Failed);
}

/// A failed run is retried with doubling backoff up to the attempts, all recorded.
pub async fn a_failure_is_tried_again_later(handles: Handles) {
    let (one, other) = usual(handles).await;
    let policy =
        Policy { max_attempts: 3, backoff: seconds(100), max_backoff: seconds(150), ..Policy::default() };
    let id = one.add_one(NewTask { policy: policy.into(), ..task() }).await;
    let mut worker = other.worker();
    for (failures, longest) in [(1, 100), (2, 150)] {
        let run = worker.one().await;
        let at = one.overview().await.at;
        worker.end(run, Outcome::Error(format!("no {failures}"))).await;
        let x = one.row(id).await;
        assert_eq!(
            (x.state, x.failures, x.error),
            (State::Scheduled, failures, Some(format!("no {failures}")))
        );
        let wait = x.not_before - at;
        let bounds = seconds(longest * 4 / 5)..=seconds(longest);
        assert!(bounds.contains(&wait), "{failures}: {wait:?}");
        assert_eq!(x.not_before, at + policy.wait(failures, id, run.1.attempt));
        assert_eq!(worker.take(9).await, []);
        one.pass(Duration::from_secs(longest)).await;
    }
    let run = worker.one().await;
    worker.end(run, Outcome::Error("no 3".into())).await;
    let x = one.row(id).await;
    assert_eq!((x.state, x.failures, x.history.len()), (State::Failed, 3, 2));
    assert!(
        x.history.iter().all(|attempt| attempt.end == AttemptEnd::Error && attempt.worker == Some(worker.id))
    );
    // An operator's retry restores all attempts and keeps the history.
    assert_eq!(one.touch(Verb::Retry, [id]).await, [id]);
    let x = one.row(id).await;
    assert_eq!((x.state, x.failures, x.generation, x.history.len()), (State::Ready, 0, 1, 3));
}

/// A task sets only its attempts: these stay when the queue's policy changes; new backoff and
/// timeout apply.
pub async fn unset_options_of_a_task_are_the_queues(handles: Handles) {
    let (one, other) = usual(handles).await;
    let own = PolicyOverride { max_attempts: Some(2), ..PolicyOverride::default() };
    let id = one.add_one(NewTask { policy: own, ..task() }).await;
    assert_eq!(other.row(id).await.policy, own);
    let policy = Policy {
        max_attempts: 7,
        max_retries: 3,
        backoff: seconds(50),
        max_backoff: seconds(70),
        timeout: Some(seconds(40)),
    };
    one.change(Change::Set(SettingsChange { policy: Some(policy), ..SettingsChange::default() })).await;
    let mut worker = other.worker();
    let leased = worker.lease(1).await.remove(0);
    assert_eq!(leased.policy, Policy { max_attempts: 2, ..policy });
    let run = (id, leased.task.token);
    let at = one.overview().await.at;
    worker.end(run, Outcome::Error("no 1".into())).await;
    let x = one.row(id).await;
    assert_eq!((x.state, x.policy), (State::Scheduled, own));
    assert_eq!(x.not_before, at + policy.wait(1, id, run.1.attempt));
    one.pass(Duration::from_secs(50)).await;
    let run = worker.one().await;
    worker.end(run, Outcome::Error("no 2".into())).await;
    assert_eq!(one.state(id).await, State::Failed);
}

/// If a task sets one backoff limit and the queue's other one contradicts it, the task's wins.
pub async fn a_backoff_of_the_task_wins(handles: Handles) {
    let policy = Policy { backoff: seconds(100), max_backoff: seconds(200), ..Policy::default() };
    let settings = SettingsChange { policy: Some(policy), ..SettingsChange::default() };
    let (one, other) = opened(handles, settings).await;
    let long = PolicyOverride { backoff: Some(seconds(1_000)), ..PolicyOverride::default() };
    let short = PolicyOverride { max_backoff: Some(seconds(10)), ..PolicyOverride::default() };
    let mut worker = other.worker();
    for (own, wait) in [(long, 1_000), (short, 10)] {
        let id = one.add_one(NewTask { policy: own, ..task() }).await;
        let leased = worker.lease(1).await.remove(0);
        assert_eq!(
            (leased.policy.backoff, leased.policy, leased.task.id),
            (seconds(wait), own.over(&policy), id)
        );
        let at = one.overview().await.at;
        worker.end((id, leased.task.token), Outcome::Error("no".into())).await;
        let fixed = Policy { backoff: seconds(wait), max_backoff: seconds(wait), ..policy };
        assert_eq!(one.row(id).await.not_before, at + fixed.wait(1, id, leased.task.token.attempt));
    }
}

/// A permanent failure is not retried.
pub async fn a_permanent_failure_is_one(handles: Handles) {
    let (one, _) = usual(handles).await;
    let id = one.add_one(task()).await;
    let mut worker = one.worker();
    let run = worker.one().await;
    let long = "ü".repeat(4_000);
    worker.end(run, Outcome::Failed(long.clone())).await;
    let x = one.row(id).await;
    let error = x.error.unwrap();
    assert_eq!(x.state, State::Failed);
    assert!(error.len() < 4_100 && long.starts_with(error.trim_end_matches('…')), "the beginning is kept");
}

/// A handler's request to run again is no failure; it has its own limit.
pub async fn to_be_run_again_is_no_failure(handles: Handles) {
    let (one, _) = usual(handles).await;
    let policy = Policy { max_attempts: 1, max_retries: 2, ..Policy::default() };
    let id = one.add_one(NewTask { policy: policy.into(), ..task() }).await;
    let mut worker = one.worker();
    for retries in 1..=2 {
        let run = worker.one().await;
        worker.end(run, Outcome::Retry(Micros::ZERO, "later".into())).await;
        let x = one.row(id).await;
        assert_eq!((x.state, x.failures, x.retries), (State::Ready, 0, retries));
    }
    let run = worker.one().await;
    worker.end(run, Outcome::Retry(Micros::ZERO, "later".into())).await;
    assert_eq!(one.state(id).await, State::Failed);
}

/// A released task keeps its order. Twenty releases in a row delay it.
pub async fn twenty_returns_back_off(handles: Handles) {
    let (one, _) = usual(handles).await;
    let id = one.add_one(task()).await;
    let later = one.add_one(task()).await;
    let mut worker = one.worker();
    for returns in 1..20 {
        let run = worker.one().await;
        assert_eq!(run.0, id, "after {returns}");
        worker.end(run, Outcome::Released).await;
        assert_eq!(one.row(id).await.returns, returns);
    }
    let run = worker.one().await;
    worker.end(run, Outcome::Unable("no room for a process".into())).await;
    let x = one.row(id).await;
    assert_eq!((x.state, x.failures), (State::Scheduled, 0));
    assert_eq!(
        x.error.as_deref(),
        Some("it was given back 20 times in a row: no room for a process"),
        "the message of the last one"
    );
    assert_eq!(worker.run().await, later);
}

/// An exchanged task does not count as released.
pub async fn an_exchange_counts_nothing(handles: Handles) {
    let (one, _) = usual(handles).await;
    let mild = one.add_one(task()).await;
    let mut worker = one.worker();
    let run = worker.one().await;
    let urgent = one.add_one(NewTask { priority: 1, ..task() }).await;
    let complete = vec![interval_queue_task_contract::Completion {
        id: mild,
        token: run.1,
        outcome: Outcome::Exchanged,
    }];
    let step = Step { complete, want: 1, ..worker.step() };
    assert_eq!(worker.send(step).await.leased[0].task.id, urgent);
    let x = one.row(mild).await;
    assert_eq!((x.state, x.returns, x.failures), (State::Ready, 0, 0));
}

/// A task that has not started by its deadline fails; a running one is stopped.
pub async fn a_deadline_ends_a_task(handles: Handles) {
    let (one, other) = usual(handles).await;
    let due = || NewTask { deadline: Some(in_seconds(60)), ..task() };
    let never = one.add_one(NewTask { not_before: in_seconds(90), ..due() }).await;
    let ids = one.add([due(), due(), due()]).await;
    let mut worker = other.worker();
    let runs = worker.lease(2).await;
    assert!(runs.iter().all(|run| run.deadline.is_some_and(|left| left <= seconds(60))));
    one.pass(Duration::from_secs(60)).await;
    let mut stop = worker.beat().await.stop;
    if stop.is_empty() {
        stop = worker.beat().await.stop;
    }
    assert_eq!(stop, [(ids[0], Stop::Deadline), (ids[1], Stop::Deadline)]);
    assert_eq!(worker.take(9).await, []);
    worker.end((ids[0], runs[0].task.token), Outcome::Released).await;
    // The run ended before the deadline's notification.
    worker.end((ids[1], runs[1].task.token), done()).await;
    let ended = [State::Failed, State::Done, State::Failed, State::Failed];
    assert_eq!(one.states(&[ids[0], ids[1], ids[2], never]).await, ended);
    assert!(one.row(never).await.error.is_some_and(|error| error.contains("deadline")));
}
