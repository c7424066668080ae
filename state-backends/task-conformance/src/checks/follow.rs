//! What is told to those who follow.

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

/// Of each event the task, and the states before and after.
fn states(events: &[Event]) -> Vec<(TaskId, Option<State>, Option<State>)> {
    events.iter().map(|event| (event.task, event.from, event.to)).collect()
}

/// Each change of a state is told once, in order, with the run and the error that belong to it; and nothing that
/// happened before somebody followed.
pub async fn events_tell_what_becomes_of_tasks(handles: Handles) {
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
    let notified = follow(&one, Some(begun.mark), 1_000).await;
    assert!(!notified.missed);
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
    assert_eq!(states(&notified.events), expected);
    let failed = &notified.events[8];
    assert_eq!((failed.attempt, failed.worker), (2, Some(worker.id)));
    assert_eq!(failed.error.as_deref(), Some("it cannot be"));
    let others = notified.events.iter().filter(|event| ![Some(Failed), Some(Cancelled)].contains(&event.to));
    assert!(others.clone().all(|event| event.error.is_none()), "{notified:?}");
    assert!(notified.events.windows(2).all(|two| two[0].at <= two[1].at), "{notified:?}");
    assert_eq!(follow(&other, Some(notified.mark), 1_000).await.events, []);
    // A store that has forgotten what was told was rolled back.
    let ahead = Mark { number: notified.mark.number + 1, ..notified.mark };
    let back = follow(&one, Some(ahead), 9).await;
    assert_eq!((back.events, back.mark.number, back.missed), (Vec::new(), notified.mark.number, true));
    // Page by page it is the same.
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
    assert_eq!(pages, notified.events);
}

/// Of what several processes do at once nothing is left out, nor told twice, nor in an order that cannot have been.
pub async fn events_of_many_are_told_in_order(handles: Handles) {
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
        let notified = follow(&other, Some(mark), 7).await;
        assert!(!notified.missed);
        mark = notified.mark;
        for (id, from, to) in states(&notified.events) {
            let to = to.unwrap_or_else(|| panic!("nobody has purged {id}"));
            assert_eq!(known.insert(id, to), from, "task {id} was told to be {to}");
        }
        if notified.events.is_empty() {
            if ended {
                break;
            }
            ended = crew.is_empty();
            while crew.try_join_next().transpose().unwrap().is_some() {}
            // On one thread the others have their turn.
            tokio::task::yield_now().await;
        }
    }
    let stored = one.rows().await.into_iter().map(|row| (row.id, row.state));
    assert_eq!(stored.collect::<BTreeMap<_, _>>(), known);
    assert_eq!(known.len(), 200);
}

/// One who was away for so long that events may be lacking is told so, and what is kept is bounded by time.
pub async fn one_who_was_away_is_told_what_may_be_lacking(handles: Handles) {
    let (one, other) = usual(handles).await;
    let minute = Duration::from_secs(60);
    let begun = follow(&one, None, 1).await.mark;
    one.pass(minute * 3 / 4).await;
    let first = one.add_one(task()).await;
    let notified = follow(&other, Some(begun), 9).await;
    assert_eq!((states(&notified.events).len(), notified.missed), (1, false));
    // Nobody asks for long: nothing is noted any more.
    one.pass(minute * 3 / 2 + Duration::from_secs(1)).await;
    one.add_one(task()).await;
    let late = follow(&one, Some(notified.mark), 9).await;
    assert_eq!((states(&late.events), late.missed), (Vec::new(), true));
    let again = one.add_one(task()).await;
    let notified = follow(&one, Some(late.mark), 9).await;
    assert_eq!((states(&notified.events), notified.missed), (vec![(again, None, Some(State::Ready))], false));
    // Another one asks, so that it is noted, but what is old goes.
    let mut mark = notified.mark;
    for _ in 0..4 {
        one.pass(minute * 3 / 4).await;
        mark = follow(&other, Some(mark), 9).await.mark;
    }
    let last = one.add_one(task()).await;
    let old = follow(&one, Some(notified.mark), 9).await;
    assert!(old.missed && notified.mark.at + KEEP_EVENTS < old.mark.at);
    let all = follow(&one, Some(Mark { number: 0, at: Micros::ZERO }), 9).await;
    assert_eq!(states(&all.events), [(last, None, Some(State::Ready))], "{first} and {again} were long ago");
    // When nobody has asked for long, a worker forgets the rest.
    one.pass(minute * 4).await;
    let mut worker = one.worker();
    worker.tidy().await;
    let all = follow(&one, Some(Mark { number: 0, at: Micros::ZERO }), 9).await;
    assert_eq!((all.events, all.missed), (Vec::new(), true));
}
