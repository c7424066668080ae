//! Leases: tokens, late steps and silent workers.

use std::time::Duration;

use interval_queue_contract::{Micros, StateErrorKind};
use interval_queue_task_contract::{
    AttemptEnd, Change, Command, Completion, NewTask, Outcome, Progress, State, Step, Token, WorkerId,
};
use uuid::Uuid;

use crate::client::{Client, Handles, SHORT, Worker, attempts, done, refusal, task, usual};

/// Lets a silent worker's lease end while another worker polls.
pub(super) async fn outlive(client: &Client) -> Worker {
    let mut witness = client.worker_of(&["witness"]).with_lease(SHORT);
    for _ in 0..6 {
        witness.beat().await;
        client.pass(Duration::from_millis(250)).await;
    }
    witness.tidy().await;
    witness
}

/// A write whose token is not in force, or by another worker, changes nothing and is reported.
pub async fn a_stale_token_changes_nothing(handles: Handles) {
    let (one, other) = usual(handles).await;
    one.add_one(task()).await;
    let (mut first, mut second) = (one.worker(), other.worker());
    let run = first.one().await;
    first.end(run, Outcome::Released).await;
    let next = second.one().await;
    assert!(next.0 == run.0 && next.1 > run.1, "the token rises with each lease: {} and {}", run.1, next.1);
    let before = one.row(run.0).await;
    for (is_first, token) in [(true, run.1), (true, next.1), (false, run.1)] {
        let worker = if is_first { &mut first } else { &mut second };
        for outcome in [done(), Outcome::Error("no".into()), Outcome::Failed("no".into()), Outcome::Released]
        {
            let progress = Progress { done: 1, total: 2, text: "late".into() };
            let complete = vec![Completion { id: run.0, token, outcome }];
            let step = Step { complete, progress: vec![(run.0, token, progress)], ..worker.step() };
            assert_eq!(worker.send(step).await.lost, [run.0]);
            assert_eq!(other.row(run.0).await, before);
        }
    }
    second.end(next, done()).await;
    assert_eq!(second.complete(next, Outcome::Released).await.lost, [run.0]);
    assert_eq!(one.state(run.0).await, State::Done);
}

/// A step not newer than the last is rejected and changes nothing.
pub async fn an_older_step_changes_nothing(handles: Handles) {
    let (one, other) = usual(handles).await;
    one.add([task(), task()]).await;
    let mut worker = one.worker();
    let run = worker.one().await;
    let complete = vec![Completion { id: run.0, token: run.1, outcome: done() }];
    let late = Step { complete, want: 9, ..worker.step() };
    worker.beat().await;
    let before = other.rows().await;
    for sequence in [late.sequence, late.sequence + 1] {
        let step = Step { sequence, ..late.clone() };
        assert_eq!(refusal(worker.try_send(step).await), StateErrorKind::Superseded);
    }
    assert_eq!(other.rows().await, before);
}

/// A resync's held leases are authoritative: leases lost in a reply cost no attempt.
pub async fn a_lost_reply_costs_no_attempt(handles: Handles) {
    let (one, other) = usual(handles).await;
    let ids = one.add([(); 2].map(|()| NewTask { policy: attempts(1), ..task() })).await;
    let mut worker = one.worker();
    let runs = worker.lease(2).await;
    let kept = (ids[0], runs[0].task.token);
    let never = (task().id, kept.1);
    let step = Step { held: Some(vec![kept, never]), ..worker.step() };
    assert_eq!(worker.send(step).await.lost, [never.0]);
    assert_eq!(one.states(&ids).await, [State::Leased, State::Ready]);
    let lost = one.row(ids[1]).await;
    assert_eq!((lost.failures, lost.returns, lost.history[0].end), (0, 1, AttemptEnd::Lost));
    let next = other.worker().one().await;
    assert!(next.0 == ids[1] && next.1 > runs[1].task.token);
}

/// An unknown worker gets nothing before it resyncs.
pub async fn an_unknown_worker_resyncs_first(handles: Handles) {
    let (one, _) = usual(handles).await;
    one.add_one(task()).await;
    let mut worker = one.worker();
    let step = Step { held: None, want: 9, ..worker.step() };
    let stepped = worker.send(step).await;
    assert!(stepped.resync && stepped.leased.is_empty(), "{stepped:?}");
    let step = Step { held: Some(vec![]), want: 9, ..worker.step() };
    let stepped = worker.send(step).await;
    assert!(!stepped.resync && stepped.leased.len() == 1, "{stepped:?}");
}

/// A dead worker's task runs again after its lease, with one failure. Late reports change nothing.
pub async fn a_dead_workers_task_runs_again(handles: Handles) {
    let (one, other) = usual(handles).await;
    let ids = one.add([1, 2].map(|n| NewTask { policy: attempts(n), ..task() })).await;
    let mut dead = one.worker().with_lease(SHORT);
    let runs = dead.lease(2).await;
    assert_eq!(runs.len(), 2);
    outlive(&other).await;
    let rows = [one.row(ids[0]).await, one.row(ids[1]).await];
    assert_eq!(rows.each_ref().map(|x| x.state), [State::Failed, State::Ready]);
    assert_eq!(rows.each_ref().map(|x| x.failures), [1, 1]);
    assert_eq!(rows[1].history[0].end, AttemptEnd::Died);
    assert!(rows[0].error.as_ref().is_some_and(|error| error.contains("worker")), "{:?}", rows[0].error);
    let mut heir = other.worker();
    let next = heir.one().await;
    let stepped = dead.complete((ids[1], runs[1].task.token), done()).await;
    assert!(stepped.resync && stepped.lost == [ids[1]], "{stepped:?}");
    heir.end(next, done()).await;
    assert_eq!(one.stored(ids[1]).await.task.worker, Some(heir.id));
}

/// A worker that is declared lost loses its runs at once, though its lease goes on, and counts as dead
/// until it resyncs. If it lives, its results are refused.
pub async fn a_worker_that_is_declared_lost_loses_its_runs_at_once(handles: Handles) {
    let (one, other) = usual(handles).await;
    let ids = one.add([1, 2].map(|n| NewTask { policy: attempts(n), ..task() })).await;
    let mut lost = one.worker();
    let runs = lost.lease(2).await;
    assert_eq!(runs.len(), 2);
    other.change(Change::DeclareLost(lost.id)).await;
    let rows = [one.row(ids[0]).await, one.row(ids[1]).await];
    assert_eq!(rows.each_ref().map(|x| x.state), [State::Failed, State::Ready]);
    assert_eq!(rows.each_ref().map(|x| x.failures), [1, 1]);
    assert_eq!(rows[1].history[0].end, AttemptEnd::Died);
    assert!(rows[0].error.as_ref().is_some_and(|error| error.contains("was declared lost")), "{:?}", rows[0]);
    let mut heir = other.worker();
    let next = heir.one().await;
    assert!(next.0 == ids[1] && next.1 > runs[1].task.token);
    let stepped = lost.complete((ids[1], runs[1].task.token), done()).await;
    assert!(stepped.resync && stepped.lost == [ids[1]] && stepped.leased.is_empty(), "{stepped:?}");
    heir.end(next, done()).await;
    // Runs that it reports are not given back to it. Then it is a worker as any other.
    let id = one.add_one(task()).await;
    let step = Step { held: Some(vec![(ids[1], runs[1].task.token)]), want: 9, ..lost.step() };
    let stepped = lost.send(step).await;
    assert!(!stepped.resync && stepped.lost == [ids[1]] && stepped.leased.len() == 1, "{stepped:?}");
    lost.end((id, stepped.leased[0].task.token), done()).await;
    assert_eq!(one.states(&[ids[0], ids[1], id]).await, [State::Failed, State::Done, State::Done]);
}

/// Only a worker whose tasks were not taken back can be declared lost.
pub async fn an_unknown_worker_cannot_be_declared_lost(handles: Handles) {
    let (one, other) = usual(handles).await;
    let mut dead = one.worker().with_lease(SHORT);
    dead.beat().await;
    let stranger = WorkerId::new(Uuid::from_u128(7));
    assert_eq!(
        refusal(one.apply(Command::Change(Change::DeclareLost(stranger))).await),
        StateErrorKind::NotFound
    );
    other.change(Change::DeclareLost(dead.id)).await;
    assert_eq!(
        refusal(one.apply(Command::Change(Change::DeclareLost(dead.id))).await),
        StateErrorKind::NotFound
    );
}

/// A late worker keeps the leases in its resync that are not taken. Its other runs have failed.
pub async fn a_worker_that_comes_back_has_what_it_says(handles: Handles) {
    let (one, _) = usual(handles).await;
    let ids = one.add([(); 2].map(|()| NewTask { policy: attempts(3), ..task() })).await;
    let mut witness = one.worker_of(&["witness"]).with_lease(SHORT);
    witness.beat().await;
    let mut worker = one.worker().with_lease(SHORT);
    let runs = worker.lease(2).await;
    for _ in 0..4 {
        one.pass(Duration::from_millis(240)).await;
        witness.beat().await;
    }
    // The worker's own step is the first to notice its ended lease.
    one.pass(Duration::from_millis(240)).await;
    let kept = (ids[0], runs[0].task.token);
    let step = Step { held: Some(vec![kept]), ..worker.step() };
    assert_eq!(worker.send(step).await.lost, []);
    assert_eq!(one.states(&ids).await, [State::Leased, State::Ready]);
    assert_eq!([one.row(ids[0]).await.failures, one.row(ids[1]).await.failures], [0, 1]);
    worker.end(kept, done()).await;
}

/// A single worker that returns late keeps its runs.
pub async fn a_lone_worker_that_comes_back_keeps_its_runs(handles: Handles) {
    let (one, _) = usual(handles).await;
    one.add_one(NewTask { policy: attempts(1), ..task() }).await;
    let mut worker = one.worker();
    let run = worker.one().await;
    // Silence of all workers is an outage and costs no lease.
    one.pass(worker.lease.to_duration() * 3).await;
    worker.end(run, done()).await;
    assert_eq!(one.state(run.0).await, State::Done);
}

/// Silence of all workers counts as a quarter lease: after an outage no worker takes others' tasks.
pub async fn an_outage_costs_no_lease(handles: Handles) {
    let (one, other) = usual(handles).await;
    one.add((0..3).map(|_| NewTask { policy: attempts(1), ..task() })).await;
    let mut workers = [one.worker(), other.worker(), one.worker()];
    let mut runs = Vec::new();
    for worker in &mut workers {
        runs.push(worker.one().await);
    }
    for _ in 0..2 {
        one.pass(Duration::from_secs(100_000)).await;
        for worker in &mut workers {
            worker.tidy().await;
        }
    }
    one.clock().step_back(Duration::from_secs(150_000));
    for (worker, run) in workers.iter_mut().zip(runs) {
        worker.end(run, done()).await;
    }
}

/// A rolled-back store requests a resync, restores the runs and reuses no token.
pub async fn a_rolled_back_store_gives_runs_back(handles: Handles) {
    let (one, other) = usual(handles).await;
    let ids = one.add([task(), task(), task()]).await;
    let mut worker = one.worker();
    worker.beat().await;
    // A roll-back would lose the replies since then.
    worker.sequence += 10;
    worker.acknowledged = worker.sequence;
    let token = Token { incarnation: Micros::MAX, attempt: 7 };
    let step =
        Step { complete: vec![Completion { id: ids[1], token, outcome: done() }], want: 9, ..worker.step() };
    let stepped = worker.send(step).await;
    assert!(stepped.resync && stepped.leased.is_empty() && stepped.lost.is_empty(), "{stepped:?}");
    let step = Step { held: Some(vec![(ids[0], token)]), ..worker.step() };
    assert_eq!(worker.send(step).await.lost, []);
    assert_eq!(one.states(&ids).await, [State::Leased, State::Done, State::Ready]);
    let first = one.row(ids[0]).await;
    assert_eq!((first.worker, first.token), (Some(worker.id), token));
    let mut heir = other.worker();
    assert_eq!(heir.one().await.0, ids[2]);
    worker.end((ids[0], token), done()).await;
}

/// Workers are listed with the presence they sent.
pub async fn workers_are_notified(handles: Handles) {
    use interval_queue_task_contract::{Read, Reply};
    let (one, other) = usual(handles).await;
    one.add_one(task()).await;
    let mut worker = one.worker_of(&["b", "default", "ä ü"]);
    worker.id = WorkerId::new(Uuid::from_u128(u128::MAX - u128::from(one.queue().as_str().len() as u64)));
    worker.sequence = u64::MAX >> 12;
    let step = Step { want: 1, held: Some(vec![]), ..worker.step() };
    let leased = worker.send(step.clone()).await.leased;
    let Reply::Workers(workers) = other.read(Read::Workers).await else {
        panic!("a read of workers shows none")
    };
    assert_eq!(workers.len(), 1);
    let presence = &workers[0].presence;
    assert_eq!((&presence.kinds, &presence.label, presence.lease), (&step.kinds, &step.label, step.lease));
    assert_eq!((presence.worker, presence.sequence, presence.busy), (step.worker, step.sequence, true));
    assert_eq!(workers[0].holds, [(leased[0].task.id, leased[0].task.token)]);
    assert!(workers[0].alive_for.is_some_and(|left| left <= step.lease));
}
