//! twext: the work queue of a calendar server.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use interval_queue_tasks::{Added, Context, OnConflict, State, Task, TaskError, TaskQueue, Worker};
use tokio::time::sleep;

use super::{Runs, add, number, state};
use crate::common::{Alive, finish, ms, secs, stored};

everywhere!(items_of_a_group_never_run_at_once_and_wait_for_no_poll);
async fn items_of_a_group_never_run_at_once_and_wait_for_no_poll(one: TaskQueue, other: TaskQueue) {
    add(&one, (0..20).map(|n| number(n).key("calendar 7"))).await;
    let (alive, met) = (Alive::default(), Arc::new(AtomicUsize::new(0)));
    let worker = |queue| {
        let (alive, met) = (alive.clone(), met.clone());
        Worker::builder(queue).jobs(4).handler("n", move |_: Context, n: u32| {
            let guard = alive.begin();
            met.fetch_max(alive.count(), Ordering::Relaxed);
            async move {
                sleep(ms(5)).await;
                drop(guard);
                Ok::<_, TaskError>(n)
            }
        })
    };
    let (here, there) = tokio::join!(finish(worker(&one)), finish(worker(&other)));
    assert_eq!((here.done + there.done, met.load(Ordering::Relaxed)), (20, 1));
}

everywhere!(a_second_one_of_a_kind_is_ignored_or_takes_its_place);
async fn a_second_one_of_a_kind_is_ignored_or_takes_its_place(one: TaskQueue, other: TaskQueue) {
    let single = |n: u32| number(n).unique("single");
    let id = add(&one, [single(1)]).await[0];
    assert_eq!(other.add(single(2)).await.unwrap(), Added::Kept(id));
    assert_eq!(other.add(single(3).on_conflict(OnConflict::Replace)).await.unwrap(), Added::Replaced(id));
    let runs = Runs::default();
    assert_eq!(finish(runs.worker(&other)).await.done, 1);
    assert_eq!(runs.all(), [3]);
}

everywhere!(one_that_cannot_be_read_or_panics_stops_no_other);
async fn one_that_cannot_be_read_or_panics_stops_no_other(one: TaskQueue, other: TaskQueue) {
    let poison = Task::new("n", "no number").max_attempts(1).priority(9);
    let panics = Task::new("panics", &()).max_attempts(1).priority(9);
    let ids = add(&one, [poison, panics, number(1), number(2)]).await;
    let runs = Runs::default();
    let worker = runs
        .worker(&other)
        .handler("panics", async |_: Context, (): ()| -> Result<(), TaskError> { panic!("on purpose") });
    assert_eq!(finish(worker).await.done, 2);
    assert_eq!(runs.all(), [1, 2]);
    for (id, says) in [(ids[0], "payload"), (ids[1], "on purpose")] {
        let x = stored(&one, id).await.task;
        assert_eq!(x.state, State::Failed);
        assert!(x.error.as_ref().unwrap().contains(says), "{:?}", x.error);
    }
}

everywhere!(one_that_runs_for_long_is_not_given_out_twice);
async fn one_that_runs_for_long_is_not_given_out_twice(one: TaskQueue, other: TaskQueue) {
    let id = add(&one, [number(1)]).await[0];
    let begun = Arc::new(AtomicUsize::new(0));
    let worker = |queue| {
        let begun = begun.clone();
        Worker::builder(queue).lease(secs(1)).handler("n", move |_: Context, n: u32| {
            begun.fetch_add(1, Ordering::Relaxed);
            async move {
                sleep(ms(2_500)).await;
                Ok::<_, TaskError>(n)
            }
        })
    };
    let (here, there) = tokio::join!(finish(worker(&one)), finish(worker(&other)));
    let token = stored(&one, id).await.task.token;
    // A host that stands still for longer than a lease may have lost it, and then it is seen.
    assert_eq!((here.done + there.done, begun.load(Ordering::Relaxed)), (1, token.attempt as usize));
    assert_eq!(stored(&one, id).await.task.failures, token.attempt - 1);
}

everywhere!(who_only_adds_runs_nothing);
async fn who_only_adds_runs_nothing(one: TaskQueue, other: TaskQueue) {
    let id = add(&one, [number(1)]).await[0];
    sleep(ms(50)).await;
    assert_eq!(state(&other, id).await, State::Ready);
    assert_eq!(other.workers().await.unwrap(), []);
}

everywhere!(one_run_covers_all_that_wait_in_a_group);
async fn one_run_covers_all_that_wait_in_a_group(one: TaskQueue, other: TaskQueue) {
    let (items, runs) = (Arc::<Mutex<Vec<u32>>>::default(), Arc::<Mutex<Vec<Vec<u32>>>>::default());
    let add_item = {
        let items = items.clone();
        move |queue: TaskQueue, n: u32| {
            items.lock().unwrap().push(n);
            let task = Task::new("group", &()).key("group 7").unique_until_leased("group 7");
            async move { queue.add(task).await.unwrap() }
        }
    };
    for n in 0..5 {
        add_item(one.clone(), n).await;
    }
    let worker = Worker::builder(&other).handler("group", {
        let runs = runs.clone();
        move |context: Context, (): ()| {
            let all = std::mem::take(&mut *items.lock().unwrap());
            let (runs, add_item, one) = (runs.clone(), add_item.clone(), one.clone());
            async move {
                let is_first = runs.lock().unwrap().is_empty();
                runs.lock().unwrap().push(all);
                for n in (5..8).filter(|_| is_first) {
                    add_item(one.clone(), n).await;
                }
                Ok::<_, TaskError>(context.attempt())
            }
        }
    });
    assert_eq!(finish(worker).await.done, 2);
    assert_eq!(*runs.lock().unwrap(), [(0..5).collect::<Vec<_>>(), (5..8).collect()]);
}
