//! Where the Lua rules could differ from the Rust rules and random commands seldom come: many tasks at once, large
//! bodies, long lines and texts. Each command is sent to a server and to the memory.

use std::time::Duration;

use interval_queue_conformance::ManualClock;
use interval_queue_contract::{Label, MaxRunning, Micros};
use interval_queue_memory::MemoryTasks;
use interval_queue_redis::{RedisStore, RedisTasks};
use interval_queue_task_contract::*;
use interval_queue_test_support::RedisServer;

use super::support::{add, all, id, is_indexed, mail, task, worker};

/// A server and the memory, by one clock.
struct Both {
    server: RedisServer,
    clock: ManualClock,
    redis: RedisTasks,
    memory: MemoryTasks,
}

impl Both {
    async fn new() -> Self {
        let server = RedisServer::start();
        let clock = ManualClock::new();
        clock.advance(Duration::from_secs(1_700_000_000));
        let (for_redis, for_memory) = (clock.clone(), clock.clone());
        let builder = RedisStore::builder(server.url()).unwrap().timeout(Duration::from_secs(60));
        let redis = RedisTasks::with_clock(&builder.connect().await.unwrap(), move || for_redis.now());
        let memory = MemoryTasks::with_clock(move || for_memory.now());
        Self { server, clock, redis, memory }
    }

    async fn apply(&self, command: Command) -> Option<Reply> {
        let expected = self.memory.apply(&mail(), command.clone()).await;
        let found = self.redis.apply(&mail(), command).await;
        match (found, expected) {
            (Ok(found), Ok(expected)) => {
                assert!(found == expected, "{}", difference(&found, &expected));
                Some(found)
            }
            (Err(found), Err(expected)) => {
                assert_eq!((found.kind(), found.to_string()), (expected.kind(), expected.to_string()));
                None
            }
            (found, expected) => panic!("{found:?} and not {expected:?}"),
        }
    }

    async fn step(&self, step: &mut Step) -> Stepped {
        let reply = self.apply(Command::Step(step.clone())).await;
        let Some(Reply::Stepped(stepped)) = reply else { panic!("{reply:?}") };
        (step.acknowledged, step.sequence) = (step.sequence, step.sequence + 1);
        (step.held, step.complete) = (None, Vec::new());
        stepped
    }

    /// Steps until the housekeeping has nothing to do.
    async fn tidy(&self, step: &mut Step) -> usize {
        let mut steps = 1;
        while self.step(step).await.more {
            steps += 1;
        }
        steps
    }

    async fn same(&self) {
        let (found, expected) = (all(&self.redis, &mail()).await, all(&self.memory, &mail()).await);
        assert!(found == expected, "{}", difference(&found, &expected));
        for read in [Read::Overview, Read::Workers, Read::Schedules] {
            self.apply(Command::Read(read)).await;
        }
        is_indexed(&self.server, "{interval-queue:mail}:t");
    }
}

fn difference(found: &impl std::fmt::Debug, expected: &impl std::fmt::Debug) -> String {
    let (found, expected) = (format!("{found:#?}"), format!("{expected:#?}"));
    let at = found.lines().zip(expected.lines()).position(|(one, other)| one != other).unwrap_or(0);
    let part = |text: &str| text.lines().skip(at.saturating_sub(12)).take(20).collect::<Vec<_>>().join("\n");
    format!("redis:\n{}\nmemory:\n{}", part(&found), part(&expected))
}

fn first(n: u64) -> Step {
    Step {
        label: Label::new(format!("worker {n}")).unwrap(),
        ..Step::first(worker(n), [Kind::default()], Micros::from_millis(10_500))
    }
}

fn key(text: &str) -> Option<Key> {
    Some(Key::new(text).unwrap())
}

fn completed(leased: &[Leased], outcome: impl Fn(u64) -> Outcome) -> Vec<Completion> {
    let one = |(n, leased): (usize, &Leased)| Completion {
        id: leased.task.id,
        token: leased.task.token,
        outcome: outcome(n as u64),
    };
    leased.iter().enumerate().map(one).collect()
}

fn cancel(selector: Selector) -> Command {
    let (after, watermark, verb) = (None, None, Verb::Cancel);
    Command::Change(Change::Tasks(ChangeTasks { selector, verb, after, watermark, limit: 1, dry_run: false }))
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn a_long_line_of_one_key_and_a_limit_that_changes() {
    let both = Both::new().await;
    let new = |n: u64| NewTask {
        key: key("k"),
        priority: (n % 7) as i32 - 3,
        ordered: n > 600 && n.is_multiple_of(5),
        ..task(n)
    };
    both.apply(add((0..700).map(new))).await;
    let mut step = first(1);
    assert!(both.tidy(&mut step).await > 3, "it is more than one share");
    for limit in [Some(150), None, Some(3), Some(0), Some(400)] {
        both.apply(Command::Change(Change::Key(Key::new("k").unwrap(), limit))).await;
        // A place that gets free before the housekeeping comes by: some are given or taken at once, not all.
        let holder = all(&both.memory, &mail()).await.into_iter().find(|x| x.task.state == State::Ready);
        both.apply(cancel(Selector::ids(holder.map(|holder| holder.task.id)))).await;
        both.same().await;
        both.tidy(&mut step).await;
        step.want = 20;
        let leased = both.step(&mut step).await.leased;
        step.want = 0;
        step.complete = completed(&leased, |n| match n % 4 {
            0 => Outcome::Done(Json::new("[]").unwrap()),
            1 => Outcome::Released,
            2 => Outcome::Error("é".repeat(3_000)),
            _ => Outcome::Retry(Micros::new(n), "later".into()),
        });
        both.tidy(&mut step).await;
        both.clock.advance(Duration::from_secs(2));
    }
    let settings = SettingsChange { key_limit: Some(40), ..SettingsChange::default() };
    both.apply(Command::Change(Change::Set(settings))).await;
    both.apply(Command::Change(Change::Kind(Kind::default(), true))).await;
    both.tidy(&mut step).await;
    both.same().await;
    both.apply(Command::Change(Change::Kind(Kind::default(), false))).await;
    both.tidy(&mut step).await;
    both.same().await;
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn a_step_leases_admitted_tasks_of_any_priority() {
    let both = Both::new().await;
    let new = |n: u64| NewTask { key: key(&n.to_string()), priority: n as i32 - 3, ..task(n) };
    both.apply(add((0..7).map(new))).await;
    let mut step = first(1);
    step.want = 10;
    assert_eq!(both.step(&mut step).await.leased.len(), 7);
    both.same().await;
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn workers_that_die_with_many_tasks_and_a_store_that_forgot() {
    let both = Both::new().await;
    both.apply(add((0..900).map(task))).await;
    let (mut one, mut other) = (first(1), first(2));
    (one.want, other.want) = (450, 450);
    let leased = both.step(&mut one).await.leased;
    both.step(&mut other).await;
    (one.want, other.want) = (0, 0);
    // The second one dies. Only the first is heard of, in small steps, so that time counts.
    for _ in 0..8 {
        both.clock.advance(Duration::from_millis(2_300));
        both.step(&mut one).await;
    }
    assert!(both.tidy(&mut one).await >= 1);
    both.same().await;
    // It knows more steps than were heard of, and runs that nobody gave it.
    other.acknowledged = 7_000;
    other.sequence = 7_001;
    let token = |leased: &Leased| Token { attempt: 4_000_000_000, ..leased.task.token };
    other.held = Some(leased.iter().take(30).map(|leased| (leased.task.id, token(leased))).collect());
    let stepped = both.step(&mut other).await;
    assert_eq!(stepped.lost, []);
    one.held = Some(leased.iter().map(|leased| (leased.task.id, leased.task.token)).collect());
    assert!(both.step(&mut one).await.lost.len() >= 30);
    both.clock.step_back(Duration::from_secs(3_000));
    both.apply(add((2_000..2_010).map(task))).await;
    one.want = 10;
    assert_eq!(both.step(&mut one).await.leased.len(), 10);
    both.same().await;
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn bodies_beyond_one_reply_and_of_every_size() {
    let both = Both::new().await;
    let sizes = [0, 400, 508, 509, 510, 511, 512, 513, 514, 1_000, 70_000, 1_048_574];
    let of_size = |n: u64, size: usize| NewTask::new(id(n), Json::of(&"é".repeat(size / 2)).unwrap());
    both.apply(add(sizes.iter().enumerate().map(|(n, &size)| of_size(n as u64, size)))).await;
    both.apply(add((100..108).map(|n| of_size(n, 1_000_000)))).await;
    let odd =
        ["\"\\u0000\"", "  { \"a\" : [ 1e300, -0.0 ] } ", "18446744073709551616", "\"\u{10ffff}\u{85}\""];
    both.apply(add(odd.iter().zip(200..).map(|(text, n)| NewTask::new(id(n), Json::new(*text).unwrap()))))
        .await;
    both.apply(add([of_size(300, 1_048_576)])).await;
    let mut step = first(1);
    step.want = 100;
    let mut runs = 0;
    loop {
        let stepped = both.step(&mut step).await;
        if stepped.leased.is_empty() {
            break;
        }
        runs += stepped.leased.len();
        let payloads: Vec<Json> = stepped.leased.iter().map(|leased| leased.payload.clone()).collect();
        step.complete = completed(&stepped.leased, |n| match n % 5 {
            4 => Outcome::Done(Json::of(&"x".repeat(1_048_575)).unwrap()),
            3 => Outcome::Done(Json::default()),
            n => Outcome::Done(payloads[n as usize].clone()),
        });
    }
    assert_eq!(runs, sizes.len() + 8 + odd.len());
    let ids = Read::Tasks((0..12).chain(100..108).chain(200..206).map(id).collect());
    both.apply(Command::Read(ids)).await;
    both.same().await;
    let verb = |verb| {
        let selector = Selector::default();
        let (after, watermark) = (None, None);
        Command::Change(Change::Tasks(ChangeTasks {
            selector,
            verb,
            after,
            watermark,
            limit: 1_000,
            dry_run: false,
        }))
    };
    both.apply(verb(Verb::Retry)).await;
    both.same().await;
    both.apply(verb(Verb::Cancel)).await;
    both.apply(verb(Verb::Purge)).await;
    both.same().await;
    both.clock.advance(Duration::from_secs(1_300));
    both.tidy(&mut step).await;
    for _ in 0..12 {
        both.clock.advance(Duration::from_secs(300));
        both.step(&mut step).await;
    }
    both.tidy(&mut step).await;
    both.same().await;
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn wide_graphs_are_notified_part_by_part() {
    let both = Both::new().await;
    let on_failure = |n: u64| [OnFailure::Cancel, OnFailure::Run, OnFailure::Wait][n as usize % 3];
    let edge =
        |up: u64, n: u64| NewEdge { up: id(up), name: key(&format!("k{up}")), on_failure: on_failure(n) };
    both.apply(add([task(0), task(1)])).await;
    both.apply(add((10..520).map(|n| NewTask { edges: vec![edge(0, n), edge(1, n + 1)], ..task(n) }))).await;
    let edges = (10..520).map(|n| edge(n, n / 3)).collect();
    both.apply(add([NewTask { edges, ..task(1_000) }])).await;
    let mut step = first(1);
    both.tidy(&mut step).await;
    for outcome in [Outcome::Failed("no".into()), Outcome::Done(Json::default())] {
        step.want = 1;
        let leased = both.step(&mut step).await.leased;
        step.want = 0;
        step.complete = completed(&leased, |_| outcome.clone());
        assert!(both.tidy(&mut step).await > 1);
        both.same().await;
    }
    let down = id(1_000);
    let mut after = None;
    loop {
        let inputs = both.apply(Command::Read(Read::Inputs { down, after })).await;
        let Some(Reply::Inputs(inputs)) = inputs else { panic!("{inputs:?}") };
        after = inputs.next;
        if after.is_none() {
            break;
        }
    }
    let retry = ChangeTasks {
        selector: Selector::ids([id(0)]),
        verb: Verb::Retry,
        after: None,
        watermark: None,
        limit: 10,
        dry_run: false,
    };
    both.apply(Command::Change(Change::Tasks(retry))).await;
    step.want = 1;
    both.tidy(&mut step).await;
    both.same().await;
    let limit = SettingsChange { max_running: MaxRunning::AtMost(1), ..SettingsChange::default() };
    both.apply(Command::Change(Change::Set(limit))).await;
    both.tidy(&mut step).await;
    for _ in 0..900 {
        both.clock.advance(Duration::from_secs(3_000));
        both.step(&mut step).await;
    }
    both.same().await;
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn numbers_and_texts_at_their_limits() {
    let both = Both::new().await;
    let policy = Policy {
        max_attempts: MAX_ATTEMPTS,
        max_retries: MAX_ATTEMPTS,
        backoff: MAX_DELAY,
        max_backoff: MAX_DELAY,
        timeout: Some(Micros::MAX),
    };
    let longest = |n: usize| "ö".repeat(n / 2);
    let new = |n: u64| NewTask {
        kind: Kind::new(longest(MAX_KIND)).unwrap(),
        key: key(&longest(MAX_KEY)),
        unique: Some(Unique { name: Key::new(format!("n {n} 'ä")).unwrap(), until: Until::Leased }),
        priority: MAX_PRIORITY - n as i32 * 20,
        weight: MAX_WEIGHT,
        deadline: Some(When::At(Micros::MAX)),
        policy: policy.into(),
        tags: (0..MAX_TAGS).map(|n| Tag::new(format!("tag {n}")).unwrap()).collect(),
        ..task(n)
    };
    let settings =
        SettingsChange { ageing: Some(MAX_AGEING), key_limit: Some(u32::MAX), ..SettingsChange::default() };
    both.apply(Command::Change(Change::Open(settings, interval_queue_contract::OnExisting::Fail))).await;
    both.apply(add((0..11).map(new))).await;
    let mut step = first(1);
    step.kinds = vec![Kind::new(longest(MAX_KIND)).unwrap()];
    step.label = Label::new("ü".repeat(64)).unwrap();
    step.lease = MAX_LEASE;
    step.want = 5;
    step.at_least = Some(i32::MIN);
    let leased = both.step(&mut step).await.leased;
    assert_eq!(leased.len(), 5);
    step.at_least = Some(i32::MAX);
    let progress = Progress { done: u64::MAX, total: u64::MAX - 1, text: "ä\u{0}".into() };
    step.progress = leased.iter().map(|one| (one.task.id, one.task.token, progress.clone())).collect();
    both.step(&mut step).await;
    both.same().await;
    step.progress = Vec::new();
    step.complete = completed(&leased, |n| match n {
        0 => Outcome::Error(String::new()),
        1 => Outcome::Retry(Micros::MAX, String::new()),
        2 => Outcome::Failed("€".repeat(2_000)),
        3 => Outcome::Error("x".repeat(4_095) + "€"),
        _ => Outcome::Error("x".repeat(4_094) + "€€"),
    });
    both.step(&mut step).await;
    both.same().await;
    let last = |n: u64| NewTask {
        not_before: When::At(Micros::new(Micros::MAX.get() - n % 3)),
        priority: -(n as i32 % 100),
        ..task(n)
    };
    both.apply(add((60..80).map(last))).await;
    both.same().await;
    let refuse = NewTask { on_conflict: OnConflict::Refuse, ..new(7) };
    both.apply(add([task(50), NewTask { id: id(51), ..refuse }])).await;
    let add_late = Add { tasks: [task(50)].into(), sequence: 0, age: Micros::new(LATE_ADD.get() + 1_500) };
    both.apply(Command::Add(add_late)).await;
    both.apply(add([NewTask {
        edges: vec![NewEdge { up: id(99), name: None, on_failure: OnFailure::Run }],
        ..task(52)
    }]))
    .await;
    let other = SettingsChange { key_limit: Some(7), ..SettingsChange::default() };
    both.apply(Command::Change(Change::Open(other, interval_queue_contract::OnExisting::Fail))).await;
    both.apply(Command::Change(Change::Unschedule(Key::new("none \"here\"").unwrap()))).await;
    step.sequence = 1;
    both.apply(Command::Step(step.clone())).await;
    both.same().await;
}

#[tokio::test]
#[ignore = "needs redis-server: scripts/test runs it"]
async fn a_run_that_comes_and_goes_a_hundred_times() {
    let both = Both::new().await;
    both.apply(add((0..4).map(task))).await;
    let mut step = first(1);
    for round in 0..130_u64 {
        step.want = 4;
        let leased = both.step(&mut step).await.leased;
        step.want = 0;
        step.complete = completed(&leased, |n| match n + round / 40 {
            0 => Outcome::Released,
            4 => Outcome::Unable("é".repeat(3_000)),
            1 => Outcome::Retry(Micros::ZERO, "again".into()),
            2 => Outcome::Exchanged,
            _ => Outcome::Error("broken".into()),
        });
        both.step(&mut step).await;
        both.clock.advance(Duration::from_secs(20 + 40 * round));
    }
    both.same().await;
}
