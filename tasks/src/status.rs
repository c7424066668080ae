//! Whether a queue's tasks start and, if not, why. All views use `QueueStatus::of`.

use interval_queue::{Micros, Snapshot, StartStatus};
use interval_queue_task_contract::{Counted, Key, Kind, Overview, State};

/// Unless a [`Condition`] prevents it, a worker can take a task in these states.
const CANDIDATES: [State; 3] = [State::Added, State::Blocked, State::Ready];

/// Whether a queue's tasks start, and why not.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), interval_queue_tasks::Error> {
/// use interval_queue_tasks::{Condition, QueueStatus, Task, TaskQueue};
///
/// let queue = TaskQueue::builder("mails").connect("memory:").await?;
/// queue.add(Task::new("welcome", &"Ada")).await?;
/// let status = QueueStatus::of(&queue.overview().await?, None);
/// assert_eq!(status.condition, Condition::NoWorker);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueStatus {
    /// Tasks start, or the first reason why they do not.
    pub condition: Condition,
    /// Other conditions that block tasks or distort the counts.
    pub also: Vec<Condition>,
}

/// Why tasks start or do not.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Condition {
    /// All tasks have ended.
    Empty,
    /// The queue is paused.
    Paused {
        /// Start of the pause on the store's clock, if known.
        since: Option<Micros>,
        /// Number of tasks that still run.
        running: u64,
    },
    /// Tasks run.
    Running {
        /// Number of running tasks.
        running: u64,
        /// `max_running`, if reached.
        limit: Option<u32>,
    },
    /// No worker is alive.
    NoWorker,
    /// Tasks are leased to workers whose lease has ended. The next polls of others take them back.
    Lost {
        /// Number of these leased tasks.
        tasks: u64,
    },
    /// No living worker handles a kind with waiting tasks.
    Unserved {
        /// The kind.
        kind: Kind,
        /// Its tasks that wait for a worker.
        tasks: u64,
    },
    /// A kind is paused.
    KindPaused {
        /// The kind.
        kind: Kind,
        /// Its tasks that wait for a worker.
        tasks: u64,
        /// Start of the pause on the store's clock, if known.
        since: Option<Micros>,
    },
    /// A key is paused.
    KeyPaused {
        /// The key.
        key: Key,
        /// Number of tasks that wait for it, counted up to 10,000.
        tasks: u64,
        /// Start of the pause on the store's clock, if known.
        since: Option<Micros>,
    },
    /// The rate limit is paused.
    RatePaused,
    /// The rate limit is held.
    RateHeld {
        /// Time until the hold ends.
        left: Micros,
    },
    /// Tasks wait for the next slot of the rate limit.
    Rate {
        /// Status of the rate limit.
        status: StartStatus,
    },
    /// Nothing blocks: a worker with capacity takes the next task.
    Next,
    /// All tasks wait for their time.
    Time {
        /// Time until the first one is due.
        left: Micros,
    },
    /// All tasks wait for their keys.
    Key,
    /// All tasks wait for upstreams.
    Upstreams,
    /// Counts are wrong: rows were removed or added by hand. [`TaskQueue::recount`] corrects them.
    ///
    /// [`TaskQueue::recount`]: crate::TaskQueue::recount
    Miscounted,
}

impl Condition {
    /// The condition as a word for programs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Paused { .. } => "paused",
            Self::Running { .. } => "running",
            Self::NoWorker => "no_worker",
            Self::Lost { .. } => "lost",
            Self::Unserved { .. } => "unserved",
            Self::KindPaused { .. } => "kind_paused",
            Self::KeyPaused { .. } => "key_paused",
            Self::RatePaused => "rate_paused",
            Self::RateHeld { .. } => "rate_held",
            Self::Rate { .. } => "rate",
            Self::Next => "next",
            Self::Time { .. } => "time",
            Self::Key => "key",
            Self::Upstreams => "upstreams",
            Self::Miscounted => "miscounted",
        }
    }

    /// Whether the condition is a pause or a hold.
    pub fn is_pause(&self) -> bool {
        matches!(
            self,
            Self::Paused { .. }
                | Self::KindPaused { .. }
                | Self::KeyPaused { .. }
                | Self::RatePaused
                | Self::RateHeld { .. }
        )
    }
}

impl QueueStatus {
    /// Derives the status from an overview and, if the queue has a rate limit, its snapshot.
    pub fn of(overview: &Overview, pace: Option<&Snapshot>) -> Self {
        let facts = Facts { overview, pace };
        let condition = facts.condition();
        let mut also = facts.in_force();
        also.retain(|one| one.as_str() != condition.as_str() || is_of_part(one) && *one != condition);
        Self { condition, also }
    }

    /// All conditions, the most important first.
    pub fn conditions(&self) -> impl Iterator<Item = &Condition> {
        [&self.condition].into_iter().chain(&self.also)
    }
}

/// Several can be in force, one per kind or key.
fn is_of_part(condition: &Condition) -> bool {
    matches!(
        condition,
        Condition::Unserved { .. } | Condition::KindPaused { .. } | Condition::KeyPaused { .. }
    )
}

struct Facts<'a> {
    overview: &'a Overview,
    pace: Option<&'a Snapshot>,
}

impl Facts<'_> {
    fn count(&self, is_one: impl Fn(&Kind, State) -> bool) -> u64 {
        let counts = self.overview.counts.iter().filter_map(|(kind, counted, count)| match counted {
            Counted::Now(state) => Some((kind, *state, count)),
            _ => None,
        });
        counts.filter(|(kind, state, _)| is_one(kind, *state)).map(|(.., count)| count).sum()
    }

    fn in_state(&self, state: State) -> u64 {
        self.count(|_, one| one == state)
    }

    fn running(&self) -> u64 {
        self.in_state(State::Leased).saturating_sub(self.overview.lost)
    }

    fn of_kind(&self, kind: &Kind) -> u64 {
        self.count(|of, state| of == kind && CANDIDATES.contains(&state))
    }

    fn paused(&self) -> Option<Condition> {
        let (since, running) = (self.overview.paused_at, self.running());
        self.overview.paused.then_some(Condition::Paused { since, running })
    }

    fn paused_kinds(&self) -> impl Iterator<Item = Condition> {
        self.overview.kinds.iter().filter(|row| row.paused).map(|row| Condition::KindPaused {
            kind: row.kind.clone(),
            tasks: self.of_kind(&row.kind),
            since: row.paused_at,
        })
    }

    fn paused_keys(&self) -> impl Iterator<Item = Condition> {
        self.overview.paused_keys.iter().map(|paused| Condition::KeyPaused {
            key: paused.key.clone(),
            tasks: paused.tasks,
            since: paused.since,
        })
    }

    fn is_paused(&self, kind: &Kind) -> bool {
        self.overview.kinds.iter().any(|row| row.paused && row.kind == *kind)
    }

    /// Except paused kinds. None without workers: see `NoWorker`.
    fn unserved(&self) -> impl Iterator<Item = Condition> {
        let has_workers = self.overview.workers > 0;
        let kinds = self.overview.unserved.iter().filter(move |kind| has_workers && !self.is_paused(kind));
        let kinds = kinds.map(|kind| (kind, self.of_kind(kind))).filter(|(_, tasks)| *tasks > 0);
        kinds.map(|(kind, tasks)| Condition::Unserved { kind: kind.clone(), tasks })
    }

    fn pace(&self) -> Option<Condition> {
        let pace = self.pace?;
        let left = pace.record.held_until - pace.at;
        match pace.record.paused {
            true => Some(Condition::RatePaused),
            false => (left > Micros::ZERO).then_some(Condition::RateHeld { left }),
        }
    }

    fn lost(&self) -> Option<Condition> {
        let tasks = self.overview.lost;
        (tasks > 0).then_some(Condition::Lost { tasks })
    }

    fn is_empty(&self) -> bool {
        self.count(|_, state| !state.is_ended()) == 0
    }

    fn condition(&self) -> Condition {
        if self.is_empty() {
            return Condition::Empty;
        }
        if let Some(paused) = self.paused() {
            return paused;
        }
        let running = self.running();
        if running > 0 {
            let limit = self.overview.settings.max_running.filter(|limit| running >= (*limit).into());
            return Condition::Running { running, limit };
        }
        if self.overview.workers == 0 {
            return Condition::NoWorker;
        }
        let candidates = self.count(|_, state| CANDIDATES.contains(&state));
        if candidates > 0 {
            return self.closed(candidates).unwrap_or_else(|| self.open());
        }
        if let Some(lost) = self.lost() {
            return lost;
        }
        match self.overview.next {
            Some(next) => Condition::Time { left: next - self.overview.at },
            None => Condition::Upstreams,
        }
    }

    fn closed(&self, candidates: u64) -> Option<Condition> {
        let is_closed = |kind: &Kind| self.is_paused(kind) || self.overview.unserved.contains(kind);
        let of_closed = self.count(|kind, state| is_closed(kind) && CANDIDATES.contains(&state));
        let behind_keys: u64 = self.overview.paused_keys.iter().map(|paused| paused.tasks).sum();
        let left = candidates - of_closed;
        let keyed = self.count(|kind, state| !is_closed(kind) && state == State::Blocked);
        if left > 0 && (keyed < left || behind_keys < left) {
            return None;
        }
        let of_kinds = self.unserved().chain(self.paused_kinds().filter(waits));
        of_kinds.chain(self.paused_keys().filter(waits)).next()
    }

    /// The condition of candidates unless `closed` has one.
    fn open(&self) -> Condition {
        if let Some(pace) = self.pace() {
            return pace;
        }
        let ready = self.in_state(State::Ready);
        match self.pace {
            Some(pace) if ready > 0 => return Condition::Rate { status: pace.start_status() },
            _ => {}
        }
        match (ready + self.in_state(State::Added), self.lost()) {
            (1.., _) => Condition::Next,
            (0, Some(lost)) => lost,
            (0, None) => Condition::Key,
        }
    }

    /// Blocks some task or distorts the counts.
    fn in_force(&self) -> Vec<Condition> {
        let miscounted = self.overview.miscounted.then_some(Condition::Miscounted);
        let no_worker = (self.overview.workers == 0 && !self.is_empty()).then_some(Condition::NoWorker);
        let all = miscounted
            .into_iter()
            .chain(self.paused())
            .chain(no_worker)
            .chain(self.lost())
            .chain(self.pace());
        all.chain(self.unserved()).chain(self.paused_kinds()).chain(self.paused_keys()).collect()
    }
}

/// Tasks wait for the end of this pause.
fn waits(condition: &Condition) -> bool {
    matches!(condition, Condition::KindPaused { tasks: 1.., .. } | Condition::KeyPaused { tasks: 1.., .. })
}

#[cfg(test)]
mod tests {
    use interval_queue_task_contract::{KindRow, PausedKey, Settings};

    use super::*;

    fn kind(text: &str) -> Kind {
        Kind::new(text).unwrap()
    }

    fn now(kind: &str, state: State, count: u64) -> (Kind, Counted, u64) {
        (self::kind(kind), Counted::Now(state), count)
    }

    /// One worker handles all kinds but `odd`.
    fn overview(counts: Vec<(Kind, Counted, u64)>) -> Overview {
        let unserved = counts.iter().map(|(kind, ..)| kind.clone()).filter(|kind| kind.as_str() == "odd");
        Overview {
            at: Micros::new(100),
            settings: Settings::default(),
            paused: false,
            paused_at: None,
            paused_keys: Vec::new(),
            workers: 1,
            lost: 0,
            kinds: Vec::new(),
            unserved: unserved.collect(),
            oldest: None,
            miscounted: false,
            next: None,
            counts,
        }
    }

    fn words(overview: &Overview) -> Vec<&'static str> {
        QueueStatus::of(overview, None).conditions().map(Condition::as_str).collect()
    }

    fn paused_kind(name: &str) -> KindRow {
        KindRow {
            kind: kind(name),
            paused: true,
            paused_at: Some(Micros::new(7)),
            served_until: Micros::MAX,
            open: false,
            needs_rebalancing: false,
        }
    }

    fn paused_key(tasks: u64) -> PausedKey {
        PausedKey { key: Key::new("customer-2").unwrap(), tasks, since: Some(Micros::new(7)) }
    }

    #[test]
    fn the_first_reason_is_what_holds_for_all() {
        use State::{Blocked, Done, Leased, Ready, Scheduled, Waiting};
        assert_eq!(words(&overview(vec![now("a", Done, 3)])), ["empty"]);
        assert_eq!(words(&overview(vec![now("a", Ready, 3)])), ["next"]);
        assert_eq!(words(&overview(vec![now("a", Leased, 1), now("a", Ready, 1)])), ["running"]);
        assert_eq!(words(&overview(vec![now("a", Blocked, 1)])), ["key"]);
        assert_eq!(words(&overview(vec![now("a", Waiting, 1)])), ["upstreams"]);
        let next = Some(Micros::new(103));
        let later = Overview { next, ..overview(vec![now("a", Scheduled, 1)]) };
        assert_eq!(QueueStatus::of(&later, None).condition, Condition::Time { left: Micros::new(3) });
        assert_eq!(words(&overview(vec![now("odd", Ready, 1)])), ["unserved"]);
        let paused = Overview { kinds: vec![paused_kind("odd")], ..overview(vec![now("odd", Ready, 1)]) };
        assert_eq!(words(&paused), ["kind_paused"]);
        // Tasks of kind `a` can start.
        assert_eq!(words(&overview(vec![now("odd", Ready, 1), now("a", Ready, 1)])), ["next", "unserved"]);
        let paused = Overview { paused: true, ..overview(vec![now("a", Leased, 1)]) };
        assert_eq!(words(&paused), ["paused"]);
        let limited = Settings { max_running: Some(2), ..Settings::default() };
        let full = Overview { settings: limited, ..overview(vec![now("a", Leased, 2)]) };
        assert_eq!(QueueStatus::of(&full, None).condition, Condition::Running { running: 2, limit: Some(2) });
    }

    #[test]
    fn lost_tasks_do_not_run() {
        let counts = vec![now("a", State::Leased, 2), now("a", State::Ready, 1)];
        let dead = Overview { workers: 0, lost: 2, ..overview(counts.clone()) };
        assert_eq!(words(&dead), ["no_worker", "lost"]);
        assert_eq!(
            words(&Overview { workers: 0, ..overview(vec![now("a", State::Ready, 1)]) }),
            ["no_worker"]
        );
        let some = Overview { lost: 1, ..overview(counts.clone()) };
        let status = QueueStatus::of(&some, None);
        assert_eq!(status.condition, Condition::Running { running: 1, limit: None });
        assert_eq!(status.also, [Condition::Lost { tasks: 1 }]);
        assert_eq!(words(&Overview { lost: 2, ..overview(counts) }), ["next", "lost"]);
        assert_eq!(words(&Overview { lost: 2, ..overview(vec![now("a", State::Leased, 2)]) }), ["lost"]);
        // The lost task holds the key that the others wait for.
        let keyed = overview(vec![now("a", State::Leased, 1), now("a", State::Blocked, 4)]);
        assert_eq!(words(&Overview { lost: 1, ..keyed }), ["lost"]);
    }

    #[test]
    fn partial_pauses_are_always_listed() {
        let kinds = vec![paused_kind("a"), paused_kind("b")];
        let all = Overview { kinds: kinds.clone(), ..overview(vec![now("a", State::Blocked, 2)]) };
        let status = QueueStatus::of(&all, None);
        let paused = |name: &str, tasks| Condition::KindPaused {
            kind: kind(name),
            tasks,
            since: Some(Micros::new(7)),
        };
        assert_eq!(status.condition, paused("a", 2));
        assert_eq!(status.also, [paused("b", 0)]);
        let counts = vec![now("a", State::Ready, 2), now("c", State::Leased, 1)];
        assert_eq!(words(&Overview { kinds, ..overview(counts) }), ["running", "kind_paused", "kind_paused"]);
        let keys = vec![paused_key(45)];
        let only = Overview { paused_keys: keys.clone(), ..overview(vec![now("a", State::Blocked, 45)]) };
        assert_eq!(words(&only), ["key_paused"]);
        let some = Overview { paused_keys: keys.clone(), ..overview(vec![now("a", State::Blocked, 46)]) };
        assert_eq!(words(&some), ["key", "key_paused"]);
        let none = Overview { paused_keys: keys, ..overview(Vec::new()) };
        assert_eq!(words(&none), ["empty", "key_paused"]);
        let paused = Overview { paused: true, workers: 0, ..overview(vec![now("a", State::Ready, 1)]) };
        assert_eq!(words(&paused), ["paused", "no_worker"]);
        assert_eq!(words(&Overview { paused: true, ..overview(Vec::new()) }), ["empty", "paused"]);
    }

    #[test]
    fn rate_is_reported_last() {
        use interval_queue::contract::{Rates, Record, Settings as PaceSettings};
        let settings = PaceSettings { rates: Rates::every(Micros::new(10)), max_running: None };
        let at = Micros::new(50);
        let pace = |change: fn(&mut Record)| {
            let mut record = Record::new(settings);
            change(&mut record);
            Snapshot { at, record }
        };
        let waits = overview(vec![now("a", State::Ready, 1)]);
        let of = |overview: &Overview, pace: &Snapshot| QueueStatus::of(overview, Some(pace)).condition;
        let free = pace(|_| {});
        assert_eq!(of(&waits, &free), Condition::Rate { status: StartStatus::Empty });
        assert_eq!(of(&waits, &pace(|record| record.paused = true)), Condition::RatePaused);
        let held = pace(|record| record.held_until = Micros::new(53));
        assert_eq!(of(&waits, &held), Condition::RateHeld { left: Micros::new(3) });
        assert_eq!(of(&Overview { workers: 0, ..waits.clone() }, &free), Condition::NoWorker);
        let running = overview(vec![now("a", State::Leased, 1)]);
        let status = QueueStatus::of(&running, Some(&held));
        assert_eq!(status.also, [Condition::RateHeld { left: Micros::new(3) }]);
    }
}
