//! Looks at the store while a scene plays: limits hold and counts are what is stored at every look.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
};

use interval_queue::{connect, contract::QueueName};
use interval_queue_tasks::{
    Cursor, Error, Order, Overview, Page, Selector, State, Stored, TaskId, TaskStore, Token,
    contract::{Command, Counted, MAX_PAGE, Read, Reply},
};
use tokio::runtime::{Builder, Runtime};

use crate::process::{QUEUE, ms, now};

/// A process that looks at the store alone, by commands that change nothing.
pub(crate) struct Reader {
    runtime: Runtime,
    url: String,
    store: Option<Arc<dyn TaskStore>>,
}

impl Reader {
    pub(crate) fn new(url: &str) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        Self { runtime, url: url.to_owned(), store: None }
    }

    fn read(&mut self, read: Read) -> Result<Reply, Error> {
        let Self { runtime, url, store } = self;
        runtime.block_on(async {
            let store = match store {
                Some(store) => store,
                None => store.insert(connect(url).await?.tasks().await?),
            };
            Ok(store.apply(&QueueName::new(QUEUE).unwrap(), Command::Read(read)).await?)
        })
    }

    pub(crate) fn overview(&mut self) -> Result<Overview, Error> {
        match self.read(Read::Overview)? {
            Reply::Overview(overview) => Ok(*overview),
            other => panic!("{other:?}"),
        }
    }

    fn page(&mut self, states: &[State], after: Option<Cursor>) -> Result<Page, Error> {
        let selector = Selector::states(states.iter().copied());
        let after = after.unwrap_or(Order::Oldest.start());
        match self.read(Read::Page { selector, after, limit: MAX_PAGE, bodies: false })? {
            Reply::Page(page) => Ok(page),
            other => panic!("{other:?}"),
        }
    }

    /// Of each of these tasks whether it is there.
    pub(crate) fn are_there(&mut self, ids: &[TaskId]) -> Vec<bool> {
        match self.read(Read::Tasks(ids.to_vec())).unwrap() {
            Reply::Tasks(tasks) => tasks.iter().map(Option::is_some).collect(),
            other => panic!("{other:?}"),
        }
    }

    /// How many have not ended; none: the store does not say.
    pub(crate) fn left(&mut self) -> Option<u64> {
        let overview = self.overview().ok()?;
        let is_left = |counted: &Counted| matches!(counted, Counted::Now(state) if !state.is_ended());
        Some(
            overview
                .counts
                .iter()
                .filter(|(_, counted, _)| is_left(counted))
                .map(|(_, _, count)| count)
                .sum(),
        )
    }

    /// All tasks, of which none is changed meanwhile. Their counts are right.
    pub(crate) fn all(&mut self) -> BTreeMap<TaskId, Stored> {
        let overview = self.overview().unwrap();
        let mut all = BTreeMap::new();
        let mut after = None;
        loop {
            let page = self.page(&State::ALL, after).unwrap();
            all.extend(page.tasks.into_iter().map(|stored| (stored.task.id, stored)));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(counted(&overview, &State::ALL), stored(all.values()), "T10: counts are what is stored");
        all
    }
}

/// How many tasks there are in each of these states, as the store counts them.
fn counted(overview: &Overview, states: &[State]) -> BTreeMap<State, u64> {
    let mut counts = BTreeMap::new();
    for (_, counted, count) in &overview.counts {
        if let Counted::Now(state) = counted
            && states.contains(state)
            && *count > 0
        {
            *counts.entry(*state).or_default() += count;
        }
    }
    counts
}

/// The same of tasks that were listed.
fn stored<'a>(tasks: impl Iterator<Item = &'a Stored>) -> BTreeMap<State, u64> {
    let mut counts = BTreeMap::new();
    tasks.for_each(|stored| *counts.entry(stored.task.state).or_default() += 1);
    counts
}

/// What was seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// How often it was looked.
    pub(crate) looks: usize,
    /// How often nothing changed between two counts, so that they could be compared.
    pub(crate) compared: usize,
    pub(crate) wrong: Vec<String>,
    tokens: BTreeMap<TaskId, Token>,
}

impl Seen {
    fn look(&mut self, reader: &mut Reader, forgets: &AtomicU64) -> Result<(), Error> {
        const LEFT: [State; 6] =
            [State::Added, State::Waiting, State::Scheduled, State::Blocked, State::Ready, State::Leased];
        let before = reader.overview()?;
        let page = reader.page(&LEFT, None)?;
        let after = reader.overview()?;
        self.looks += 1;
        if before.counts == after.counts && page.next.is_none() {
            self.compared += 1;
            let (counted, stored) = (counted(&before, &LEFT), stored(page.tasks.iter()));
            if counted != stored {
                self.wrong.push(format!("T10: {counted:?} are counted, and {stored:?} are stored"));
            }
        }
        if now() < forgets.load(Ordering::Relaxed) {
            // What a worker still runs is its own again, whatever was leased meanwhile.
            self.tokens.clear();
            return Ok(());
        }
        let leased: Vec<_> =
            page.tasks.iter().map(|stored| &stored.task).filter(|task| task.state == State::Leased).collect();
        if let (Some(limit), true) = (before.settings.max_running, before.settings == after.settings)
            && leased.len() > limit as usize
        {
            self.wrong.push(format!("T6: {} leases live, and the limit is {limit}", leased.len()));
        }
        let mut keys = BTreeMap::new();
        for task in leased {
            if let Some(key) = &task.key
                && let Some(other) = keys.insert(key.clone(), task.id)
            {
                self.wrong.push(format!("T6: {other} and {} of key {key} are leased at once", task.id));
            }
            let last = self.tokens.insert(task.id, task.token);
            if last.is_some_and(|last| last > task.token) {
                self.wrong.push(format!("T2: the token of {} fell from {last:?} to {}", task.id, task.token));
            }
        }
        Ok(())
    }
}

/// Looks in a thread of its own.
pub(crate) struct Looks {
    stop: Arc<AtomicBool>,
    /// Until when the store may know less than workers, since it was made to forget something.
    pub(crate) forgets: Arc<AtomicU64>,
    thread: JoinHandle<Seen>,
}

impl Looks {
    pub(crate) fn begin(url: &str) -> Self {
        let (stop, forgets) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let (told, has_forgotten, url) = (stop.clone(), forgets.clone(), url.to_owned());
        let thread = thread::spawn(move || {
            let (mut seen, mut reader) = (Seen::default(), Reader::new(&url));
            while !told.load(Ordering::Relaxed) {
                // A store that is out of reach is looked at again.
                let _ = seen.look(&mut reader, &has_forgotten);
                thread::sleep(ms(20));
            }
            seen
        });
        Self { stop, forgets, thread }
    }

    pub(crate) fn end(self) -> Seen {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}
