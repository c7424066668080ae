//! Edges that are added and removed while a task waits.

use interval_queue_contract::StateErrorKind;
use interval_queue_task_contract::{
    EdgeState, Json, MAX_CYCLE_SEARCH, NewEdge, NewTask, OnFailure, Outcome, Selector, State, TaskId, Verb,
};

use super::{graphs::inputs, verbs::twice};
use crate::client::{Client, Handles, behind, done, in_seconds, key, refusal, task, touch, usual, with_key};

fn link(up: TaskId) -> Verb {
    linked(up, OnFailure::Cancel)
}

fn linked(up: TaskId, on_failure: OnFailure) -> Verb {
    Verb::Link(NewEdge { up, name: Some(key("up")), on_failure })
}

async fn try_link(client: &Client, verb: Verb, of: impl IntoIterator<Item = TaskId>) -> (usize, usize) {
    let touched = twice(client, &touch(verb, Selector::ids(of))).await;
    (touched.ids.len(), touched.kept.len())
}

/// A linked task releases what it holds, waits, then keeps its time. Running and ended tasks stay
/// unchanged.
pub async fn a_task_is_linked_while_it_waits(handles: Handles) {
    let (one, other) = usual(handles).await;
    let up = one.add_one(NewTask { priority: 9, ..task() }).await;
    let mut worker = other.worker();
    let run = worker.one().await;
    let ended = one.add_one(task()).await;
    assert_eq!(worker.run().await, ended);
    let ids = one
        .add([
            task(),
            NewTask { not_before: in_seconds(99), ..task() },
            with_key("k"),
            with_key("k"),
            behind([up], OnFailure::Cancel),
        ])
        .await;
    worker.tidy().await;
    use State::{Blocked, Ready, Scheduled, Waiting};
    assert_eq!(one.states(&ids).await, [Ready, Scheduled, Ready, Blocked, Waiting]);
    let all = [&ids[..3], &ids[4..], &[up, ended]].concat();
    assert_eq!(try_link(&one, link(up), all.clone()).await, (3, 0), "one is linked, one runs, one has ended");
    assert_eq!(try_link(&one, link(up), all).await, (0, 0), "all are linked");
    assert_eq!(one.state(ids[3]).await, Ready, "the key of another one is free");
    worker.tidy().await;
    assert_eq!(one.states(&ids).await, [Waiting, Waiting, Waiting, Ready, Waiting]);
    assert_eq!(worker.run().await, ids[3]);
    worker.end(run, Outcome::Done(Json::of(&7).unwrap())).await;
    worker.tidy().await;
    assert_eq!(one.states(&ids).await, [Ready, Scheduled, Ready, State::Done, Ready]);
    assert_eq!(inputs(&one, ids[0]).await, [("up".into(), "7".into())]);
}

/// An edge to an ended task acts as any other.
pub async fn a_task_is_linked_to_one_that_has_ended(handles: Handles) {
    let (one, other) = usual(handles).await;
    let (good, bad) = (one.add_one(task()).await, one.add_one(task()).await);
    let mut worker = other.worker();
    assert_eq!(worker.run().await, good);
    let run = worker.one().await;
    worker.end(run, Outcome::Failed("no".into())).await;
    let later = || NewTask { not_before: in_seconds(99), ..task() };
    let ids = one.add([later(), later(), later(), later()]).await;
    worker.tidy().await;
    let verbs = [link(good), link(bad), linked(bad, OnFailure::Run), linked(bad, OnFailure::Wait)];
    for (verb, id) in verbs.into_iter().zip(&ids) {
        assert_eq!(one.touch(verb, [*id]).await, [*id]);
    }
    worker.tidy().await;
    use State::{Cancelled, Scheduled, Waiting};
    assert_eq!(one.states(&ids).await, [Scheduled, Cancelled, Scheduled, Waiting]);
    assert_eq!(one.touch(Verb::Retry, [bad]).await, [bad]);
    worker.tidy().await;
    assert_eq!(worker.run().await, bad);
    worker.tidy().await;
    assert_eq!(one.state(ids[3]).await, Scheduled);
    let unknown = one.try_touch(touch(link(task().id), Selector::ids(ids.clone()))).await;
    assert_eq!(refusal(unknown), StateErrorKind::NotFound);
    one.touch(Verb::Purge, [ids[1]]).await;
    let purged = one.try_touch(touch(link(ids[1]), Selector::ids(ids))).await;
    assert_eq!(refusal(purged), StateErrorKind::NotFound);
}

/// An unlinked task neither waits nor gets the result; without edges it waits for its time.
/// Unlinking a failed upstream lets a task continue.
pub async fn a_task_is_unlinked(handles: Handles) {
    let (one, other) = usual(handles).await;
    let ups = one.add([task(), task()]).await;
    let later = NewTask { not_before: in_seconds(99), ..behind([ups[1]], OnFailure::Cancel) };
    let ids = one
        .add([
            behind(ups.clone(), OnFailure::Cancel),
            later,
            behind([ups[1]], OnFailure::Wait),
            behind([ups[1]], OnFailure::Cancel),
        ])
        .await;
    let mut worker = other.worker();
    assert_eq!(one.touch(Verb::Unlink(ups[1]), [ids[1]]).await, [ids[1]], "nobody has looked at it yet");
    worker.tidy().await;
    use State::{Cancelled, Ready, Scheduled, Waiting};
    assert_eq!(one.states(&ids).await, [Waiting, Scheduled, Waiting, Waiting]);
    let runs = [worker.one().await, worker.one().await];
    assert_eq!(try_link(&one, Verb::Unlink(ups[1]), [ids[0], ids[1], ups[0]]).await, (1, 0));
    assert_eq!(one.edges(ids[0]).await, [EdgeState::Open]);
    worker.end(runs[1], Outcome::Failed("no".into())).await;
    worker.tidy().await;
    assert_eq!(one.states(&ids).await, [Waiting, Scheduled, Waiting, Cancelled]);
    assert_eq!(try_link(&one, Verb::Unlink(ups[1]), ids[2..].to_vec()).await, (2, 0));
    assert_eq!(one.touch(Verb::Retry, [ids[3]]).await, [ids[3]]);
    worker.end(runs[0], done()).await;
    worker.tidy().await;
    assert_eq!(one.states(&ids).await, [Ready, Scheduled, Ready, Ready]);
    assert_eq!(one.edges(ids[0]).await, [EdgeState::Met]);
    assert_eq!(worker.run().await, ids[0]);
    assert_eq!(one.touch(Verb::Purge, [ups[1]]).await, [ups[1]], "nobody waits for it any more");
}

/// A link that would close a cycle is rejected.
pub async fn links_make_no_cycle(handles: Handles) {
    let (one, other) = usual(handles).await;
    let first = task();
    let middle = behind([first.id], OnFailure::Run);
    let last = behind([middle.id], OnFailure::Run);
    let ids = one.add([first, middle, last, task()]).await;
    let (first, last, apart) = (ids[0], ids[2], ids[3]);
    assert_eq!(try_link(&one, link(first), [first]).await, (0, 1), "itself");
    assert_eq!(try_link(&one, link(last), [first, last]).await, (0, 2));
    assert_eq!(try_link(&one, link(last), [apart]).await, (1, 0));
    assert_eq!(try_link(&one, link(apart), [last, ids[1], first]).await, (0, 3), "it waits for the last one");
    let new = one.add([task(), behind([apart], OnFailure::Run), task()]).await;
    assert_eq!(try_link(&one, link(new[1]), [new[2]]).await, (1, 0));
    assert_eq!(try_link(&one, link(new[2]), [first]).await, (0, 1), "that waits for it by a link");
    assert_eq!(try_link(&one, link(new[0]), [first]).await, (1, 0), "it waits for nobody");
    let mut worker = other.worker();
    let mut order = Vec::new();
    loop {
        worker.tidy().await;
        match worker.lease(1).await.pop() {
            Some(run) => {
                order.push(run.task.id);
                worker.end((run.task.id, run.task.token), done()).await;
            }
            None => break,
        }
    }
    assert_eq!(order.len(), ids.len() + new.len(), "all have come to their end");
    let at = |id| order.iter().position(|&other| other == id);
    assert!(at(new[0]) < at(first) && at(last) < at(apart) && at(new[1]) < at(new[2]), "{order:?}");
}

/// The search for cycles visits a bounded number of waiting tasks.
pub async fn a_link_looks_so_far(handles: Handles) {
    let (one, _) = usual(handles).await;
    let first = task();
    let up = behind([first.id], OnFailure::Run);
    let to = link(up.id);
    one.add([first, up]).await;
    for (many, linked) in [(MAX_CYCLE_SEARCH, (1, 0)), (MAX_CYCLE_SEARCH + 1, (0, 1))] {
        let awaited = task();
        // One task waits through two others.
        let near: Vec<_> = (1..many).map(|_| behind([awaited.id], OnFailure::Run)).collect();
        let far = behind([near[7].id, near[8].id], OnFailure::Run);
        let id = one.add([awaited].into_iter().chain(near).chain([far])).await[0];
        assert_eq!(try_link(&one, to.clone(), [id]).await, linked, "{many} wait for it");
    }
}

/// A few commands link many tasks, each once.
pub async fn many_are_linked_page_by_page(handles: Handles) {
    let (one, _) = usual(handles).await;
    let first = task();
    let up = behind([first.id], OnFailure::Cancel);
    let to = up.id;
    let ids = one.add([first, up].into_iter().chain((0..50).map(|_| task()))).await;
    let mut change = touch(link(to), Selector::ids(ids[2..].to_vec()));
    let mut all = Vec::new();
    loop {
        let touched = one.try_touch(change.clone()).await.unwrap();
        all.extend(touched.ids);
        (change.after, change.watermark) = (touched.next, Some(touched.watermark));
        if touched.next.is_none() {
            break;
        }
    }
    assert_eq!(all, ids[2..]);
    assert_eq!(one.edges(ids[51]).await.len(), 1);
}
