//! Moving tasks between queues.

use interval_queue_contract::{Label, StateErrorKind};
use interval_queue_task_contract::{
    Added, Change, Command, Counted, Imported, Json, MOVING, NewEdge, NewTask, OnFailure, Outcome,
    PolicyOverride, Read, Reply, Selector, State, Stored, Tag, TaskId, Token, Verb,
};

use crate::client::{
    Client, Handles, attempts, behind, done, id, in_seconds, key, kind, named, refusal, seconds, task, touch,
    usual, with_key,
};

fn taken(stored: &Stored) -> Imported {
    let edges = stored.upstreams.iter();
    let edge = |edge: &interval_queue_task_contract::Edge| NewEdge {
        up: edge.up,
        name: edge.name.clone(),
        on_failure: edge.on_failure,
    };
    Imported {
        task: stored.task.clone(),
        payload: stored.payload.clone().unwrap_or_default(),
        result: stored.result.clone(),
        log: stored.log.clone(),
        edges: edges.map(edge).collect(),
    }
}

async fn import(
    client: &Client,
    tasks: Vec<Imported>,
) -> Result<Vec<Added>, interval_queue_contract::StateError> {
    match client.apply(Command::Import(tasks.into())).await? {
        Reply::Added(added) => Ok(added),
        other => panic!("an import was answered by {other:?}"),
    }
}

async fn take(client: &Client, ids: &[TaskId]) -> Vec<Imported> {
    let mut all = Vec::new();
    for &id in ids {
        all.push(taken(&client.stored(id).await));
    }
    all
}

/// An imported task keeps order, history and remaining attempts, an ended one its outcome. A
/// repeated import changes nothing.
pub async fn imported_tasks_go_on_as_they_were(handles: Handles) {
    let (there, _) = usual(handles.clone()).await;
    let (here, other) = usual(handles).await;
    let tags = vec![Tag::new("a").unwrap(), Tag::new("b").unwrap()];
    let rich = NewTask {
        kind: kind("k"),
        payload: Json::new("{\"n\": [1, \"ä\"]}").unwrap(),
        priority: -3,
        weight: 2,
        tags,
        // The wait before the retry outlasts the check on any host.
        policy: PolicyOverride {
            backoff: Some(seconds(900)),
            max_backoff: Some(seconds(900)),
            ..attempts(2)
        },
        deadline: Some(in_seconds(9_000)),
        ..named("name")
    };
    let later = NewTask { not_before: in_seconds(900), ordered: true, ..with_key("key") };
    let ids = there.add([task(), rich, later, task(), task()]).await;
    let mut worker = there.worker_of(&["default", "k"]);
    let runs = worker.lease(9).await;
    let run = |n: usize| (ids[n], runs.iter().find(|run| run.task.id == ids[n]).unwrap().task.token);
    worker.end(run(0), Outcome::Done(Json::new("[7]").unwrap())).await;
    worker.end(run(1), Outcome::Error("it broke".into())).await;
    worker.end(run(3), Outcome::Failed("for good".into())).await;
    let moved = take(&there, &ids[..4]).await;
    let running = take(&there, &ids[4..]).await;
    assert_eq!(refusal(import(&here, running).await), StateErrorKind::Invalid, "it runs");
    let added = import(&here, moved.clone()).await.unwrap();
    assert_eq!(added, ids[..4].iter().map(|&id| Added::New(id)).collect::<Vec<_>>());
    for (before, n) in moved.iter().zip(0..) {
        let after = other.stored(ids[n]).await;
        assert_eq!((after.payload.as_ref(), &after.result), (Some(&before.payload), &before.result), "{n}");
        let x = after.task;
        assert_eq!(
            x.state,
            if before.task.state.is_ended() { before.task.state } else { State::Added },
            "{n}"
        );
        let mut expected = before.task.clone();
        (expected.state, expected.notified, expected.ended_lease_clock) =
            (x.state, x.state.is_ended(), x.ended_lease_clock);
        assert_eq!(x, expected, "{n}");
    }
    let before = here.rows().await;
    let again = import(&here, moved).await.unwrap();
    assert_eq!(again, ids[..4].iter().map(|&id| Added::Again(id)).collect::<Vec<_>>());
    assert_eq!(here.rows().await, before);
    for (counted, expected) in [
        (Counted::EverAdded, 4),
        (Counted::EverDone, 1),
        (Counted::EverFailed, 1),
        (Counted::Now(State::Done), 1),
        (Counted::Now(State::Added), 2),
    ] {
        assert_eq!(here.counted(counted).await, expected, "{counted}");
    }
    // The task has failed once and has two attempts.
    let mut worker = other.worker_of(&["default", "k"]);
    worker.tidy().await;
    assert_eq!(
        here.states(&ids[..4]).await,
        [State::Done, State::Scheduled, State::Scheduled, State::Failed]
    );
    assert_eq!(here.touch(Verb::Release, [ids[1]]).await, [ids[1]]);
    let (leased, token) = worker.one().await;
    let x = here.row(leased).await;
    assert_eq!((leased, x.failures, token.attempt), (ids[1], 1, 2));
    worker.end((leased, token), Outcome::Error("again".into())).await;
    let x = here.row(leased).await;
    assert_eq!((x.state, x.failures, x.history.len()), (State::Failed, 2, 1));
}

/// Imported tasks wait for imported upstreams and get their results.
pub async fn imported_tasks_wait_for_their_upstreams(handles: Handles) {
    let (there, _) = usual(handles.clone()).await;
    let (here, other) = usual(handles).await;
    let ended = there.add_one(task()).await;
    let mut worker = there.worker();
    let run = worker.one().await;
    worker.end(run, Outcome::Done(Json::new("1").unwrap())).await;
    let up = there.add_one(task()).await;
    let down = there.add_one(behind([ended, up], OnFailure::Wait)).await;
    let alone = take(&there, &[down]).await;
    let error = import(&here, alone).await.unwrap_err();
    assert_eq!(error.kind(), StateErrorKind::NotFound);
    assert!(error.to_string().contains("which is not stored here"), "{error}");
    assert!(here.rows().await.is_empty(), "all or none");
    import(&here, take(&there, &[ended, up, down]).await).await.unwrap();
    let mut worker = other.worker();
    let run = worker.one().await;
    assert_eq!((run.0, here.state(down).await), (up, State::Waiting));
    worker.end(run, done()).await;
    assert_eq!(worker.take(9).await, [down]);
}

/// A moved task is cancelled at its origin; its downstreams still wait. A retry restores it.
pub async fn moved_tasks_leave_nothing_behind(handles: Handles) {
    let (one, other) = usual(handles).await;
    let ids = one.add([task(), with_key("k"), with_key("k"), task(), named("n")]).await;
    let down = one.add_one(behind([ids[3]], OnFailure::Cancel)).await;
    let mut worker = other.worker();
    let run: (TaskId, Token) = worker.one().await;
    assert_eq!(run.0, ids[0]);
    let to = Verb::Move(Label::new("elsewhere").unwrap());
    assert_eq!(
        one.touch(to.clone(), [ids[0], ids[1], ids[3], ids[4]]).await,
        [ids[1], ids[3], ids[4]],
        "one runs"
    );
    let states = [State::Leased, State::Cancelled, State::Ready, State::Cancelled, State::Cancelled];
    assert_eq!(one.states(&ids).await, states);
    let x = one.row(ids[3]).await;
    assert_eq!(x.error.as_deref(), Some("it was moved to elsewhere"));
    assert_eq!(x.tags, [Tag::new(MOVING).unwrap()]);
    worker.tidy().await;
    assert_eq!(one.state(down).await, State::Waiting);
    one.add_one(named("n")).await;
    assert_eq!(one.touch(to.clone(), [ids[3]]).await, [], "it has left");
    // Retried at the origin.
    assert_eq!(one.touch(Verb::Retry, [ids[3]]).await, [ids[3]]);
    assert_eq!(one.row(ids[3]).await.tags, []);
    worker.end(run, done()).await;
    let runs = worker.take(9).await;
    assert!(runs.contains(&ids[3]) && !runs.contains(&down), "{runs:?}");
    assert_eq!(one.try_touch(touch(to, Selector::ids([id()]))).await.unwrap().ids, []);
    let x = one.row(ids[2]).await;
    assert_eq!((x.key, x.state), (Some(key("k")), State::Leased));
}

/// A task that has arrived is not retried at its origin: it would run twice.
pub async fn a_moved_task_is_retried_there_alone(handles: Handles) {
    let (one, _) = usual(handles).await;
    let ids = one.add([task(), task()]).await;
    let away = Verb::Move(Label::new("elsewhere").unwrap());
    assert_eq!(one.touch(away, ids.clone()).await, ids);
    // The second task has arrived.
    one.touch(Verb::Untag(Tag::new(MOVING).unwrap()), [ids[1]]).await;
    let retried = one.try_touch(touch(Verb::Retry, Selector::default())).await.unwrap();
    assert_eq!((retried.ids, retried.kept), (vec![ids[0]], vec![]));
    assert_eq!(one.state(ids[1]).await, State::Cancelled);
}

/// A task is not moved while another task of its key runs: both would run at once.
pub async fn a_key_that_runs_is_not_moved(handles: Handles) {
    let (one, other) = usual(handles).await;
    let ids = one.add([with_key("k"), with_key("k"), with_key("free"), task()]).await;
    let mut worker = other.worker();
    worker.tidy().await;
    let run = worker.one().await;
    assert_eq!(run.0, ids[0]);
    let away = Verb::Move(Label::new("elsewhere").unwrap());
    let all = touch(away.clone(), Selector::default());
    let touched = one.try_touch(all.clone()).await.unwrap();
    assert_eq!((touched.ids, touched.kept), (vec![ids[2], ids[3]], vec![ids[1]]));
    let limit = async |name: &str| match other.read(Read::KeyLimit(key(name))).await {
        Reply::KeyLimit(limit) => limit,
        other => panic!("{other:?}"),
    };
    assert_eq!(limit("k").await, None);
    one.change(Change::Key(key("k"), Some(0))).await;
    assert_eq!(limit("k").await, Some(0));
    worker.end(run, done()).await;
    assert_eq!(worker.take(9).await, [], "the key is paused");
    let touched = one.try_touch(all).await.unwrap();
    assert_eq!((touched.ids, touched.kept), (vec![ids[1]], vec![]));
}
