//! Workers of several queues that share their permits.

use std::sync::{Arc, Mutex, MutexGuard};

use futures::future::try_join_all;
use interval_queue_tasks::{
    Context, ErrorKind, Permits, QueueOrder, Task, TaskError, TaskQueue, Verb, Worker, WorkerBuilder, connect,
};
use tokio::time::sleep;

use crate::common::{Alive, Faulty, builder, ms, now, secs, spawned};

/// Queues of one store, by their names.
async fn queues<const N: usize>(names: [&str; N]) -> [TaskQueue; N] {
    let store = connect("memory:").await.unwrap();
    let mut queues = Vec::new();
    for name in names {
        queues.push(TaskQueue::builder(name).open(&store).await.unwrap());
    }
    queues.try_into().unwrap()
}

async fn add(queue: &TaskQueue, many: usize) {
    queue.add_all((0..many).map(|_| Task::new("t", &()))).await.unwrap();
}

/// Of which queues runs began, in their order, and how many there were at once.
#[derive(Clone, Default)]
struct Begun(Arc<Mutex<(Vec<char>, usize)>>, Alive);

impl Begun {
    fn table(&self) -> MutexGuard<'_, (Vec<char>, usize)> {
        self.0.lock().unwrap()
    }

    fn all(&self) -> String {
        self.table().0.iter().collect()
    }

    fn most(&self) -> usize {
        self.table().1
    }

    fn worker(&self, queue: &TaskQueue, permits: &Permits) -> WorkerBuilder {
        let begun = self.clone();
        let letter = queue.name().as_str().chars().next().unwrap();
        Worker::builder(queue).permits(permits).handler("t", move |_: Context, (): ()| {
            let begun = begun.clone();
            async move {
                let _alive = begun.1.begin();
                {
                    let (all, most) = &mut *begun.table();
                    all.push(letter);
                    *most = begun.1.count().max(*most);
                }
                sleep(ms(100)).await;
                Ok::<_, TaskError>(())
            }
        })
    }

    /// Runs all that there is in these queues.
    async fn finish(&self, queues: &[TaskQueue], permits: &Permits) {
        let workers: Vec<_> =
            queues.iter().map(|queue| self.worker(queue, permits).build().unwrap()).collect();
        try_join_all(workers.into_iter().map(Worker::run_until_empty)).await.unwrap();
    }
}

/// The first queue that has something is served, also what comes to it while others are; and never more run at once
/// than there are permits.
#[tokio::test(start_paused = true)]
async fn the_first_queue_goes_first() {
    let all = queues(["a", "b", "c"]).await;
    let begun = Begun::default();
    for (queue, many) in all.iter().zip([4, 3, 2]) {
        add(queue, many).await;
    }
    begun.finish(&all, &Permits::new(1, QueueOrder::InOrder)).await;
    assert_eq!((begun.all().as_str(), begun.most()), ("aaaabbbcc", 1));

    let begun = Begun::default();
    let permits = Permits::new(2, QueueOrder::InOrder);
    for queue in &all {
        drop(spawned(begun.worker(queue, &permits).build().unwrap()));
    }
    add(&all[2], 6).await;
    sleep(ms(150)).await;
    add(&all[0], 2).await;
    sleep(ms(100)).await;
    add(&all[1], 1).await;
    sleep(secs(1)).await;
    assert_eq!((begun.all().as_str(), begun.most()), ("ccccaabcc", 2));
}

/// Each queue has its turn, as long as it has something.
#[tokio::test(start_paused = true)]
async fn each_queue_has_its_turn() {
    let all = queues(["a", "b", "c"]).await;
    let begun = Begun::default();
    for (queue, many) in all.iter().zip([5, 3, 1]) {
        add(queue, many).await;
    }
    begun.finish(&all, &Permits::new(1, QueueOrder::RoundRobin)).await;
    assert_eq!(begun.all(), "abcababaa");
    // Of several free permits each queue gets its part.
    let begun = Begun::default();
    for queue in &all {
        add(queue, 20).await;
    }
    begun.finish(&all, &Permits::new(6, QueueOrder::RoundRobin)).await;
    let all = begun.all();
    assert_eq!((all.len(), begun.most()), (60, 6));
    for letter in ['a', 'b', 'c'] {
        // The one that is there first fills the permits before there are others.
        let early = all[6..36].matches(letter).count();
        assert!((8..=12).contains(&early), "{early} of {letter} among 30: {all}");
    }
}

/// A queue is chosen at random: none is served first, and none has to wait for long.
#[tokio::test(start_paused = true)]
async fn queues_are_shuffled() {
    let all = queues(["a", "b"]).await;
    let begun = Begun::default();
    for queue in &all {
        add(queue, 200).await;
    }
    begun.finish(&all, &Permits::new(1, QueueOrder::Shuffled)).await;
    let order = begun.all();
    let early = order[..200].matches('a').count();
    // So far from half only one time in a thousand million.
    assert!((57..=143).contains(&early), "{early} of 200");
    let (turns, last) = ("abab".repeat(100), order.trim_end_matches('a').trim_end_matches('b').len());
    assert!(!turns.contains(&order[..100]) && last > 200, "{order}");
}

/// A worker has its own bound beside that of all, and the permits of one that ends go to the others.
#[tokio::test(start_paused = true)]
async fn places_are_given_back() {
    let all = queues(["a", "b"]).await;
    let begun = Begun::default();
    let permits = Permits::new(4, QueueOrder::InOrder);
    for queue in &all {
        add(queue, 40).await;
    }
    let first = begun.worker(&all[0], &permits).jobs(3).build().unwrap();
    let second = begun.worker(&all[1], &permits).build().unwrap();
    let stop = first.handle();
    let (first, second) = (tokio::spawn(first.run()), tokio::spawn(second.run_until_empty()));
    sleep(ms(250)).await;
    assert_eq!(begun.all()[..12].matches('a').count(), 9, "three of four permits: {}", begun.all());
    stop.stop();
    assert!(first.await.unwrap().unwrap().done >= 9);
    sleep(ms(150)).await;
    assert_eq!(begun.1.count(), 4, "all are the other's");
    // One that is dropped in its middle gives back its permits, too.
    let dropped = tokio::time::timeout(ms(150), begun.worker(&all[0], &permits).build().unwrap().run()).await;
    assert!(dropped.is_err());
    second.await.unwrap().unwrap();
    assert_eq!(begun.most(), 4);
    assert_eq!(begun.all().matches('b').count(), 40);
}

/// One whose store fails, or hangs, holds up the others for as long as a command may take at most, and comes back.
#[tokio::test(start_paused = true)]
async fn a_queue_that_fails_holds_up_no_other() {
    let store = Faulty::new();
    let broken = store.open(builder()).await;
    let [other] = queues(["b"]).await;
    let begun = Begun::default();
    let permits = Permits::new(2, QueueOrder::InOrder);
    add(&broken, 2).await;
    add(&other, 6).await;
    store.set_down(true);
    let first = begun.worker(&broken, &permits).build().unwrap();
    let handle = first.handle();
    let first = spawned(first);
    let since = now();
    begun.finish(std::slice::from_ref(&other), &permits).await;
    assert!(since.elapsed() < secs(2), "{:?}", since.elapsed());
    store.set_down(false);
    sleep(secs(6)).await;
    assert_eq!(begun.all(), "bbbbbbtt");
    // It hangs in the middle of its turn.
    store.slow.store(3_600_000, std::sync::atomic::Ordering::Relaxed);
    add(&store.beside().open(builder()).await, 1).await;
    sleep(ms(50)).await;
    add(&other, 2).await;
    let since = now();
    begun.finish(&[other], &permits).await;
    assert!((secs(9)..secs(12)).contains(&since.elapsed()), "{:?}", since.elapsed());
    handle.stop();
    first.await.unwrap();
}

/// A queue that is to go first is waited for while its answer is on the way.
#[tokio::test(start_paused = true)]
async fn an_answer_on_the_way_is_waited_for_in_order() {
    let store = Faulty::new();
    let first = store.open(builder()).await;
    let [other] = queues(["b"]).await;
    let begun = Begun::default();
    let permits = Permits::new(1, QueueOrder::InOrder);
    add(&first, 2).await;
    add(&other, 2).await;
    store.slow.store(100, std::sync::atomic::Ordering::Relaxed);
    begun.finish(&[first, other], &permits).await;
    assert_eq!(begun.all(), "ttbb");
}

/// What waits for its slot of a pace takes up a place, and is chosen late all the same.
#[tokio::test(start_paused = true)]
async fn a_queue_with_a_pace_shares_places() {
    let store = connect("memory:").await.unwrap();
    let paced = TaskQueue::builder("p").interval(ms(300)).open(&store).await.unwrap();
    let other = TaskQueue::builder("o").open(&store).await.unwrap();
    let begun = Begun::default();
    add(&paced, 4).await;
    add(&other, 30).await;
    let since = now();
    begun.finish(&[paced, other], &Permits::new(3, QueueOrder::InOrder)).await;
    let took = since.elapsed();
    assert!(begun.most() <= 3 && took >= ms(900) && took < ms(2_500), "{took:?}: {}", begun.all());
    assert_eq!((begun.all().matches('p').count(), begun.all().matches('o').count()), (4, 30));
}

/// The place of a task that waits for its slot is its own, also while another one is chosen in its stead.
#[tokio::test(start_paused = true)]
async fn a_place_is_kept_while_another_task_is_chosen() {
    for turns in [QueueOrder::InOrder, QueueOrder::RoundRobin, QueueOrder::Shuffled] {
        let store = connect("memory:").await.unwrap();
        let other = TaskQueue::builder("o").open(&store).await.unwrap();
        let paced = TaskQueue::builder("p").interval(ms(30)).open(&store).await.unwrap();
        let begun = Begun::default();
        add(&paced, 20).await;
        add(&other, 20).await;
        begun.finish(&[other, paced], &Permits::new(1, turns)).await;
        assert_eq!((begun.all().len(), begun.most()), (40, 1), "{turns:?}: {}", begun.all());
    }
}

/// On several threads, too, never more run at once than there are permits, and none is left unused for long.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn places_hold_on_several_threads() {
    let names = ["a", "b", "c"];
    for (turns, jobs) in [(QueueOrder::InOrder, 1), (QueueOrder::RoundRobin, 2), (QueueOrder::Shuffled, 3)] {
        let all = queues(names).await;
        let (alive, most) = (Alive::default(), Arc::new(Mutex::new(0)));
        let permits = Permits::new(jobs, turns);
        let mut workers = Vec::new();
        for queue in &all {
            add(queue, 400).await;
            let (alive, most) = (alive.clone(), most.clone());
            let worker = Worker::builder(queue).permits(&permits).handler("t", move |_: Context, (): ()| {
                let (alive, most) = (alive.clone(), most.clone());
                async move {
                    let _alive = alive.begin();
                    {
                        let mut most = most.lock().unwrap();
                        *most = alive.count().max(*most);
                    }
                    tokio::task::yield_now().await;
                    Ok::<_, TaskError>(())
                }
            });
            workers.push(worker.build().unwrap().run_until_empty());
        }
        // What lies in hand without a place would wait for a heartbeat, each time.
        let ended = tokio::time::timeout(secs(60), try_join_all(workers)).await;
        let done: u64 = ended.expect("a task was left lying").unwrap().iter().map(|totals| totals.done).sum();
        assert_eq!(done, 1_200);
        assert!(*most.lock().unwrap() <= jobs as usize, "{} of {jobs} at once", most.lock().unwrap());
    }
}

/// A worker that never has its turn ends when its queue is empty, if it is to.
#[tokio::test(start_paused = true)]
async fn a_worker_without_a_turn_sees_that_nothing_is_left() {
    let all = queues(["a", "b"]).await;
    let permits = Permits::new(1, QueueOrder::InOrder);
    let begun = Begun::default();
    add(&all[0], 1_000).await;
    let first = spawned(begun.worker(&all[0], &permits).build().unwrap());
    sleep(ms(50)).await;
    let since = now();
    let idle = begun.worker(&all[1], &permits).build().unwrap().run_until_empty().await.unwrap();
    assert!(idle.done == 0 && since.elapsed() < secs(2), "{:?}", since.elapsed());
    first.abort();
}

/// A worker that stops is stopped though it has no place, and tasks are cancelled while they run as ever.
#[tokio::test(start_paused = true)]
async fn a_worker_without_a_permit_is_stopped_and_ends() {
    let all = queues(["a", "b"]).await;
    let permits = Permits::new(1, QueueOrder::InOrder);
    let long = all[0].add(Task::new("long", &())).await.unwrap().id();
    let begins = async |_: Context, (): ()| {
        sleep(secs(600)).await;
        Ok::<_, TaskError>(())
    };
    let first = Worker::builder(&all[0]).permits(&permits).handler("long", begins).build().unwrap();
    let handle = first.handle();
    let first = spawned(first);
    sleep(ms(10)).await;
    add(&all[1], 1).await;
    let begun = Begun::default();
    let second = begun.worker(&all[1], &permits).build().unwrap();
    let stop = second.handle();
    let second = spawned(second);
    sleep(secs(60)).await;
    assert_eq!(begun.all(), "", "the place is taken");
    let workers = all[1].workers().await.unwrap();
    assert_eq!(workers.len(), 1, "it is heard of all the same");
    stop.stop();
    second.await.unwrap();
    all[0].change(&interval_queue_tasks::Selector::ids([long]), Verb::Cancel, false).await.unwrap();
    sleep(secs(10)).await;
    handle.stop();
    let totals = first.await.unwrap();
    assert_eq!((totals.done, totals.released), (0, 1), "{totals:?}");
}

#[tokio::test(start_paused = true)]
async fn wrong_places_are_refused() {
    let [queue] = queues(["a"]).await;
    let with = |jobs, prefetch: Option<u32>| {
        let begun = Begun::default();
        let worker = begun.worker(&queue, &Permits::new(jobs, QueueOrder::default()));
        prefetch.map_or_else(
            || begun.worker(&queue, &Permits::new(jobs, QueueOrder::default())),
            |n| worker.prefetch(n),
        )
    };
    let both = Begun::default().worker(&queue, &Permits::new(4, QueueOrder::default())).jobs(20_000).build();
    assert!(both.unwrap_err().to_string().contains("20000"));
    for (wrong, names) in
        [(with(0, None), "0 jobs"), (with(10_001, None), "10001"), (with(2, Some(1)), "prefetch")]
    {
        let error = wrong.build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(names), "{error}");
    }
    assert!(with(2, Some(0)).build().is_ok());
}
