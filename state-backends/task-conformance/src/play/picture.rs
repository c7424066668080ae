//! All that a store shows of a queue at one instant.

use std::collections::BTreeMap;

use interval_queue_contract::{QueueName, StateError, StateErrorKind};
use interval_queue_task_contract::{
    Command, Counted, Kind, KindRow, MAX_PAGE, Read, Reply, Schedule, Selector, Settings, State, Stored,
    Task, TaskId, TaskStore, Worker,
};

/// A look at everything.
#[derive(Clone, Debug, Default)]
pub(super) struct Picture {
    pub(super) tasks: BTreeMap<TaskId, Stored>,
    pub(super) settings: Settings,
    pub(super) paused: bool,
    pub(super) counts: BTreeMap<(Kind, Counted), u64>,
    pub(super) kinds: BTreeMap<Kind, KindRow>,
    pub(super) workers: Vec<Worker>,
    pub(super) schedules: Vec<Schedule>,
}

impl Picture {
    /// Looks at all there is. A queue that is not there shows nothing.
    pub(super) async fn of(store: &dyn TaskStore, queue: &QueueName) -> Result<Self, StateError> {
        let read = async |read| store.apply(queue, Command::Read(read)).await;
        let mut picture = Self::default();
        match read(Read::Overview).await {
            Ok(Reply::Overview(overview)) => {
                picture.settings = overview.settings;
                picture.paused = overview.paused;
                picture.counts =
                    overview.counts.into_iter().map(|(kind, counted, n)| ((kind, counted), n)).collect();
                picture.kinds = overview.kinds.into_iter().map(|row| (row.kind.clone(), row)).collect();
            }
            Err(error) if error.kind() == StateErrorKind::NotFound => return Ok(picture),
            other => return Err(odd(other)),
        }
        let mut after = None;
        loop {
            let selector = Selector::states(State::ALL);
            let page = match read(Read::Page { selector, after, limit: MAX_PAGE, bodies: false }).await {
                Ok(Reply::Page(page)) => page,
                other => return Err(odd(other)),
            };
            let ids = page.tasks.iter().map(|stored| stored.task.id).collect();
            match read(Read::Tasks(ids)).await {
                Ok(Reply::Tasks(tasks)) => {
                    picture.tasks.extend(tasks.into_iter().flatten().map(|stored| (stored.task.id, stored)));
                }
                other => return Err(odd(other)),
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        match read(Read::Workers).await {
            Ok(Reply::Workers(workers)) => picture.workers = workers,
            other => return Err(odd(other)),
        }
        match read(Read::Schedules).await {
            Ok(Reply::Schedules(schedules)) => picture.schedules = schedules,
            other => return Err(odd(other)),
        }
        Ok(picture)
    }

    /// The rows of all tasks.
    pub(super) fn rows(&self) -> impl Iterator<Item = &Task> {
        self.tasks.values().map(|stored| &stored.task)
    }

    pub(super) fn task(&self, id: TaskId) -> Option<&Task> {
        self.tasks.get(&id).map(|stored| &stored.task)
    }

    /// How many are leased.
    pub(super) fn running(&self) -> usize {
        self.rows().filter(|x| x.state == State::Leased).count()
    }

    /// Whether tasks of this kind may hold keys.
    pub(super) fn is_open(&self, kind: &Kind) -> bool {
        self.kinds.get(kind).is_some_and(|row| row.open)
    }
}

fn odd(reply: Result<Reply, StateError>) -> StateError {
    match reply {
        Err(error) => error,
        Ok(reply) => {
            StateError::new(StateErrorKind::Damaged, format!("the reply belongs to another look: {reply:?}"))
        }
    }
}
