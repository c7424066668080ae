//! What a queue does with its schedules.

use std::sync::Arc;

use interval_queue::Micros;
use interval_queue_task_contract::{
    Add, Added, Change, Command, Key, NewSchedule, NewTask, Read, Reply, Schedule as Row, TaskId,
};
use uuid::Uuid;

use super::{Definition, Schedule, StoredSchedule, named};
use crate::{
    TaskQueue,
    error::{Error, ErrorKind},
    queue::unexpected,
};

impl TaskQueue {
    /// Stores a schedule, or changes the one of its name for all, from now on: what was missed before is not made up
    /// for. Said again as it is stored, it changes nothing, so that every process can say it when it starts; whether it
    /// is paused stays as it is. Keep to some hundreds in a queue: each step of an idle worker looks at all of them.
    ///
    /// # Errors
    ///
    /// [`Invalid`](ErrorKind::Invalid) for a schedule that cannot be, such as one that never comes; the text names the
    /// value and what would be right. [`Store`](ErrorKind::Store) and [`Unanswered`](ErrorKind::Unanswered) if the
    /// store fails; to say it again is safe.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it was stored or not; to say it again is safe.
    pub async fn set_schedule(&self, schedule: Schedule) -> Result<(), Error> {
        let (name, definition) = schedule.definition()?;
        let overview = self.overview().await?;
        let first = definition.first(overview.at)?;
        let (size, most) = (definition.task.payload.as_str().len(), overview.settings.max_payload);
        if size > most as usize {
            let text = format!(
                "the payload of schedule {:?} has {size} bytes: this queue stores at most {most}",
                schedule.name
            );
            return Err(Error::invalid(text));
        }
        let stored = self.find_schedule(&name).await?;
        let is_same = |row: &Row| {
            row.overlap == schedule.overlap && Definition::read(row).is_ok_and(|stored| stored == definition)
        };
        if stored.as_ref().is_some_and(is_same) {
            return Ok(());
        }
        self.put_schedule(NewSchedule {
            name,
            definition: definition.to_json()?,
            next: Some(first),
            paused: stored.map_or(schedule.paused, |stored| stored.paused),
            overlap: schedule.overlap,
        })
        .await
    }

    /// All schedules, by name.
    ///
    /// # Errors
    ///
    /// [`Store`](ErrorKind::Store) and [`Unanswered`](ErrorKind::Unanswered) if the store fails.
    pub async fn schedules(&self) -> Result<Vec<StoredSchedule>, Error> {
        Ok(self.read_schedules().await?.iter().map(StoredSchedule::of).collect())
    }

    /// A schedule makes nothing any more, until it is resumed. What it has made stays. The instants that come meanwhile
    /// make no task, nor does one that was kept.
    ///
    /// # Errors
    ///
    /// [`Missing`](ErrorKind::Missing) if there is no such schedule; else as [`schedules`](Self::schedules).
    pub async fn pause_schedule(&self, name: impl AsRef<str>) -> Result<(), Error> {
        let row = self.stored_schedule(name.as_ref()).await?;
        self.put_schedule(NewSchedule { paused: true, ..as_stored(row) }).await
    }

    /// Ends a pause. It goes on with the first instant behind now.
    ///
    /// # Errors
    ///
    /// As [`pause_schedule`](Self::pause_schedule).
    pub async fn resume_schedule(&self, name: impl AsRef<str>) -> Result<(), Error> {
        let row = self.stored_schedule(name.as_ref()).await?;
        if !row.paused {
            return Ok(());
        }
        let next = match Definition::read(&row) {
            Ok(definition) => Some(definition.first(self.overview().await?.at)?),
            // Whoever can read it does what it says of missed instants.
            Err(_) => row.next,
        };
        self.put_schedule(NewSchedule { paused: false, next, ..as_stored(row) }).await
    }

    /// Removes a schedule. What it has made stays.
    ///
    /// # Errors
    ///
    /// As [`pause_schedule`](Self::pause_schedule).
    pub async fn remove_schedule(&self, name: impl AsRef<str>) -> Result<(), Error> {
        let row = self.stored_schedule(name.as_ref()).await?;
        match self.changed(Change::Unschedule(row.name)).await {
            // Somebody else did, or it was done by a try whose answer was lost.
            Err(error) if error.kind() == ErrorKind::Missing => Ok(()),
            changed => changed.map(drop),
        }
    }

    /// Adds a task as the schedule would make it, now: beside the schedule, whether it is paused and whatever runs.
    /// What became of it is told as by [`add`](Self::add).
    ///
    /// # Errors
    ///
    /// [`Missing`](ErrorKind::Missing) if there is no such schedule, [`Mismatch`](ErrorKind::Mismatch) if a newer
    /// version has stored it; else as [`add`](Self::add).
    ///
    /// # Cancel safety
    ///
    /// Dropped, it was added or not, and nobody knows its id.
    pub async fn run_schedule(&self, name: impl AsRef<str>) -> Result<Added, Error> {
        let row = self.stored_schedule(name.as_ref()).await?;
        let definition =
            Definition::read(&row).map_err(|error| Error::new(ErrorKind::Mismatch, error.to_string()))?;
        let task = NewTask { id: TaskId::new(Uuid::now_v7()), ..definition.task };
        let host = &self.shared.host;
        let began = host.now();
        let age = || Micros::from_duration(host.now().saturating_duration_since(began));
        let (tasks, sequence): (Arc<[NewTask]>, u32) = ([task].into(), self.shared.sequence(1));
        let add = || Command::Add(Add { tasks: tasks.clone(), sequence, age: age() });
        let added = match self.shared.repeat("the add", add).await? {
            Reply::Added(added) => added.first().copied(),
            other => return Err(unexpected(&other)),
        };
        let added = added.ok_or_else(|| Error::invalid("the store added nothing"))?;
        tasks.iter().for_each(|task| self.shared.telemetry.added(task, added));
        Ok(added)
    }

    async fn read_schedules(&self) -> Result<Vec<Row>, Error> {
        match self.shared.insist("the look", Command::Read(Read::Schedules)).await? {
            Reply::Schedules(schedules) => Ok(schedules),
            other => Err(unexpected(&other)),
        }
    }

    async fn find_schedule(&self, name: &Key) -> Result<Option<Row>, Error> {
        Ok(self.read_schedules().await?.into_iter().find(|row| row.name == *name))
    }

    async fn stored_schedule(&self, name: &str) -> Result<Row, Error> {
        let key = named(name)?;
        let text = format!("there is no schedule {name:?} in this queue: it was removed, or never set");
        self.find_schedule(&key).await?.ok_or_else(|| Error::new(ErrorKind::Missing, text))
    }

    async fn put_schedule(&self, schedule: NewSchedule) -> Result<(), Error> {
        self.changed(Change::Schedule(schedule)).await.map(drop)
    }
}

/// What is stored, to be stored again with a change.
fn as_stored(row: Row) -> NewSchedule {
    let Row { name, definition, next, paused, overlap, .. } = row;
    NewSchedule { name, definition, next, paused, overlap }
}
