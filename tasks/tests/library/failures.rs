//! What failed, by what the errors say, and what is done with a group of it.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use interval_queue_tasks::{
    Context, Failures, Selector, State, Task, TaskError, TaskQueue, Verb, Worker, contract::Counted,
};
use tokio::time::sleep;

use crate::common::{finish, ms, queue, spawned, stored};

/// Fails for good with its payload.
async fn fail(_: Context, text: String) -> Result<(), TaskError> {
    Err(TaskError::permanent(text))
}

/// A queue in which tasks have failed with these errors.
async fn failed(texts: impl IntoIterator<Item = impl Into<String>>) -> TaskQueue {
    let queue = queue().await;
    let tasks = texts.into_iter().enumerate();
    let kind = |n: usize| if n.is_multiple_of(2) { "even" } else { "odd" };
    queue.add_all(tasks.map(|(n, text)| Task::new(kind(n), &text.into()))).await.unwrap();
    finish(Worker::builder(&queue).jobs(100).handler("even", fail).handler("odd", fail)).await;
    queue
}

async fn failures(queue: &TaskQueue, selector: &Selector) -> Failures {
    queue.failures(selector).await.unwrap()
}

fn by_text(text: &str) -> Selector {
    Selector { error: Some(text.into()), ..Selector::states([State::Failed]) }
}

#[tokio::test(start_paused = true)]
async fn errors_that_differ_in_ids_form_one_group() {
    let queue =
        failed(["exit code 1", "row 10001 is bad", "row 10002 is bad", "row 10003 is bad", "exit code 2"])
            .await;
    let found = failures(&queue, &Selector::default()).await;
    let seen: Vec<_> = found.groups.iter().map(|group| (group.text.as_str(), group.count)).collect();
    assert_eq!(seen, [("row 10001 is bad", 3), ("exit code 1", 1), ("exit code 2", 1)]);
    assert_eq!(found.ungrouped, 0);
    let worst = &found.groups[0];
    let kinds: Vec<_> = worst.kinds.iter().map(|(kind, count)| (kind.as_str(), *count)).collect();
    assert_eq!(kinds, [("even", 1), ("odd", 2)]);
    let example = stored(&queue, worst.example).await.task;
    assert_eq!(example.error.as_deref(), Some("row 10001 is bad"));
    assert_eq!((worst.first, worst.last), (example.ended.unwrap(), example.ended.unwrap()));
    // What is not failed is not looked at, whatever the selector says.
    queue.change(&by_text("is bad"), Verb::Retry, false).await.unwrap();
    assert_eq!(failures(&queue, &Selector::states([State::Done])).await.groups.len(), 2);
    let odd = Selector { kinds: vec!["odd".to_owned().try_into().unwrap()], ..Selector::default() };
    assert_eq!(failures(&queue, &odd).await, Failures::default());
}

#[tokio::test(start_paused = true)]
async fn the_selector_of_a_group_selects_it_alone() {
    let queue = failed([
        "connection to 10.0.0.12:5432 refused",
        "connection to 10.0.0.13:5432 refused",
        "connection to 10.0.0.14:5432 lost",
        "connection to 10.0.0.15:5432 lost",
        "12345",
        "54321",
        "disk",
        "disk full",
        "a\nb",
    ])
    .await;
    let found = failures(&queue, &Selector::default()).await;
    let said: BTreeMap<_, _> = found
        .groups
        .iter()
        .map(|group| (group.text.as_str(), (group.common.as_deref(), group.selects)))
        .collect();
    let expected = BTreeMap::from([
        ("connection to 10.0.0.12:5432 refused", (Some("refused"), 2)),
        ("connection to 10.0.0.14:5432 lost", (Some("lost"), 2)),
        ("12345", (None, 0)),
        ("disk", (Some("disk"), 2)),
        ("disk full", (Some("disk full"), 1)),
        ("a\nb", (Some("a"), 1)),
    ]);
    assert_eq!(said, expected);
    for group in &found.groups {
        let Some(common) = &group.common else { continue };
        let would = queue.change(&by_text(common), Verb::Retry, true).await.unwrap();
        assert_eq!(would.ids.len() as u64, group.selects, "{group:?}");
    }
    // A text that was asked for selects which groups there are, and not what selects these.
    let found = failures(&queue, &by_text("12:5432")).await;
    let group = &found.groups[0];
    assert_eq!(
        (found.groups.len(), group.count, group.common.as_deref()),
        (1, 1, Some("connection to 10.0.0.12:5432 refused"))
    );
    assert_eq!(group.selects, 1);
}

#[tokio::test(start_paused = true)]
async fn a_hundred_of_many_texts_are_listed_and_the_rest_counted() {
    let word = |n: usize| format!("{}{}", "x".repeat(n % 40), "y".repeat(n / 40));
    let texts = (0..1_050).map(word).chain((0..3).map(|_| "frequent".to_owned()));
    let queue = failed(std::iter::once("frequent".to_owned()).chain(texts)).await;
    let found = failures(&queue, &Selector::default()).await;
    assert_eq!((found.groups.len(), found.groups[0].count), (100, 4));
    assert_eq!(found.groups.iter().map(|group| group.count).sum::<u64>() + found.ungrouped, 1_054);
}

/// How many there are, by an overview that has to add up.
async fn counts(queue: &TaskQueue) -> BTreeMap<Counted, u64> {
    let mut counts = BTreeMap::new();
    for (_, counted, count) in queue.overview().await.unwrap().counts {
        *counts.entry(counted).or_default() += count;
    }
    let of = |counted| counts.get(&counted).copied().unwrap_or(0);
    let now: u64 = State::ALL.into_iter().map(|state| of(Counted::Now(state))).sum();
    assert_eq!(now, of(Counted::EverAdded), "each task is in one state: {counts:?}");
    counts
}

async fn count(queue: &TaskQueue, counted: Counted) -> u64 {
    counts(queue).await.get(&counted).copied().unwrap_or(0)
}

const FAILED: Counted = Counted::Now(State::Failed);
const DONE: Counted = Counted::Now(State::Done);

const ALL: u64 = 50_000;

/// Of all tasks 200 fail of one cause and 100 of another; the cause is repaired and those 200 are run again, by one
/// command, while workers are busy with others. Counts are looked at all the time.
pub(crate) async fn two_hundred_of_many(queue: TaskQueue) {
    let (all, more, others) = (ALL, 2_000, 100);
    let is_repaired = Arc::new(AtomicBool::new(false));
    let ran = Arc::new(AtomicU64::new(0));
    let worker = || {
        let is_repaired = is_repaired.clone();
        let (bills, other_runs) = (ran.clone(), ran.clone());
        let handle = move |_: Context, n: u64| {
            bills.fetch_add(1, Ordering::Relaxed);
            let is_repaired = is_repaired.load(Ordering::Relaxed);
            async move {
                let failed = |what| Err(TaskError::permanent(format!("customer {}: {what}", 10_000 + n)));
                match (n % 250, n % 500) {
                    (0, _) if !is_repaired => failed("no connection"),
                    (_, 1) => failed("no such one"),
                    _ => Ok(()),
                }
            }
        };
        Worker::builder(&queue)
            .jobs(500)
            .handler("bill", handle)
            .handler("other", move |_: Context, ()| {
                other_runs.fetch_add(1, Ordering::Relaxed);
                async { Ok::<_, TaskError>(()) }
            })
            .build()
            .unwrap()
    };
    let workers = [worker(), worker()];
    let handles = workers.each_ref().map(Worker::handle);
    let ended = workers.map(spawned);
    for from in (0..all).step_by(1_000) {
        queue.add_all((from..all.min(from + 1_000)).map(|n| Task::new("bill", &n))).await.unwrap();
    }
    let until = async |counted, count| {
        while self::count(&queue, counted).await < count {
            sleep(ms(20)).await;
        }
    };
    until(DONE, all - 200 - others).await;
    until(FAILED, 200 + others).await;

    let found = failures(&queue, &Selector::default()).await;
    let groups: Vec<_> =
        found.groups.iter().map(|group| (group.count, group.common.as_deref(), group.selects)).collect();
    assert_eq!(groups, [(200, Some("no connection"), 200), (others, Some("no such one"), others)]);

    is_repaired.store(true, Ordering::Relaxed);
    queue.add_all((0..more).map(|_| Task::new("other", &()))).await.unwrap();
    let again = async { queue.change(&by_text("no connection"), Verb::Retry, false).await.unwrap() };
    let look = async {
        let mut last = 200 + others;
        // All states add up in each look, and none fails a second time.
        while count(&queue, DONE).await < all - others + more {
            let counts = counts(&queue).await;
            assert_eq!(counts[&Counted::EverFailed], 200 + others);
            assert!((others..=last).contains(&counts[&FAILED]), "{counts:?}");
            last = counts[&FAILED];
            sleep(ms(1)).await;
        }
    };
    let (touched, ()) = tokio::join!(again, look);
    assert_eq!((touched.ids.len(), touched.kept.len()), (200, 0));

    let counts = counts(&queue).await;
    assert_eq!((counts[&FAILED], counts[&DONE]), (others, all - others + more));
    assert_eq!(ran.load(Ordering::Relaxed), all + more + 200, "each ran once, and those of the cause twice");
    let found = failures(&queue, &Selector::default()).await;
    assert_eq!((found.groups.len(), found.groups[0].count, found.ungrouped), (1, others, 0));
    for id in touched.ids {
        assert_eq!(stored(&queue, id).await.task.state, State::Done);
    }
    handles.iter().for_each(|handle| handle.stop());
    for worker in ended {
        worker.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn two_hundred_of_fifty_thousand_are_retried_by_their_error() {
    two_hundred_of_many(queue().await).await;
}
