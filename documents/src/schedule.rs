//! Schedules, as `schedule list` prints them.

use std::time::{SystemTime, UNIX_EPOCH};

use interval_queue_tasks::{Json, State, StoredSchedule, contract::Overlap};
use schemars::JsonSchema;
use serde::Serialize;

use crate::schema;

/// A schedule: `schedule list --json` prints one per line.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "schedule", title = "A schedule")]
pub struct Schedule {
    /// The kind of its tasks; null if the schedule cannot be read.
    pub kind: Option<String>,
    /// The last task that it added; null: none.
    pub last: Option<LastTask>,
    /// Which missed instants add tasks: instants that came while no worker polled. null if the
    /// schedule cannot be read.
    pub missed: Option<Missed>,
    /// Its name.
    #[schemars(length(min = 1, max = 200))]
    pub name: String,
    /// Its next instants, as many as `--next` requests, in microseconds since 1970. Empty if it is
    /// paused, cannot be read, or depends on the end of its last task.
    pub next_us: Vec<u64>,
    /// Effect of an instant while the previous task has not ended: it adds a task all the same, adds
    /// none, or adds one when that task has ended.
    #[schemars(with = "schema::Anything", extend("enum" = ["allow", "skip", "keep"]))]
    pub overlap: Overlap,
    /// Whether it adds no tasks.
    pub paused: bool,
    /// The payload of its tasks; null if the schedule cannot be read.
    #[schemars(with = "schema::Anything")]
    pub payload: Option<Json>,
    /// Its rule; null if the schedule cannot be read. Later versions may add rules.
    pub rule: Option<Rule>,
    /// Why it cannot be read, such as a newer version that stored it; null: it can.
    pub unread: Option<String>,
}

impl Schedule {
    /// A schedule with its next instants, at most `instants`, and the state of its last task if
    /// that is stored.
    pub fn of(schedule: &StoredSchedule, instants: usize, last: Option<State>) -> Self {
        Self {
            kind: schedule.kind().map(ToString::to_string),
            last: schedule.last.map(|id| LastTask { id: id.to_string(), state: last.map(State::as_str) }),
            missed: schedule.missed().map(Missed::of),
            name: schedule.name.to_string(),
            next_us: schedule.next_runs(instants).into_iter().map(micros).collect(),
            overlap: schedule.overlap,
            paused: schedule.paused,
            payload: schedule.payload().cloned(),
            rule: schedule.rule().map(Rule::of),
            unread: schedule.unread.clone(),
        }
    }
}

fn micros(at: SystemTime) -> u64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// When a schedule adds tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "rule", title = "The rule of a schedule")]
pub enum Rule {
    /// Whole intervals after 1970-01-01 00:00 UTC plus the offset.
    Every(Every),
    /// The times of a cron line.
    Cron(Cron),
    /// A time after the previous task has ended.
    AfterEnd(AfterEnd),
    /// A rule of a later version.
    #[schemars(skip)]
    Other,
}

impl Rule {
    fn of(rule: &interval_queue_tasks::Rule) -> Self {
        use interval_queue_tasks::Rule as Stored;
        match rule {
            Stored::Every { every_us, offset_us } => {
                Self::Every(Every { every_us: every_us.get(), offset_us: offset_us.get() })
            }
            Stored::Cron { line, zone } => Self::Cron(Cron { line: line.clone(), zone: zone.clone() }),
            Stored::AfterEnd { after_us } => Self::AfterEnd(AfterEnd { after_us: after_us.get() }),
            _ => Self::Other,
        }
    }
}

/// At an interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "every")]
pub struct Every {
    /// The interval, in microseconds.
    #[schemars(range(min = 1))]
    pub every_us: u64,
    /// The offset, less than the interval, in microseconds.
    pub offset_us: u64,
}

/// By a cron line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "cron")]
pub struct Cron {
    /// Minute, hour, day of the month, month, day of the week.
    pub line: String,
    /// The IANA name of the time zone.
    pub zone: String,
}

/// After the end of the previous task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "after_end")]
pub struct AfterEnd {
    /// Time after the end, in microseconds.
    #[schemars(range(min = 1))]
    pub after_us: u64,
}

/// Which missed instants add tasks: none, the last one, or the last ones up to a number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "missed", title = "Missed instants")]
pub enum Missed {
    /// None, or the last one.
    Word(#[schemars(extend("enum" = ["none", "last"]))] &'static str),
    /// The last ones, up to a number.
    UpTo(UpTo),
}

/// Missed instants up to a number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "up_to")]
pub struct UpTo {
    /// The number.
    #[schemars(range(min = 1, max = 1000))]
    pub up_to: u32,
}

impl Missed {
    fn of(missed: interval_queue_tasks::Missed) -> Self {
        match missed {
            interval_queue_tasks::Missed::None => Self::Word("none"),
            interval_queue_tasks::Missed::UpTo(up_to) => Self::UpTo(UpTo { up_to }),
            _ => Self::Word("last"),
        }
    }
}

/// The last task of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "last", title = "The last task of a schedule")]
pub struct LastTask {
    /// Its id.
    pub id: String,
    /// Its state; null: it is deleted.
    pub state: Option<&'static str>,
}
