//! Many who step, add, complete and cancel at once, by the server's clock: nothing is run twice, nothing is forgotten,
//! no limit is broken, and the counts are right.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use interval_queue_postgres::{Durability, PostgresTasks};
use interval_queue_task_contract::{
    Change, ChangeTasks, Command, Completion, Counted, Key, Kind, NewEdge, NewTask, OnFailure, Order,
    Outcome, Page, PolicyOverride, Read, Reply, Selector, State, Step, Stepped, TaskId, TaskStore, Token,
    Verb, WorkerId,
};
use uuid::Uuid;

use super::support::*;
use crate::common::*;

const HANDLES: u64 = 8;
const TASKS: u64 = 60;
/// How many of one key run at once.
const LIMIT: usize = 2;

/// The commands that a worker sends to a queue.
struct Member {
    tasks: PostgresTasks,
    number: u64,
    step: Step,
    held: Vec<(TaskId, Token)>,
    /// What is like a random number.
    chance: u64,
}

/// What all know: which run of which task was told to have ended well.
#[derive(Default)]
struct Told {
    done: Mutex<BTreeMap<TaskId, u32>>,
    added: AtomicU64,
    all_added: AtomicBool,
}

impl Member {
    fn chance(&mut self, of: u64) -> u64 {
        self.chance =
            self.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.chance >> 33) % of
    }

    async fn say(&self, command: Command) -> Reply {
        // A lock that somebody else has for too long on a busy machine changes nothing.
        loop {
            match self.tasks.apply(&mail(), command.clone()).await {
                Err(error) if error.kind() == Unreachable => {}
                notified => return notified.unwrap(),
            }
        }
    }

    async fn add(&mut self, notified: &Told) {
        let first = notified.added.fetch_add(2, Ordering::Relaxed);
        let mut tasks = Vec::new();
        for n in first..first + 2 {
            let mut new = NewTask {
                policy: PolicyOverride { max_attempts: Some(50), ..PolicyOverride::default() },
                ..task(n)
            };
            match self.chance(4) {
                0 => new.key = Some(Key::new(["a", "b"][self.chance(2) as usize]).unwrap()),
                1 if n > 2 => {
                    let up = id(self.chance(n.saturating_sub(2)));
                    new.edges = vec![NewEdge { up, name: None, on_failure: OnFailure::Run }];
                }
                _ => {}
            }
            new.priority = self.chance(3) as i32;
            tasks.push(new);
        }
        for new in tasks {
            let command = add([new.clone()]);
            // An upstream whose own add is still under way is not there: it waits for nobody then.
            let reply = self.tasks.apply(&mail(), command.clone()).await;
            if reply.as_ref().is_err_and(|error| error.kind() == NotFound) {
                let mut alone = new.clone();
                alone.edges.clear();
                self.say(add([alone])).await;
            } else if reply.is_err() {
                self.say(command).await;
            }
        }
    }

    async fn step(&mut self, notified: &Told) -> Stepped {
        let mut complete = Vec::new();
        let mut ended = Vec::new();
        let held = std::mem::take(&mut self.held);
        for (id, token) in held {
            let outcome = match self.chance(10) {
                0 => Outcome::Released,
                1 => Outcome::Exchanged,
                _ => {
                    ended.push(id);
                    Outcome::Done(interval_queue_task_contract::Json::default())
                }
            };
            complete.push(Completion { id, token, outcome });
        }
        self.step.want = 1 + self.chance(4) as u32;
        self.step.complete = complete;
        loop {
            self.step.sequence += 1;
            let reply = self.tasks.apply(&mail(), Command::Step(self.step.clone())).await;
            match reply {
                Err(error) if error.kind() == Unreachable => {}
                reply => {
                    let Reply::Stepped(stepped) = reply.unwrap() else { panic!("no step") };
                    self.step.acknowledged = self.step.sequence;
                    self.step.held = stepped.resync.then(Vec::new);
                    let mut done = notified.done.lock().unwrap();
                    for id in ended.iter().filter(|id| !stepped.lost.contains(id)) {
                        *done.entry(*id).or_default() += 1;
                    }
                    self.held.extend(stepped.leased.iter().map(|leased| (leased.task.id, leased.task.token)));
                    return stepped;
                }
            }
        }
    }

    async fn run(mut self, notified: Arc<Told>) {
        while notified.added.load(Ordering::Relaxed) < HANDLES * TASKS {
            match self.chance(12) {
                0..4 => self.add(&notified).await,
                4 => {
                    let id = id(self.chance(HANDLES * TASKS));
                    let selector = Selector::ids([id]);
                    let verb = Verb::Cancel;
                    let change = ChangeTasks {
                        selector,
                        verb,
                        after: None,
                        watermark: None,
                        limit: 1,
                        dry_run: false,
                    };
                    self.say(Command::Change(Change::Tasks(change))).await;
                }
                _ => _ = self.step(&notified).await,
            }
        }
        notified.all_added.store(true, Ordering::Relaxed);
        // Until nothing is left: what waits for others comes when those have ended.
        let mut idle = 0;
        while idle < 3 || !self.held.is_empty() {
            let stepped = self.step(&notified).await;
            let open = self.open().await;
            idle = if open == 0 && !stepped.more { idle + 1 } else { 0 };
        }
    }

    async fn open(&self) -> u64 {
        let Reply::Overview(overview) = self.say(Command::Read(Read::Overview)).await else {
            panic!("no overview")
        };
        let open = |&(_, counted, n): &(Kind, Counted, u64)| match counted {
            Counted::Now(state) if !state.is_ended() => n,
            _ => 0,
        };
        overview.counts.iter().map(open).sum()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn many_workers_run_each_task_once_and_break_no_limit() {
    let server = server();
    let url = fresh_database(&server);
    let connect = async || {
        let builder =
            PostgresStore::builder(&url).durability(Durability::Relaxed).connections(2).timeout(LONG);
        PostgresTasks::on(&builder.connect().await.unwrap()).await.unwrap()
    };
    let first = connect().await;
    let limit =
        interval_queue_task_contract::SettingsChange { key_limit: Some(LIMIT as u32), ..Default::default() };
    let open = Change::Open(limit, interval_queue_contract::OnExisting::Replace);
    first.apply(&mail(), Command::Change(open)).await.unwrap();
    let notified = Arc::new(Told::default());
    let mut workers = Vec::new();
    for number in 0..HANDLES {
        let worker = WorkerId::new(Uuid::from_u64_pair(9, number));
        let step = Step { sequence: 0, ..Step::first(worker, [Kind::default()], LEASE) };
        let member = Member { tasks: connect().await, number, step, held: Vec::new(), chance: number + 1 };
        assert!(member.number < HANDLES);
        workers.push(tokio::spawn(member.run(notified.clone())));
    }
    // Meanwhile somebody looks, each time at one instant.
    let session = session(&url).await;
    let mut looks = 0;
    while workers.iter().any(|member| !member.is_finished()) {
        let broken = session
            .query(
                "SELECT key, count(*) FROM interval_queue.interval_queue_task WHERE state = 'leased' AND key IS NOT NULL \
                 GROUP BY key HAVING count(*) > $1",
                &[&(LIMIT as i64)],
            )
            .await
            .unwrap();
        assert!(broken.is_empty(), "more than {LIMIT} of one key are leased");
        let wrong = session
            .query(
                "SELECT counted, sum(number)::bigint FROM (\
                 SELECT counted, number FROM interval_queue.interval_queue_task_count UNION ALL \
                 SELECT u.counted, u.more FROM interval_queue.interval_queue_task_counted AS c, unnest(c.counted, c.more) AS u (counted, more) \
                 UNION ALL SELECT state, -1 FROM interval_queue.interval_queue_task) AS c \
                 WHERE counted NOT LIKE 'ever%' AND counted NOT LIKE 'took %' GROUP BY counted HAVING sum(number) <> 0",
                &[],
            )
            .await
            .unwrap();
        assert!(wrong.is_empty(), "counts are not what is stored: {wrong:?}");
        looks += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for member in workers {
        member.await.unwrap();
    }
    let done = notified.done.lock().unwrap().clone();
    let twice: BTreeSet<_> = done.iter().filter(|&(_, &n)| n != 1).collect();
    assert!(twice.is_empty(), "run to the end more than once: {twice:?}");
    let page = Read::Page {
        selector: Selector::states(State::ALL),
        after: Order::Oldest.start(),
        limit: 1_000,
        bodies: false,
    };
    let Reply::Page(Page { tasks, .. }) = first.apply(&mail(), Command::Read(page)).await.unwrap() else {
        panic!("no page")
    };
    assert!(tasks.len() as u64 >= HANDLES * TASKS, "{} tasks", tasks.len());
    for stored in &tasks {
        let x = &stored.task;
        assert!(x.state.is_ended(), "{x:?} is stuck");
        // A task that was cancelled while it ran ends as cancelled, although its run ended well.
        let may_have_run = matches!(x.state, State::Done | State::Cancelled);
        assert!(may_have_run || !done.contains_key(&x.id), "{x:?}");
        assert!(x.state != State::Done || done.contains_key(&x.id), "{x:?}");
    }
    println!("{} tasks, {} done, {looks} looks", tasks.len(), done.len());
}
