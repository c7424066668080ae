//! Schedules: tasks that are made again and again, at instants that the workers compute.
//!
//! `rule` has the instants, `cron` those of a cron line, `definition` what is stored and what becomes of an instant
//! that has come. `control` is what a queue does with schedules, `stored` how one is seen. The worker fires them.

mod control;
mod cron;
mod definition;
mod rule;
mod stored;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use interval_queue::{InvalidInput, Micros, contract::name::check_some};
use interval_queue_task_contract::{Key, MAX_KEY, Overlap};
use serde::{Deserialize, Serialize};

pub(crate) use self::definition::Definition;
pub use self::{rule::Rule, stored::StoredSchedule};
use crate::{Task, error::Error};

/// Tasks that are made again and again: a name, a rule that says when, and a task as the template of all. It is stored
/// with the queue by [`set_schedule`](crate::TaskQueue::set_schedule), and whichever [worker](crate::Worker) steps
/// first makes the task of an instant: exactly one for each nominal instant, however many workers there are and
/// whatever becomes of them.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// use interval_queue_tasks::{Missed, Overlap, Schedule, Task, TaskQueue};
///
/// let queue = TaskQueue::builder("shop").connect("memory:").await?;
/// let report = Task::new("report", &"sales").max_attempts(3);
/// queue.set_schedule(Schedule::cron("nightly", "30 2 * * *", "Europe/Berlin", report)).await?;
///
/// let poll = Schedule::every("poll", Duration::from_secs(60), Task::new("poll", &())).overlap(Overlap::Skip);
/// queue.set_schedule(poll.missed(Missed::None)).await?;
/// assert_eq!(queue.schedules().await?.len(), 2);
/// # Ok(())
/// # }
/// ```
///
/// # Daylight saving time
///
/// A cron line goes by the clock of its time zone. What falls into an hour that this clock leaves out runs once, at the
/// instant at which the clock has jumped; what falls into an hour that it shows twice runs once, the first time. A line
/// that names every hour, as `*`, `*/1` or `0-23`, goes by the time that passes instead: in a night of 25 hours
/// `*/15 * * * *` runs 100 times, and in one of 23 hours 92 times. The rules of the zones are those of the host of the
/// worker, or where it has none those of the crate `jiff`.
///
/// # Missed instants
///
/// Instants come while no worker steps, or the store is away. The first worker afterwards does what
/// [`missed`](Self::missed) says. A clock that is stepped forward passes instants as an outage does; stepped back, it
/// makes none a second time, and the next one when it has come to it.
#[derive(Clone, Debug)]
#[must_use = "nothing is stored before it is given to a queue"]
pub struct Schedule {
    name: String,
    rule: Rule,
    task: Task,
    missed: Missed,
    overlap: Overlap,
    paused: bool,
}

/// What becomes of instants that came while no worker was there to make their tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Missed {
    /// They make no task; a worker that is late by a minute has missed nothing yet.
    None,
    /// The last one makes its task. The default.
    #[default]
    Last,
    /// The last ones make their tasks, at most so many: 1 to 1,000. If [`Overlap`] lets no two run at once, the last
    /// one alone.
    UpTo(u32),
}

impl Missed {
    /// The most that are made up for.
    const MOST: u32 = 1_000;
}

impl Schedule {
    /// A task every so often, over all workers: 1 s to ten years. The instants are whole intervals since 1970-01-01
    /// 00:00 UTC: every hour is on the hour, and stays there whenever this is said again.
    pub fn every(name: impl Into<String>, interval: Duration, task: Task) -> Self {
        let every_us = Micros::from_duration(interval);
        Self::new(name, Rule::Every { every_us, offset_us: Micros::ZERO }, task)
    }

    /// A task at the times of a cron line: minute, hour, day of the month, month and day of the week, in a time zone of
    /// the IANA database, such as `Europe/Berlin` or `UTC`.
    ///
    /// Each is `*`, a number, the first three letters of the English name of a month or day, a range as `9-17`, each of
    /// these with a step as `*/5`, or several of them with commas. Sunday is 0 or 7. If neither day begins with `*`,
    /// one of them is enough. There are no seconds, no years, and no names such as `@daily`.
    pub fn cron(
        name: impl Into<String>,
        line: impl Into<String>,
        zone: impl Into<String>,
        task: Task,
    ) -> Self {
        Self::new(name, Rule::Cron { line: line.into(), zone: zone.into() }, task)
    }

    /// A task so long after the one before has ended, however it ended: 1 s to ten years; the first one at once. So it
    /// never overlaps itself, and nothing is missed.
    pub fn after_end(name: impl Into<String>, after: Duration, task: Task) -> Self {
        Self::new(name, Rule::AfterEnd { after_us: Micros::from_duration(after) }, task)
    }

    fn new(name: impl Into<String>, rule: Rule, task: Task) -> Self {
        let (missed, overlap) = (Missed::default(), Overlap::default());
        Self { name: name.into(), rule, task, missed, overlap, paused: false }
    }

    /// The instants of [`every`](Self::every) are so much later. Default: zero. Of others nothing changes.
    pub fn offset(mut self, offset: Duration) -> Self {
        if let Rule::Every { every_us, offset_us } = &mut self.rule {
            // An interval of zero is told when it is set.
            *offset_us = Micros::new(Micros::from_duration(offset).get() % every_us.get().max(1));
        }
        self
    }

    /// What becomes of instants that came while no worker was there. Default: [`Missed::Last`].
    pub fn missed(mut self, missed: Missed) -> Self {
        self.missed = missed;
        self
    }

    /// What happens at an instant that comes while the task before has not ended. Default: [`Overlap::Allow`].
    pub fn overlap(mut self, overlap: Overlap) -> Self {
        self.overlap = overlap;
        self
    }

    /// It makes nothing until it is [resumed](crate::TaskQueue::resume_schedule). One that is stored already stays as
    /// it is in this.
    pub fn paused(mut self) -> Self {
        self.paused = true;
        self
    }

    /// Its instants behind a time, at most so many, without a queue: what it would do. None for
    /// [`after_end`](Self::after_end), which nobody knows ahead.
    ///
    /// ```
    /// use std::time::{Duration, UNIX_EPOCH};
    /// use interval_queue_tasks::{Schedule, Task};
    ///
    /// let hour = Duration::from_secs(3600);
    /// let schedule = Schedule::every("clock", hour, Task::new("strike", &())).offset(hour / 2);
    /// assert_eq!(schedule.preview(UNIX_EPOCH, 2).unwrap(), [UNIX_EPOCH + hour / 2, UNIX_EPOCH + hour * 3 / 2]);
    /// ```
    ///
    /// # Errors
    ///
    /// [`Invalid`](crate::ErrorKind::Invalid) for a schedule that cannot be.
    pub fn preview(&self, after: SystemTime, most: usize) -> Result<Vec<SystemTime>, Error> {
        let (_, definition) = self.definition()?;
        let first = definition.first(micros(after))?;
        Ok(if definition.follows() { Vec::new() } else { definition.times(first, most) })
    }

    /// Its name and what is stored of it.
    fn definition(&self) -> Result<(Key, Definition), Error> {
        let name = named(&self.name)?;
        let task = self.task.clone().finish()?;
        Ok((name, Definition::new(self.rule.clone(), self.missed, task)?))
    }
}

fn named(name: &str) -> Result<Key, InvalidInput> {
    check_some("schedule", name, MAX_KEY)?;
    Key::new(name)
}

/// On the clock of the host, as people are told of it.
fn time(at: Micros) -> SystemTime {
    UNIX_EPOCH + at.to_duration()
}

/// What lies before 1970 is taken for that.
fn micros(time: SystemTime) -> Micros {
    Micros::from_duration(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}
