//! Events for followers.

use std::{collections::BTreeMap, time::Duration};

use interval_queue_contract::Micros;
use interval_queue_task_contract::{
    Command, Event, Follow, Followed, KEEP_EVENTS, Mark, OnFailure, Outcome, Reply, State, TaskId, Verb,
};
use tokio::task::JoinSet;

use crate::client::{Client, Handles, behind, done, task, usual};

async fn follow(client: &Client, after: Option<Mark>, most: u32) -> Followed {
    match client.apply(Command::Follow(Follow { after, most })).await.unwrap() {
        Reply::Followed(followed) => followed,
        other => panic!("a follower was answered by {other:?}"),
    }
}

/// The task of each event and its states before and after.
fn states(events: &[Event]) -> Vec<(TaskId, Option<State>, Option<State>)> {
    events.iter().map(|event| (event.task, event.from, event.to)).collect()
}

/// From the first follow on, each state change is reported once, in order, with run and error.
pub async fn events_report_the_changes_of_tasks(handles: Handles) {
    use State::{Added, Cancelled, Done, Failed, Leased, Ready, Waiting};
    let (one, other) = usual(handles).await;
    let before = one.add_one(task()).await;
    let begun = follow(&other, None, 1).await;
    assert_eq!((begun.events, begun.missed), (Vec::new(), false));
    let up = one.add_one(task()).await;
    let down = other.add_one(behind([up], OnFailure::Cancel)).await;
    let mut worker = one.worker();
    worker.tidy().await;
    let runs = worker.lease(2).await;
    assert_eq!(runs.iter().map(|run| run.task.id).collect::<Vec<_>>(), [before, up]);
    worker.end((before, runs[0].task.token), done()).await;
    worker.end((up, runs[1].task.token), Outcome::Released).await;
    let run = worker.one().await;
    worker.end(run, Outcome::Failed("it cannot be".into())).await;
    worker.tidy().await;
    one.touch(Verb::Purge, [before]).await;
    let followed = follow(&one, Some(begun.mark), 1_000).await;
    assert!(!followed.missed);
    let expected = [
        (up, None, Some(Ready)),
        (down, None, Some(Added)),
        (down, Some(Added), Some(Waiting)),
        (before, Some(Ready), Some(Leased)),
        (up, Some(Ready), Some(Leased)),
        (before, Some(Leased), Some(Done)),
        (up, Some(Leased), Some(Ready)),
        (up, Some(Ready), Some(Leased)),
        (up, Some(Leased), Some(Failed)),
        (down, Some(Waiting), Some(Cancelled)),
        (before, Some(Done), None),
    ];
    assert_eq!(states(&followed.events), expected);
    let failed = &followed.events[8];
    assert_eq!((failed.attempt, failed.worker), (2, Some(worker.id)));
    assert_eq!(failed.error.as_deref(), Some("it cannot be"));
    let others = followed.events.iter().filter(|event| ![Some(Failed), Some(Cancelled)].contains(&event.to));
    assert!(others.clone().all(|event| event.error.is_none()), "{followed:?}");
    assert!(followed.events.windows(2).all(|two| two[0].at <= two[1].at), "{followed:?}");
    assert_eq!(follow(&other, Some(followed.mark), 1_000).await.events, []);
    // A mark ahead of the events: the store was rolled back.
    let ahead = Mark { number: followed.mark.number + 1, ..followed.mark };
    let back = follow(&one, Some(ahead), 9).await;
    assert_eq!((back.events, back.mark.number, back.missed), (Vec::new(), followed.mark.number, true));
    // Small pages give the same events.
    let (mut pages, mut mark) = (Vec::new(), begun.mark);
    loop {
        let page = follow(&other, Some(mark), 2).await;
        assert!(page.events.len() <= 2 && !page.missed);
        mark = page.mark;
        if page.events.is_empty() {
            break;
        }
        pages.extend(page.events);
    }
    assert_eq!(pages, followed.events);
}

/// Events of concurrent processes are complete, unique and in order.
pub async fn events_of_many_tasks_are_reported_in_order(handles: Handles) {
    let (one, other) = usual(handles).await;
    let mut mark = follow(&one, None, 1).await.mark;
    let mut crew = JoinSet::new();
    for n in 0..4 {
        let client = [&one, &other][n % 2].clone();
        crew.spawn(async move {
            for _ in 0..25 {
                client.add((0..2).map(|_| task())).await;
            }
        });
    }
    for n in 0..4 {
        let client = [&one, &other][n % 2].clone();
        crew.spawn(async move {
            let mut worker = client.worker();
            let mut idle = 0;
            while idle < 20 {
                let leased = worker.lease(3).await;
                idle = if leased.is_empty() { idle + 1 } else { 0 };
                for run in leased {
                    worker.end((run.task.id, run.task.token), done()).await;
                }
            }
        });
    }
    let mut known: BTreeMap<TaskId, State> = BTreeMap::new();
    let mut ended = false;
    loop {
        let followed = follow(&other, Some(mark), 7).await;
        assert!(!followed.missed);
        mark = followed.mark;
        for (id, from, to) in states(&followed.events) {
            let to = to.unwrap_or_else(|| panic!("nobody has purged {id}"));
            assert_eq!(known.insert(id, to), from, "task {id} was reported to be {to}");
        }
        if followed.events.is_empty() {
            if ended {
                break;
            }
            ended = crew.is_empty();
            while crew.try_join_next().transpose().unwrap().is_some() {}
            // Lets other tasks run on a single thread.
            tokio::task::yield_now().await;
        }
    }
    let stored = one.rows().await.into_iter().map(|row| (row.id, row.state));
    assert_eq!(stored.collect::<BTreeMap<_, _>>(), known);
    assert_eq!(known.len(), 200);
}

/// A late follower is notified of missed events, which are kept for a bounded time.
pub async fn a_follower_that_was_away_is_notified_of_gaps(handles: Handles) {
    let (one, other) = usual(handles).await;
    let minute = Duration::from_secs(60);
    let begun = follow(&one, None, 1).await.mark;
    one.pass(minute * 3 / 4).await;
    let first = one.add_one(task()).await;
    let followed = follow(&other, Some(begun), 9).await;
    assert_eq!((states(&followed.events).len(), followed.missed), (1, false));
    // Long without followers: no events are recorded.
    one.pass(minute * 3 / 2 + Duration::from_secs(1)).await;
    one.add_one(task()).await;
    let late = follow(&one, Some(followed.mark), 9).await;
    assert_eq!((states(&late.events), late.missed), (Vec::new(), true));
    let again = one.add_one(task()).await;
    let followed = follow(&one, Some(late.mark), 9).await;
    assert_eq!((states(&followed.events), followed.missed), (vec![(again, None, Some(State::Ready))], false));
    // With a follower events are recorded, but old ones deleted.
    let mut mark = followed.mark;
    for _ in 0..4 {
        one.pass(minute * 3 / 4).await;
        mark = follow(&other, Some(mark), 9).await.mark;
    }
    let last = one.add_one(task()).await;
    let old = follow(&one, Some(followed.mark), 9).await;
    assert!(old.missed && followed.mark.at + KEEP_EVENTS < old.mark.at);
    let all = follow(&one, Some(Mark { number: 0, at: Micros::ZERO }), 9).await;
    assert_eq!(states(&all.events), [(last, None, Some(State::Ready))], "{first} and {again} were long ago");
    // Long without followers: a worker deletes all events.
    one.pass(minute * 4).await;
    let mut worker = one.worker();
    worker.tidy().await;
    let all = follow(&one, Some(Mark { number: 0, at: Micros::ZERO }), 9).await;
    assert_eq!((all.events, all.missed), (Vec::new(), true));
}
