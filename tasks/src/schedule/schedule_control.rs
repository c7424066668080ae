//! Methods of [`TaskQueue`] for schedules.

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
    /// Stores a schedule, or replaces the one of this name from now on. Missed instants are not
    /// made up for. A stored schedule keeps its pause state. An unchanged schedule is left alone,
    /// so every process can set it when it starts. Keep to some hundreds per queue: each poll of an
    /// idle worker reads all schedules.
    ///
    /// # Errors
    ///
    /// [`Invalid`](ErrorKind::Invalid) for an invalid schedule, such as one without instants; the
    /// text names the value and what would be right. [`Codec`](ErrorKind::Codec) if the queue's codec
    /// does not encode the payload. [`Store`](ErrorKind::Store) and
    /// [`Unanswered`](ErrorKind::Unanswered) if the store fails; a retry is safe.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the schedule may be stored or not. A retry is safe.
    pub async fn set_schedule(&self, schedule: Schedule) -> Result<(), Error> {
        let (name, definition) = schedule.definition()?;
        let overview = self.overview().await?;
        let first = definition.first(overview.at)?;
        let name_of = format_args!("schedule {:?}", schedule.name);
        let encoded = definition.clone().map_tasks(|task| self.shared.codec.encode_task(name_of, task))?;
        let (size, most) = (encoded.max_payload(), overview.settings.max_payload);
        if size > most as usize {
            let text = format!(
                "the payload of schedule {:?} has {size} bytes: this queue stores at most {most}",
                schedule.name
            );
            return Err(Error::invalid(text));
        }
        let stored = self.find_schedule(&name).await?;
        // A codec may encode equal payloads differently. A payload stored without it is replaced.
        let is_same = |row: &Row| {
            row.overlap == schedule.overlap
                && Definition::read(row).is_ok_and(|stored| {
                    stored == encoded
                        || stored != definition
                            && self.decode_template(stored).is_ok_and(|stored| stored == definition)
                })
        };
        if stored.as_ref().is_some_and(is_same) {
            return Ok(());
        }
        self.put_schedule(NewSchedule {
            name,
            definition: encoded.to_json()?,
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
        let decode = |row: &Row| {
            let mut schedule = StoredSchedule::of(row);
            match schedule.definition.clone().map(|stored| self.decode_template(stored)).transpose() {
                Ok(definition) => schedule.definition = definition,
                Err(error) => schedule.undecoded = Some(error.to_string()),
            }
            schedule
        };
        Ok(self.read_schedules().await?.iter().map(decode).collect())
    }

    /// Pauses a schedule until it is resumed. Instants of the pause, and a kept instant, make no
    /// task. Existing tasks stay.
    ///
    /// # Errors
    ///
    /// [`Missing`](ErrorKind::Missing) if there is no such schedule; else as
    /// [`schedules`](Self::schedules).
    pub async fn pause_schedule(&self, name: impl AsRef<str>) -> Result<(), Error> {
        let row = self.stored_schedule(name.as_ref()).await?;
        self.put_schedule(NewSchedule { paused: true, ..as_stored(row) }).await
    }

    /// Resumes a schedule with the first instant after now.
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
            // A worker that can read the definition handles missed instants.
            Err(_) => row.next,
        };
        self.put_schedule(NewSchedule { paused: false, next, ..as_stored(row) }).await
    }

    /// Removes a schedule. Its tasks stay.
    ///
    /// # Errors
    ///
    /// As [`pause_schedule`](Self::pause_schedule).
    pub async fn remove_schedule(&self, name: impl AsRef<str>) -> Result<(), Error> {
        let row = self.stored_schedule(name.as_ref()).await?;
        match self.changed(Change::Unschedule(row.name)).await {
            // Already removed by another process, or by a try whose answer was lost.
            Err(error) if error.kind() == ErrorKind::Missing => Ok(()),
            changed => changed.map(drop),
        }
    }

    /// Adds the task or flow of the schedule now, even during a pause or while its last task runs.
    /// Returns the same as [`add`](Self::add), for the last task of a flow.
    ///
    /// # Errors
    ///
    /// [`Missing`](ErrorKind::Missing) if there is no such schedule,
    /// [`Mismatch`](ErrorKind::Mismatch) if this version cannot read it; else as
    /// [`add`](Self::add).
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the task may be added or not, under an unknown id.
    pub async fn run_schedule(&self, name: impl AsRef<str>) -> Result<Added, Error> {
        let row = self.stored_schedule(name.as_ref()).await?;
        let definition =
            Definition::read(&row).map_err(|error| Error::new(ErrorKind::Mismatch, error.to_string()))?;
        let tasks: Arc<[NewTask]> = definition.tasks(TaskId::new(Uuid::now_v7())).into();
        let host = &self.shared.host;
        let began = host.now();
        let age = || Micros::from_duration(host.now().saturating_duration_since(began));
        let sequence = self.shared.sequence(tasks.len());
        let add = || Command::Add(Add { tasks: tasks.clone(), sequence, age: age() });
        let added = match self.shared.retry("the add", add).await? {
            Reply::Added(added) => added,
            other => return Err(unexpected(&other)),
        };
        tasks.iter().zip(&added).for_each(|(task, added)| self.shared.telemetry.added(task, *added));
        added.last().copied().ok_or_else(|| Error::invalid("the store added nothing"))
    }

    fn decode_template(&self, definition: Definition) -> Result<Definition, Error> {
        definition.map_tasks(|mut task| {
            if let Some(plain) = self.shared.codec.decode("the payload of its tasks", &task.payload)? {
                task.payload = plain;
            }
            Ok(task)
        })
    }

    async fn read_schedules(&self) -> Result<Vec<Row>, Error> {
        match self.shared.command_with_retries("the read", Command::Read(Read::Schedules)).await? {
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

fn as_stored(row: Row) -> NewSchedule {
    let Row { name, definition, next, paused, overlap, .. } = row;
    NewSchedule { name, definition, next, paused, overlap }
}
