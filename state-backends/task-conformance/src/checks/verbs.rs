//! Verbs on selected tasks.

use interval_queue_contract::StateErrorKind;
use interval_queue_task_contract::{
    ChangeTasks, Counted, MAX_TAGS, NewTask, OnFailure, Order, Outcome, Selector, State, Stop, Tag, TaskId,
    Verb,
};

use crate::client::{
    Client, Handles, behind, done, in_seconds, key, kind, refusal, seconds, task, touch, usual, with_key,
};

/// A waiting task is cancelled at once; a running one is notified and ends as cancelled.
pub async fn cancelled_tasks_end(handles: Handles) {
    let (one, other) = usual(handles).await;
    let ids = one.add([task(), task(), task(), NewTask { not_before: in_seconds(99), ..task() }]).await;
    let mut worker = other.worker();
    let runs = worker.lease(2).await;
    assert_eq!(one.touch(Verb::Cancel, ids.clone()).await, ids);
    assert_eq!(one.states(&ids).await, [State::Leased, State::Leased, State::Cancelled, State::Cancelled]);
    let mut stop = worker.beat().await.stop;
    stop.sort_by_key(|(id, _)| *id);
    assert_eq!(stop, [(ids[0], Stop::Cancel), (ids[1], Stop::Cancel)]);
    worker.end((ids[0], runs[0].task.token), Outcome::Error("stopped".into())).await;
    worker.end((ids[1], runs[1].task.token), done()).await;
    assert_eq!(one.states(&ids[..2]).await, [State::Cancelled, State::Cancelled]);
    assert_eq!(one.touch(Verb::Cancel, ids).await, [], "what has ended stays as it is");
}

/// A worker gives a released task back without a failed attempt.
pub async fn released_tasks_go_back(handles: Handles) {
    let (one, other) = usual(handles).await;
    let id = one.add_one(task()).await;
    let mut worker = other.worker();
    let run = worker.one().await;
    assert_eq!(one.touch(Verb::Release, [id]).await, [id]);
    assert_eq!(worker.beat().await.stop, [(id, Stop::Release)]);
    worker.end(run, Outcome::Released).await;
    let x = one.row(id).await;
    assert_eq!((x.state, x.stop, x.returns, x.failures), (State::Ready, None, 0, 0));
}

/// A delayed or reprioritized task is ordered as if added so; a key goes to its most urgent task.
pub async fn reordered_tasks_take_their_places(handles: Handles) {
    let (one, other) = usual(handles).await;
    let ids = one.add([task(), task(), task(), with_key("k"), with_key("k"), with_key("k")]).await;
    assert_eq!(one.touch(Verb::Priority(3), [ids[2]]).await, [ids[2]]);
    assert_eq!(one.touch(Verb::Priority(3), [ids[1], ids[2]]).await, [ids[1]], "the other has it");
    assert_eq!(one.touch(Verb::Priority(-1), [ids[3]]).await, [ids[3]]);
    let mut worker = other.worker();
    worker.tidy().await;
    assert_eq!(one.states(&ids[3..]).await, [State::Blocked, State::Ready, State::Blocked]);
    assert_eq!(one.touch(Verb::Priority(9), [ids[5]]).await, [ids[5]]);
    assert_eq!(one.states(&ids[3..]).await, [State::Blocked, State::Blocked, State::Ready]);
    assert_eq!(one.touch(Verb::Delay(seconds(9)), [ids[5], ids[0]]).await, [ids[0], ids[5]]);
    assert_eq!(one.states(&ids[3..]).await, [State::Blocked, State::Ready, State::Scheduled]);
    let not_before = one.row(ids[0]).await.not_before;
    let order = [worker.one().await.0, worker.one().await.0, worker.run().await, worker.run().await];
    assert_eq!(order, [ids[1], ids[2], ids[4], ids[3]]);
    assert_eq!(one.touch(Verb::Delay(seconds(1)), [ids[1], ids[3]]).await, [], "one runs, one has ended");
    assert_eq!(one.touch(Verb::Priority(-5), [ids[1]]).await, [ids[1]], "the next run has it");
    assert_eq!((one.row(ids[1]).await.priority, one.state(ids[1]).await), (-5, State::Leased));
    one.live(&mut worker, std::time::Duration::from_secs(10)).await;
    assert!(one.overview().await.at >= not_before);
    assert_eq!(worker.take(9).await, [ids[5], ids[0]]);
    let wrong =
        [Verb::Delay(interval_queue_contract::Micros::MAX), Verb::Priority(101), Verb::Priority(i32::MIN)];
    for verb in wrong {
        assert_eq!(
            refusal(one.try_touch(touch(verb, Selector::ids(ids.clone()))).await),
            StateErrorKind::Invalid
        );
    }
}

/// A task that waits for its retry keeps its time at a new priority; an ordered one keeps its key.
pub async fn a_reordered_retry_keeps_its_time(handles: Handles) {
    let (one, other) = usual(handles).await;
    let ordered = || NewTask { ordered: true, ..with_key("k") };
    let ids = one.add([ordered(), ordered(), task()]).await;
    let mut worker = other.worker();
    let first = worker.one().await;
    worker.end(first, Outcome::Retry(seconds(60), "busy".into())).await;
    let before = one.row(ids[0]).await;
    one.touch(Verb::Priority(2), [ids[0]]).await;
    one.touch(Verb::Delay(seconds(5)), [ids[2]]).await;
    let after = one.row(ids[0]).await;
    let day = 24 * 3_600_000_000;
    assert_eq!(
        (after.not_before, after.due, after.state),
        (before.not_before, before.due - 2 * day, State::Scheduled)
    );
    one.touch(Verb::Delay(seconds(20)), [ids[0]]).await;
    assert_eq!(worker.take(9).await, [], "the second one waits for the first");
    one.live(&mut worker, std::time::Duration::from_secs(21)).await;
    assert_eq!(worker.take(9).await, [ids[0], ids[2]]);
}

/// Tags are added and removed, also on running and ended tasks.
pub async fn tags_come_and_go(handles: Handles) {
    let (one, other) = usual(handles).await;
    let tag = |n: usize| Tag::new(format!("t{n}")).unwrap();
    let full = || NewTask { tags: (0..MAX_TAGS).map(tag).collect(), ..task() };
    let ids = one.add([task(), task(), task(), full()]).await;
    let mut worker = other.worker();
    assert_eq!(worker.run().await, ids[0]);
    worker.one().await;
    let all = || Selector::ids(ids.clone());
    let touched = twice(&one, &touch(Verb::Tag(tag(99)), all())).await;
    assert_eq!((touched.ids, touched.kept), (ids[..3].to_vec(), vec![ids[3]]));
    let touched = twice(&one, &touch(Verb::Tag(tag(99)), all())).await;
    assert_eq!((touched.ids, touched.kept), (vec![], vec![ids[3]]));
    assert_eq!(one.states(&ids[..3]).await, [State::Done, State::Leased, State::Ready]);
    let tagged = Selector { tags: vec![tag(99)], ..Selector::default() };
    assert_eq!(twice(&one, &touch(Verb::Untag(tag(99)), tagged.clone())).await.ids, ids[..3]);
    assert_eq!(one.page(tagged, Order::Oldest, 9).await.tasks, []);
    assert_eq!(one.touch(Verb::Untag(tag(7)), ids.clone()).await, [ids[3]]);
    assert_eq!(one.row(ids[3]).await.tags.len(), MAX_TAGS - 1);
}

pub(super) async fn twice(client: &Client, change: &ChangeTasks) -> interval_queue_task_contract::Touched {
    let before = client.rows().await;
    let dry = client.try_touch(ChangeTasks { dry_run: true, ..change.clone() }).await.unwrap();
    assert_eq!(client.rows().await, before, "a dry run has changed something");
    let watermark = Some(dry.watermark);
    let real = client.try_touch(ChangeTasks { watermark, ..change.clone() }).await.unwrap();
    assert_eq!(real, dry, "the dry run returned something else");
    real
}

/// A verb runs in pages up to its watermark. A dry run shows exactly the changed tasks.
pub async fn verbs_go_page_by_page(handles: Handles) {
    let (one, other) = usual(handles).await;
    let ids = one.add((0..25).map(|n| if n % 2 == 0 { task() } else { with_key("k") })).await;
    let mut worker = one.worker();
    worker.run().await;
    let mut change = ChangeTasks { limit: 7, ..touch(Verb::Cancel, Selector::default()) };
    let mut touched = Vec::new();
    loop {
        let some = twice(&other, &change).await;
        touched.extend(some.ids);
        if some.next.is_none() {
            break;
        }
        one.pass(std::time::Duration::from_millis(2)).await;
        one.add_one(task()).await;
        change = ChangeTasks { after: some.next, watermark: Some(some.watermark), ..change };
    }
    assert_eq!(touched, ids[1..]);
    assert_eq!(
        one.page(Selector::states([State::Ready]), Order::Oldest, 99).await.tasks.len(),
        3,
        "added since"
    );
    for verb in [Verb::Retry, Verb::Release, Verb::Cancel, Verb::Retry, Verb::Purge] {
        twice(&other, &touch(verb, Selector::default())).await;
    }
    let outcome = one.try_touch(ChangeTasks { limit: 0, ..change }).await;
    assert_eq!(refusal(outcome), StateErrorKind::Invalid);
}

/// Each condition of a selector works; pages are in the order of adding.
pub async fn selectors_select(handles: Handles) {
    let (one, other) = usual(handles).await;
    let tag = |text: &str| Tag::new(text).unwrap();
    let ids = one
        .add([
            NewTask { kind: kind("a"), tags: vec![tag("x"), tag("y")], ..task() },
            NewTask { kind: kind("b"), tags: vec![tag("y")], ..with_key("k") },
            NewTask { kind: kind("b"), ..crate::client::named("n") },
            NewTask { kind: kind("a"), ..with_key("K") },
        ])
        .await;
    let mut worker = one.worker_of(&["a"]);
    let run = worker.one().await;
    worker.end(run, Outcome::Failed("100% _wrong_\\".into())).await;
    let run = worker.one().await;
    let all = Selector::default;
    let has_key = |name: &str| Some(key(name));
    let added = one.row(ids[0]).await.added;
    let cases: Vec<(Selector, Vec<usize>)> = vec![
        (all(), vec![0, 1, 2, 3]),
        (Selector::ids([ids[2], ids[0], ids[2]]), vec![0, 2]),
        (Selector { kinds: vec![kind("b"), kind("c")], ..all() }, vec![1, 2]),
        (Selector::states([State::Failed, State::Leased]), vec![0, 3]),
        (Selector { key: has_key("k"), ..all() }, vec![1]),
        (Selector { unique: has_key("n"), ..all() }, vec![2]),
        (Selector { tags: vec![tag("y")], ..all() }, vec![0, 1]),
        (Selector { tags: vec![tag("y")], kinds: vec![kind("a")], ..all() }, vec![0]),
        (Selector { tags: vec![tag("y"), tag("x")], ..all() }, vec![0]),
        (Selector { tags: vec![tag("y"), tag("z")], ..all() }, vec![]),
        (Selector { schedule: has_key("tick"), ..all() }, vec![]),
        (Selector { id_suffix: Some(ids[1].to_string()[9..].to_owned()), ..all() }, vec![1]),
        (Selector { payload: Some("nul".into()), kinds: vec![kind("b")], ..all() }, vec![1, 2]),
        (Selector { payload: Some("%".into()), ..all() }, vec![]),
        (Selector { worker: Some(worker.id), states: vec![State::Leased], ..all() }, vec![3]),
        (Selector { error: Some("% _w".into()), ..all() }, vec![0]),
        (Selector { error: Some("_100".into()), ..all() }, vec![]),
        (Selector { added_before: Some(added), ..all() }, vec![]),
        (Selector { added_from: Some(added), ..all() }, vec![0, 1, 2, 3]),
        (Selector { ended_from: Some(interval_queue_contract::Micros::new(1)), ..all() }, vec![0]),
        (Selector { ended_from: Some(interval_queue_contract::Micros::MAX), ..all() }, vec![]),
        (Selector { ended_before: Some(interval_queue_contract::Micros::MAX), ..all() }, vec![0]),
    ];
    for (selector, expected) in cases {
        let expected: Vec<TaskId> = expected.into_iter().map(|n| ids[n]).collect();
        let mut found = Vec::new();
        let mut after = Some(Order::Oldest.start());
        while let Some(from) = after {
            let page = other.page(selector.clone(), from, 2).await;
            found.extend(page.tasks.iter().map(|stored| stored.task.id));
            after = page.next;
        }
        assert_eq!(found, expected, "{selector:?}");
    }
    worker.end(run, done()).await;
}

/// Only the id of a purged task is kept.
pub async fn purged_tasks_are_forgotten(handles: Handles) {
    let (one, other) = usual(handles).await;
    let up = one.add_one(task()).await;
    let down = one.add_one(behind([up], OnFailure::Cancel)).await;
    let mut worker = one.worker();
    assert_eq!([worker.run().await, worker.run().await], [up, down]);
    assert_eq!(other.touch(Verb::Purge, [down]).await, [down]);
    let stored = one.stored(down).await;
    assert_eq!((stored.task.state, stored.payload, stored.result), (State::Purged, None, None));
    assert_eq!(
        one.page(Selector::default(), Order::Oldest, 9).await.tasks.len(),
        1,
        "purged ones are found only by name"
    );
    assert_eq!(one.counted(Counted::Now(State::Purged)).await, 1);
    assert_eq!(one.touch(Verb::Retry, [down]).await, []);
}

/// A cancelled flow is purged at once, whatever its tasks waited for.
pub async fn a_cancelled_flow_is_purged(handles: Handles) {
    let (one, other) = usual(handles).await;
    let mut ids = one.add([task(), task()]).await;
    ids.push(one.add_one(behind(ids.clone(), OnFailure::Cancel)).await);
    let mut worker = one.worker();
    worker.tidy().await;
    one.touch(Verb::Cancel, ids.clone()).await;
    worker.tidy().await;
    let touched = twice(&other, &touch(Verb::Purge, Selector::default())).await;
    assert_eq!((&touched.ids, touched.kept), (&ids, vec![]));
    assert_eq!(one.states(&ids).await, [State::Purged; 3]);
}

/// A live task keeps its upstreams. An ended one is retried without their results.
pub async fn upstreams_of_live_tasks_are_not_purged(handles: Handles) {
    let (one, other) = usual(handles).await;
    let ups = one.add([task(), task()]).await;
    let down = one.add_one(behind(ups.clone(), OnFailure::Cancel)).await;
    let mut worker = one.worker();
    worker.run().await;
    worker.run().await;
    let run = worker.one().await;
    let touched = twice(&other, &touch(Verb::Purge, Selector::default())).await;
    assert_eq!((touched.ids, &touched.kept), (vec![], &ups));
    worker.end(run, Outcome::Failed("no".into())).await;
    assert_eq!(other.touch(Verb::Purge, ups.clone()).await, ups);
    assert_eq!(one.touch(Verb::Retry, [down]).await, [down]);
    assert_eq!(worker.run().await, down);
}
