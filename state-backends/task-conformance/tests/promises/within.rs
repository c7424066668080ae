//! The end of a run as part of a transaction of the application: it changes its own task alone, and the next step makes
//! the rest of it.

use std::{sync::Arc, time::Duration};

use interval_queue_conformance::ManualClock;
use interval_queue_contract::{Micros, StateError, StateErrorKind};
use interval_queue_memory::MemoryTasks;
use interval_queue_task_conformance::{
    Handles,
    client::{Client, SHORT, Worker, behind, done, id, key, named, seconds, task, usual, with_key},
};
use interval_queue_task_contract::{
    Change, Command, Completed, Completion, Counted, EdgeState, Fire, Fired, Json, NewSchedule, NewTask,
    OnFailure, Outcome, Overlap, PolicyOverride, Read, Reply, SettingsChange, State, Task, TaskId, Token,
    Verb,
};

struct Queue {
    client: Client,
    store: MemoryTasks,
}

impl Queue {
    async fn new() -> Self {
        let clock = ManualClock::new();
        let reading = clock.clone();
        let store = MemoryTasks::with_clock(move || reading.now());
        let (one, other) = (Arc::new(store.clone()), Arc::new(store.clone()));
        Self { client: usual(Handles { one, other, clock: Some(clock) }).await.0, store }
    }

    fn end(&self, by: &Worker, run: (TaskId, Token), outcome: Outcome) -> Result<Completed, StateError> {
        let complete = Completion { id: run.0, token: run.1, outcome };
        self.store.complete_within(self.client.queue(), by.id, &complete)
    }

    /// Ends the run, and gives the row.
    async fn ended(&self, by: &Worker, run: (TaskId, Token)) -> Task {
        assert_eq!(self.end(by, run, done()).unwrap().id, run.0);
        self.client.row(run.0).await
    }
}

#[tokio::test]
async fn a_key_stays_held_until_the_next_step() {
    let queue = Queue::new().await;
    let ids = queue.client.add([with_key("k"), with_key("k")]).await;
    let mut worker = queue.client.worker();
    let run = worker.one().await;
    let ended = queue.ended(&worker, run).await;
    assert_eq!((ended.state, ended.holds_key, ended.notified), (State::Done, true, false));
    assert_eq!(queue.client.state(ids[1]).await, State::Blocked, "no gate of another task is decided");
    assert_eq!(worker.take(9).await, [ids[1]], "the next step lets it in and leases it");
    let ended = queue.client.row(ids[0]).await;
    assert!(!ended.holds_key && ended.notified);
}

#[tokio::test]
async fn a_token_that_is_not_in_force_ends_nothing() {
    let queue = Queue::new().await;
    queue.client.add_one(task()).await;
    let (mut worker, other) = (queue.client.worker(), queue.client.worker());
    let run = worker.one().await;
    let kind = |outcome: Result<Completed, StateError>| outcome.unwrap_err().kind();
    assert_eq!(kind(queue.end(&other, run, done())), StateErrorKind::Superseded);
    worker.end(run, Outcome::Released).await;
    assert_eq!(kind(queue.end(&worker, run, done())), StateErrorKind::Superseded);
    let again = worker.one().await;
    assert_eq!(kind(queue.end(&worker, run, done())), StateErrorKind::Superseded);
    assert_eq!(kind(queue.end(&worker, (id(), again.1), done())), StateErrorKind::Superseded);
    queue.ended(&worker, again).await;
    assert_eq!(kind(queue.end(&worker, again, done())), StateErrorKind::Superseded, "twice");
    assert_eq!(worker.complete(again, done()).await.lost, [again.0]);
}

#[tokio::test]
async fn only_ends_are_completed_so() {
    let queue = Queue::new().await;
    queue.client.add_one(task()).await;
    let mut worker = queue.client.worker();
    let run = worker.one().await;
    let before = queue.client.row(run.0).await;
    let large = Outcome::Done(Json::of(&"x".repeat(2 << 20)).unwrap());
    let others = [
        Outcome::Error("no".into()),
        Outcome::Retry(seconds(1), "later".into()),
        Outcome::Released,
        Outcome::Exchanged,
        large,
    ];
    for outcome in others {
        let error = queue.end(&worker, run, outcome).unwrap_err();
        assert_eq!(error.kind(), StateErrorKind::Invalid, "{error}");
    }
    assert_eq!(queue.client.row(run.0).await, before);
    let completed = queue.end(&worker, run, Outcome::Failed("never".into())).unwrap();
    assert_eq!(completed.state, State::Failed);
    let row = queue.client.row(run.0).await;
    assert_eq!((row.state, row.failures, row.error.as_deref()), (State::Failed, 1, Some("never")));
}

#[tokio::test]
async fn a_cancelled_run_ends_within_no_transaction() {
    let queue = Queue::new().await;
    let id = queue.client.add_one(task()).await;
    let mut worker = queue.client.worker();
    let run = worker.one().await;
    queue.client.touch(Verb::Cancel, [id]).await;
    let before = queue.client.row(id).await;
    for outcome in [done(), Outcome::Failed("stopped".into())] {
        let error = queue.end(&worker, run, outcome).unwrap_err();
        assert_eq!(error.kind(), StateErrorKind::Superseded, "{error}");
        assert!(error.to_string().contains("was cancelled while it ran: roll back"), "{error}");
    }
    assert_eq!(queue.client.row(id).await, before);
    // The handler returns the error.
    worker.end(run, Outcome::Error("rolled back".into())).await;
    assert_eq!(queue.client.state(id).await, State::Cancelled);
}

#[tokio::test]
async fn downstreams_go_on_with_the_next_step() {
    let queue = Queue::new().await;
    let up = queue.client.add_one(task()).await;
    let down = queue.client.add_one(behind([up], OnFailure::Cancel)).await;
    let mut worker = queue.client.worker();
    let run = worker.one().await;
    let complete = Outcome::Done(Json::of(&7).unwrap());
    let _completed = queue.end(&worker, run, complete).unwrap();
    assert_eq!(queue.client.edges(down).await, [EdgeState::Open]);
    assert_eq!(worker.take(9).await, [down]);
    let Reply::Inputs(inputs) = queue.client.read(Read::Inputs { down, after: None }).await else { panic!() };
    assert_eq!(inputs.inputs[0].result, Some(Json::of(&7).unwrap()));
}

/// The edge came while the end was not committed yet: nobody saw both.
#[tokio::test]
async fn an_end_is_notified_without_downstreams() {
    let queue = Queue::new().await;
    queue.client.add_one(task()).await;
    let mut worker = queue.client.worker();
    let run = worker.one().await;
    assert!(!queue.ended(&worker, run).await.notified);
    worker.tidy().await;
    assert!(queue.client.row(run.0).await.notified);
}

#[tokio::test]
async fn a_name_is_free_at_once() {
    let queue = Queue::new().await;
    queue.client.add_one(named("n")).await;
    let mut worker = queue.client.worker();
    let run = worker.one().await;
    queue.ended(&worker, run).await;
    queue.client.add_one(named("n")).await;
}

#[tokio::test]
async fn a_retry_before_the_next_step_lets_the_key_go() {
    for has_edges in [false, true] {
        let queue = Queue::new().await;
        let mut worker = queue.client.worker();
        let up = queue.client.add_one(task()).await;
        worker.run().await;
        let first = if has_edges { behind([up], OnFailure::Cancel) } else { task() };
        queue.client.add_one(NewTask { key: Some(key("k")), ..first }).await;
        let run = worker.one().await;
        let urgent = queue.client.add_one(NewTask { priority: 1, ..with_key("k") }).await;
        worker.tidy().await;
        assert_eq!(queue.client.state(urgent).await, State::Blocked);
        queue.ended(&worker, run).await;
        assert_eq!(queue.client.touch(Verb::Retry, [run.0]).await, [run.0]);
        let holders: Vec<_> =
            queue.client.rows().await.into_iter().filter(|x| x.holds_key).map(|x| x.id).collect();
        assert_eq!(holders, [urgent], "has edges: {has_edges}");
        assert_eq!([worker.run().await, worker.run().await], [urgent, run.0], "has edges: {has_edges}");
    }
}

#[tokio::test]
async fn a_purge_before_the_next_step_lets_the_key_go() {
    let queue = Queue::new().await;
    let ids = queue.client.add([with_key("k"), with_key("k")]).await;
    let mut worker = queue.client.worker();
    let run = worker.one().await;
    queue.ended(&worker, run).await;
    assert_eq!(queue.client.touch(Verb::Purge, [ids[0]]).await, [ids[0]]);
    assert_eq!(worker.take(9).await, [ids[1]]);
}

#[tokio::test]
async fn nobody_runs_beside_it_and_its_worker_may_die() {
    let queue = Queue::new().await;
    let settings = SettingsChange { key_limit: Some(2), ..SettingsChange::default() };
    queue.client.change(Change::Set(settings)).await;
    let ids = queue.client.add([(); 3].map(|()| with_key("k"))).await;
    let mut worker = queue.client.worker().with_lease(SHORT);
    let runs = worker.lease(9).await;
    assert_eq!(runs.len(), 2);
    queue.ended(&worker, (runs[0].task.id, runs[0].task.token)).await;
    // It is not heard of any more: what it has completed stays done, and the rest is run again.
    let mut heir = queue.client.worker().with_lease(SHORT);
    assert_eq!(heir.take(9).await, [ids[2]]);
    queue.client.live(&mut heir, Duration::from_secs(3)).await;
    assert_eq!(queue.client.row(ids[0]).await.state, State::Done);
    assert_eq!(queue.client.row(ids[1]).await.failures, 1);
}

#[tokio::test]
async fn counts_are_what_is_stored() {
    let queue = Queue::new().await;
    queue.client.add([task(), task()]).await;
    let mut worker = queue.client.worker();
    let run = worker.one().await;
    queue.ended(&worker, run).await;
    for (counted, many) in [
        (Counted::Now(State::Leased), 0),
        (Counted::Now(State::Done), 1),
        (Counted::EverDone, 1),
        (Counted::EverLeased, 1),
    ] {
        assert_eq!(queue.client.counted(counted).await, many, "{counted}");
    }
}

#[tokio::test]
async fn a_kept_instant_comes_after_it() {
    let queue = Queue::new().await;
    let client = &queue.client;
    let at = |n: u64| client.clock().now() + seconds(n);
    let (name, from, next) = (key("tick"), at(0), at(1));
    let new = NewSchedule {
        name: name.clone(),
        definition: Json::default(),
        next: Some(from),
        paused: false,
        overlap: Overlap::Keep,
    };
    client.add([]).await;
    client.change(Change::Schedule(new)).await;
    let Reply::Schedules(schedules) = client.read(Read::Schedules).await else { panic!() };
    let fire = |from: Micros, next| Fire {
        schedule: name.clone(),
        revision: schedules[0].revision,
        from,
        made: vec![(
            from,
            NewTask::new(TaskId::of_schedule(schedules[0].incarnation, &name, from), Json::default()),
        )],
        next: Some(next),
    };
    let fired = async |fire: Fire| match client.apply(Command::Fire(fire)).await.unwrap() {
        Reply::Fired(fired) => fired,
        other => panic!("{other:?}"),
    };
    assert_eq!(fired(fire(from, next)).await, Fired::Made);
    let mut worker = client.worker();
    let run = worker.one().await;
    client.pass(Duration::from_secs(1)).await;
    assert_eq!(fired(fire(next, at(60))).await, Fired::Kept);
    queue.ended(&worker, run).await;
    client.pass(Duration::from_secs(1)).await;
    let due = worker.beat().await.schedules;
    assert_eq!(due.len(), 1, "the kept instant comes");
    assert_eq!(due[0].at, next);
    assert!(due[0].schedule.may_follow);
}

#[tokio::test]
async fn a_queue_that_is_not_there_has_no_run() {
    let queue = Queue::new().await;
    let elsewhere = interval_queue_contract::QueueName::new("elsewhere").unwrap();
    let worker = queue.client.worker();
    let complete = Completion { id: id(), token: Token::default(), outcome: done() };
    let error = queue.store.complete_within(&elsewhere, worker.id, &complete).unwrap_err();
    assert_eq!(error.kind(), StateErrorKind::Superseded, "{error}");
}

#[tokio::test]
async fn a_last_attempt_that_ends_so_is_done() {
    let queue = Queue::new().await;
    let policy = PolicyOverride { max_attempts: Some(1), ..PolicyOverride::default() };
    queue.client.add_one(NewTask { policy, ..task() }).await;
    let mut worker = queue.client.worker();
    let run = worker.one().await;
    assert_eq!(queue.ended(&worker, run).await.state, State::Done);
    worker.tidy().await;
    assert_eq!(worker.take(9).await, []);
}
