//! What a worker has room for, and what it takes under load.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU32, Ordering},
};

use interval_queue_tasks::{Context, Load, Task, TaskError, Why, Worker};
use tokio::time::sleep;

use crate::common::{finish, ms, queue, secs, spawned, stored};

fn weigh(weight: u32) -> Task {
    Task::new("t", &weight).weight(weight)
}

/// Those that run together are never heavier than the capacity, but for one that is heavier alone; they begin in their
/// order.
#[tokio::test(start_paused = true)]
async fn runs_are_no_heavier_than_the_capacity() {
    let queue = queue().await;
    let weights = [2, 1, 3, 1, 4, 1, 1, 9, 1, 2, 3, 1];
    queue.add_all(weights.map(weigh)).await.unwrap();
    let (begun, most, running) =
        (Arc::<Mutex<Vec<u32>>>::default(), Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let worker = Worker::builder(&queue).capacity(4).handler("t", {
        let (begun, most) = (begun.clone(), most.clone());
        move |_: Context, weight: u32| {
            let (begun, most, running) = (begun.clone(), most.clone(), running.clone());
            async move {
                begun.lock().unwrap().push(weight);
                let now = running.fetch_add(weight, Ordering::SeqCst) + weight;
                let is_alone = now == weight;
                if !is_alone {
                    most.fetch_max(now, Ordering::SeqCst);
                }
                sleep(ms(100 * u64::from(weight))).await;
                running.fetch_sub(weight, Ordering::SeqCst);
                Ok::<_, TaskError>(())
            }
        }
    });
    assert_eq!(finish(worker).await.done, weights.len() as u64);
    assert_eq!(*begun.lock().unwrap(), weights);
    assert_eq!(most.load(Ordering::SeqCst), 4, "as much as fits runs at once");
}

/// Under load only tasks with the priority that is taken start; the others say why they wait, and start when it falls.
#[tokio::test(start_paused = true)]
async fn under_load_only_some_priorities_start() {
    let queue = queue().await;
    let tasks = [2, 1, 0, -1].map(|priority| Task::new("t", &priority).priority(priority));
    let ids = tasks.each_ref().map(Task::id);
    queue.add_all(tasks).await.unwrap();
    let load = Arc::new(AtomicU32::new(90));
    let measure = {
        let load = load.clone();
        move || f64::from(load.load(Ordering::SeqCst)) / 100.0
    };
    let begun = Arc::<Mutex<Vec<i32>>>::default();
    let worker = Worker::builder(&queue)
        .under_load(Load::measured_by(measure).above(0.5, 0).above(0.8, 2).nothing_above(0.95))
        .handler("t", {
            let begun = begun.clone();
            move |_: Context, priority: i32| {
                begun.lock().unwrap().push(priority);
                async { Ok::<_, TaskError>(()) }
            }
        });
    let worker = spawned(worker.build().unwrap());
    let seen = || begun.lock().unwrap().clone();
    sleep(secs(10)).await;
    assert_eq!(seen(), [2]);
    assert_eq!(stored(&queue, ids[1]).await.why, Some(Why::Load(2)));
    load.store(99, Ordering::SeqCst);
    let urgent = queue.add(Task::new("t", &100).priority(100)).await.unwrap().id();
    sleep(secs(10)).await;
    assert_eq!(seen(), [2], "nothing starts");
    assert!(matches!(stored(&queue, urgent).await.why, Some(Why::Load(_))));
    load.store(60, Ordering::SeqCst);
    sleep(secs(3)).await;
    assert_eq!(seen(), [2, 100, 1, 0]);
    assert_eq!(stored(&queue, ids[3]).await.why, Some(Why::Load(0)));
    load.store(10, Ordering::SeqCst);
    sleep(secs(3)).await;
    assert_eq!(seen(), [2, 100, 1, 0, -1]);
    worker.abort();
}

#[tokio::test(start_paused = true)]
async fn a_load_that_makes_no_sense_is_an_error() {
    let queue = queue().await;
    let worker =
        || Worker::builder(&queue).handler("t", |_: Context, (): ()| async { Ok::<_, TaskError>(()) });
    let error = worker().under_load(Load::system()).build().unwrap_err().to_string();
    assert!(error.contains("without levels"), "{error}");
    let error = worker().capacity(0).build().unwrap_err().to_string();
    assert!(error.contains("capacity 0: give at least 1"), "{error}");
    #[cfg(target_os = "linux")]
    assert!(worker().under_load(Load::system().above(0.9, 0)).build().is_ok());
}
