//! python-task-queue: a directory, a file for each task.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures::{StreamExt, TryStreamExt, stream};
use interval_queue_tasks::{
    Context, Order, Selector, State, TaskError, TaskId, TaskQueue, Verb, Worker, contract::Counted,
};
use tokio::time::sleep;

use super::{Runs, add, counted, number, state};
use crate::common::{finish, ms, secs, spawned, stored};

everywhere!(what_many_add_lazily_is_counted_exactly);
async fn what_many_add_lazily_is_counted_exactly(one: TaskQueue, other: TaskQueue) {
    let adders = (0..4).map(|adder| {
        let queue = if adder % 2 == 0 { one.clone() } else { other.clone() };
        tokio::spawn(async move {
            let tasks = stream::iter(adder * 300..(adder + 1) * 300).map(number);
            queue.add_stream(tasks).try_fold(0, async |count, _| Ok(count + 1)).await.unwrap()
        })
    });
    let added: u32 = futures::future::join_all(adders).await.into_iter().map(Result::unwrap).sum();
    assert_eq!(added, 1_200);
    assert_eq!(counted(&one, Counted::EverAdded).await, 1_200);
    let runs = Runs::default();
    let (here, there) = tokio::join!(finish(runs.worker(&one).jobs(8)), finish(runs.worker(&other).jobs(8)));
    assert_eq!(here.done + there.done, 1_200);
    assert_eq!(counted(&other, Counted::EverDone).await, 1_200);
    assert_eq!(counted(&other, Counted::Now(State::Done)).await, 1_200);
    assert!(runs.times().values().all(|times| *times == 1));
}

everywhere!(all_that_is_leased_is_released_at_once);
async fn all_that_is_leased_is_released_at_once(one: TaskQueue, other: TaskQueue) {
    let ids = add(&one, (0..3).map(number)).await;
    let began = Arc::new(AtomicUsize::new(0));
    let count = began.clone();
    let holds = Worker::builder(&one).jobs(3).lease(secs(2)).handler("n", move |context: Context, _: u32| {
        count.fetch_add(1, Ordering::Relaxed);
        async move {
            context.cancelled().await;
            Err::<(), _>(TaskError::released())
        }
    });
    let holds = holds.build().unwrap();
    let (handle, ended) = (holds.handle(), spawned(holds));
    while began.load(Ordering::Relaxed) < 3 {
        sleep(ms(5)).await;
    }
    other.pause().await.unwrap();
    let leased = Selector::states([State::Leased]);
    assert_eq!(other.change(&leased, Verb::Release, false).await.unwrap().ids.len(), 3);
    while counted(&other, Counted::Now(State::Leased)).await > 0 {
        sleep(ms(5)).await;
    }
    handle.stop();
    ended.await.unwrap();
    other.resume().await.unwrap();
    assert_eq!(finish(Runs::default().worker(&other)).await.done, 3);
    for id in ids {
        assert_eq!(stored(&other, id).await.task.failures, 0, "it counts nothing");
    }
}

everywhere!(what_is_not_there_is_removed_without_an_error);
async fn what_is_not_there_is_removed_without_an_error(one: TaskQueue, _: TaskQueue) {
    let nobody = Selector::ids([TaskId::named("nobody")]);
    add(&one, [number(1)]).await;
    for verb in [Verb::Cancel, Verb::Release, Verb::Retry, Verb::Purge] {
        assert_eq!(one.change(&nobody, verb, false).await.unwrap().ids, []);
    }
}

everywhere!(what_a_dead_worker_had_comes_again_as_often_as_it_may);
async fn what_a_dead_worker_had_comes_again_as_often_as_it_may(one: TaskQueue, other: TaskQueue) {
    let ids = add(&one, [number(1), number(2).max_attempts(1)]).await;
    let dies = Worker::builder(&one).jobs(2).lease(secs(1));
    let dies = dies.handler("n", async |_: Context, _: u32| {
        std::future::pending::<()>().await;
        Ok::<_, TaskError>(())
    });
    let dies = spawned(dies.build().unwrap());
    while counted(&other, Counted::Now(State::Leased)).await < 2 {
        sleep(ms(5)).await;
    }
    dies.abort();
    assert_eq!(finish(Runs::default().worker(&other)).await.done, 1);
    let again = stored(&other, ids[0]).await.task;
    assert_eq!((again.state, again.failures, again.token.attempt), (State::Done, 1, 2));
    let once = stored(&other, ids[1]).await.task;
    assert_eq!((once.state, once.failures), (State::Failed, 1));
    assert!(once.error.unwrap().contains("was not heard of"));
}

everywhere!(a_loop_ends_when_there_is_nothing_when_it_is_told_or_after_so_many);
async fn a_loop_ends_when_there_is_nothing_when_it_is_told_or_after_so_many(
    one: TaskQueue,
    other: TaskQueue,
) {
    let runs = Runs::default();
    assert_eq!(finish(runs.worker(&one)).await.done, 0, "there is nothing");
    add(&one, (0..20).map(number)).await;
    let seen = Arc::new(AtomicUsize::new(0));
    let count = seen.clone();
    let five = Worker::builder(&other).jobs(1).handler("n", move |_: Context, n: u32| {
        count.fetch_add(1, Ordering::Relaxed);
        async move { Ok::<_, TaskError>(n) }
    });
    let five = five.build().unwrap();
    let until = async {
        while seen.load(Ordering::Relaxed) < 5 {
            sleep(ms(1)).await;
        }
    };
    let done = five.run_until(until).await.unwrap().done;
    assert_eq!(done, seen.load(Ordering::Relaxed) as u64, "what has begun ends");
    assert!((5..=20).contains(&done), "{done}");
    assert_eq!(finish(runs.worker(&one)).await.done, 20 - done);
}

everywhere!(tasks_are_looked_at_without_being_leased);
async fn tasks_are_looked_at_without_being_leased(one: TaskQueue, other: TaskQueue) {
    let ids = add(&one, (0..5).map(number)).await;
    let page = other.page(&Selector::default(), Order::Oldest, 9, true).await.unwrap();
    let payloads: Vec<&str> =
        page.tasks.iter().map(|stored| stored.payload.as_ref().unwrap().as_str()).collect();
    assert_eq!(payloads, ["0", "1", "2", "3", "4"]);
    for id in ids {
        assert_eq!(state(&one, id).await, State::Ready);
    }
}
