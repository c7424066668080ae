//! Schedules: workers add tasks at computed instants.
//!
//! `definition` is stored and decides about due instants, which `rule` computes, with `cron` for
//! cron lines. `control` has the queue's methods. Firing is in `worker/schedules.rs`.

mod cron;
mod definition;
mod rule;
mod schedule_control;
mod stored;
mod template;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use interval_queue::{InvalidInput, Micros, contract::name::check_some};
use interval_queue_task_contract::{Key, MAX_KEY, Overlap};
use serde::{Deserialize, Serialize};

pub(crate) use self::definition::Definition;
pub use self::{rule::Rule, stored::StoredSchedule, template::Template};
use crate::error::Error;

/// A name, a rule for instants and a [template](Template) of a task or a flow, stored by
/// [`set_schedule`](crate::TaskQueue::set_schedule). The first [worker](crate::Worker) of the queue
/// to poll adds the task of an instant: exactly one per nominal instant, however many workers poll
/// or die.
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
/// A cron line follows the clock of its time zone. A time in a skipped hour runs once, when the
/// clock has jumped. A time in a repeated hour runs once, the first time. A line that names every
/// hour (`*`, `*/1`, `0-23`) follows elapsed time: `*/15 * * * *` runs 100 times in a day of 25
/// hours, and 92 times in one of 23 hours. Zone rules come from the worker's host, else from the
/// crate `jiff`.
///
/// # Flows
///
/// With a [flow](crate::Flow), an instant adds all of its tasks or none. The previous instant has
/// ended when the last task of its flow has, done or not. Unless instants may overlap, the flow has
/// exactly one last task, which waits for all others, directly or not. By default a failure cancels
/// that task while others may still run; with [`OnFailure::Run`](crate::OnFailure::Run) it runs
/// after all of them.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use interval_queue_tasks::TaskQueue;
/// use interval_queue_tasks::{Flow, Overlap, Schedule, Task};
///
/// # let queue = TaskQueue::builder("shop").connect("memory:").await?;
/// let flow = Flow::new()
///     .task("export", Task::new("export", &"sales"))
///     .task("mail", Task::new("mail", &"Ada").after("export"));
/// let schedule = Schedule::cron("nightly", "30 2 * * *", "Europe/Berlin", flow);
/// queue.set_schedule(schedule.overlap(Overlap::Skip)).await?;
/// # Ok(())
/// # }
/// ```
///
/// # Missed instants
///
/// Instants are missed while no worker polls or the store is away. [`missed`](Self::missed) decides
/// what the next worker does. A clock that is stepped forward misses instants, too. One that is
/// stepped back repeats none: the next task comes when the clock reaches the next instant.
#[derive(Clone, Debug)]
#[must_use = "nothing is stored before it is given to a queue"]
pub struct Schedule {
    name: String,
    rule: Rule,
    template: Template,
    missed: Missed,
    overlap: Overlap,
    paused: bool,
}

/// How missed instants are handled: they came while no worker polled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Missed {
    /// Missed instants make no task. A worker up to a minute late has missed nothing.
    None,
    /// The last missed instant makes its task. The default.
    #[default]
    Last,
    /// The last missed instants make their tasks, at most this many: 1 to 1,000. Without
    /// [`Overlap::Allow`], only the last one.
    UpTo(u32),
}

impl Missed {
    const MAX_MISSED: u32 = 1_000;
}

impl Schedule {
    /// A task per interval, 1 s to ten years. Instants are whole intervals since 1970-01-01 00:00
    /// UTC: an interval of an hour is on the hour, however often the schedule is set.
    pub fn every(name: impl Into<String>, interval: Duration, template: impl Into<Template>) -> Self {
        let every_us = Micros::from_duration(interval);
        Self::new(name, Rule::Every { every_us, offset_us: Micros::ZERO }, template.into())
    }

    /// A task at the times of a cron line: minute, hour, day of the month, month and day of the
    /// week, in an IANA time zone such as `Europe/Berlin` or `UTC`.
    ///
    /// Each field is `*`, a number, the first three letters of an English month or day, or a range
    /// such as `9-17`. A step such as `*/5` and lists with commas are allowed. Sunday is 0 or 7. If
    /// neither day field begins with `*`, one match is enough. There are no seconds, no years, and
    /// no names such as `@daily`.
    pub fn cron(
        name: impl Into<String>,
        line: impl Into<String>,
        zone: impl Into<String>,
        template: impl Into<Template>,
    ) -> Self {
        Self::new(name, Rule::Cron { line: line.into(), zone: zone.into() }, template.into())
    }

    /// A task `after` (1 s to ten years) the end of the previous one, however that ended. The first
    /// is added at once. Tasks never overlap, and no instant is missed.
    pub fn after_end(name: impl Into<String>, after: Duration, template: impl Into<Template>) -> Self {
        Self::new(name, Rule::AfterEnd { after_us: Micros::from_duration(after) }, template.into())
    }

    fn new(name: impl Into<String>, rule: Rule, template: Template) -> Self {
        let (missed, overlap) = (Missed::default(), Overlap::default());
        Self { name: name.into(), rule, template, missed, overlap, paused: false }
    }

    /// Moves the instants of [`every`](Self::every) by `offset`. Default: zero. Other rules ignore
    /// it.
    pub fn offset(mut self, offset: Duration) -> Self {
        if let Rule::Every { every_us, offset_us } = &mut self.rule {
            // `set_schedule` rejects an interval of zero.
            *offset_us = Micros::new(Micros::from_duration(offset).get() % every_us.get().max(1));
        }
        self
    }

    /// Sets how missed instants are handled. Default: [`Missed::Last`].
    pub fn missed(mut self, missed: Missed) -> Self {
        self.missed = missed;
        self
    }

    /// Sets how an instant is handled if the previous task has not ended. Default:
    /// [`Overlap::Allow`].
    pub fn overlap(mut self, overlap: Overlap) -> Self {
        self.overlap = overlap;
        self
    }

    /// Adds no tasks until [resumed](crate::TaskQueue::resume_schedule). Ignored if the schedule is
    /// already stored.
    pub fn paused(mut self) -> Self {
        self.paused = true;
        self
    }

    /// Up to `most` instants after `after`, computed without a queue. Empty for
    /// [`after_end`](Self::after_end): its instants depend on the tasks.
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
    /// [`Invalid`](crate::ErrorKind::Invalid) for an invalid schedule.
    pub fn preview(&self, after: SystemTime, most: usize) -> Result<Vec<SystemTime>, Error> {
        let (_, definition) = self.definition()?;
        let first = definition.first(micros(after))?;
        Ok(if definition.follows() { Vec::new() } else { definition.times(first, most) })
    }

    fn definition(&self) -> Result<(Key, Definition), Error> {
        let name = named(&self.name)?;
        let looks_at_last = self.overlap != Overlap::Allow || matches!(self.rule, Rule::AfterEnd { .. });
        let tasks = self.template.clone().finish(looks_at_last)?;
        Ok((name, Definition::new(self.rule.clone(), self.missed, tasks)?))
    }
}

fn named(name: &str) -> Result<Key, InvalidInput> {
    check_some("schedule", name, MAX_KEY)?;
    Key::new(name)
}

fn time(at: Micros) -> SystemTime {
    UNIX_EPOCH + at.to_duration()
}

/// Times before 1970 become 1970.
fn micros(time: SystemTime) -> Micros {
    Micros::from_duration(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}
