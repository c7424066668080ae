//! `tasks times`: how long tasks waited and ran, and how many were added and ended.

use std::{collections::BTreeSet, time::Duration};

use clap::Args;
use interval_queue::Micros;
use interval_queue_documents::{
    Days, KindDays, KindTimes, Times as Document,
    duration::positive,
    words::{self, show},
};
use interval_queue_tasks::{
    Counter, DAY, Day, Histogram, KEEP_DAYS, KEEP_TIMES, Kind, TaskQueue, Throughput, Times as Hour,
};

use crate::{
    add::kind,
    args::Target,
    exit::{Failure, NOINPUT, USAGE, print},
    json_output::print_json,
    table::{room, table},
};

/// Show how long tasks waited and how long they ran, and how many were added and ended, by kind.
///
/// A wait is from the adding of a task, or from its time, to the lease. A run is from the lease to
/// its reported end, also of failed runs. Durations are rounded up to powers of two milliseconds.
/// `retried` counts runs after which their task runs again. All is counted for whole hours, and kept
/// for a week; the numbers of tasks are also counted for days in UTC, and kept for 400 days.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  interval-queue tasks times\n  \
    interval-queue tasks times --since 7days --kind mail --by-hour\n  \
    interval-queue tasks times --by-day --since 90days")]
pub(super) struct Times {
    /// Only this kind; may be given several times. Default: all kinds
    #[arg(long = "kind", value_name = "KIND", value_parser = kind)]
    kinds: Vec<Kind>,
    /// How far to go back, rounded to whole hours, at most 7days; with --by-day to whole days, at most
    /// 400days. Default: 1day, with --by-day 30days
    #[arg(long, value_name = "DURATION", value_parser = positive)]
    since: Option<Duration>,
    /// Print a line for each hour
    #[arg(long)]
    by_hour: bool,
    /// Print how many tasks were added and ended, a line for each day
    #[arg(long, conflicts_with = "by_hour")]
    by_day: bool,
    /// Print one JSON object; `interval-queue schema tasks` describes its fields
    #[arg(long)]
    json: bool,
}

impl Times {
    /// How far to go back, checked.
    fn since(&self) -> Result<Duration, Failure> {
        let (default, most, what) = match self.by_day {
            true => (30 * DAY, KEEP_DAYS, "days are kept for 400 days: give at most 400days"),
            false => (DAY, KEEP_TIMES, "times are kept for a week: give at most 7days"),
        };
        let since = self.since.unwrap_or(default);
        if Micros::from_duration(since) > most {
            return Err(Failure::new(USAGE, format!("--since {}: {what}", show(since))));
        }
        Ok(since)
    }
}

pub(super) async fn times(target: &Target, args: &Times) -> Result<(), Failure> {
    let since = args.since()?;
    let (queue, overview) = target.tasks_and_overview().await?;
    let known = overview.counts.iter().filter(|(_, counted, _)| *counted == Counter::EverAdded);
    let mut kinds: BTreeSet<_> = known.map(|(kind, ..)| kind.clone()).collect();
    kinds.retain(|kind| args.kinds.is_empty() || args.kinds.contains(kind));
    let begin = overview.at - Micros::from_duration(since);
    if args.by_day {
        return days(&queue, args, since, kinds, begin).await;
    }
    let mut all = Vec::new();
    for kind in kinds {
        let hours = queue.times(&kind, since).await?;
        if let Some((first, others)) = hours.split_first() {
            let mut sum = first.clone();
            others.iter().for_each(|other| sum += other);
            all.push((kind, sum, hours));
        }
    }
    if args.json {
        let kinds = all.iter().map(|(kind, sum, hours)| KindTimes::of(kind, sum, hours)).collect();
        return print_json(&Document { kinds, since_us: begin.get() / HOUR * HOUR });
    }
    if all.is_empty() {
        let text = format!("no task was added, started or ended within {}", show(since));
        return Err(Failure::new(NOINPUT, text));
    }
    let hours = |(kind, sum, hours): &(Kind, Hour, Vec<Hour>)| {
        let hours = if args.by_hour { hours.clone() } else { vec![sum.clone()] };
        let name = |hour: &Hour| name(kind, args.by_hour.then_some(hour.hour));
        hours.into_iter().map(|hour| (name(&hour), hour)).collect::<Vec<_>>()
    };
    let all: Vec<_> = all.iter().flat_map(hours).collect();
    let first = if args.by_hour { "kind, hour" } else { "kind" };
    let times: Vec<_> = all.iter().map(|(name, hour)| row(name, hour)).collect();
    let times = table(
        [first, "begun", "waited: half", "90%", "99%", "ended", "ran: half", "90%", "99%"],
        &times,
        room(),
    );
    let counts: Vec<_> = all.iter().map(|(name, hour)| counts(name, &hour.throughput)).collect();
    print(&format!("{times}\n\n{}", counts_table(first, &counts)))
}

async fn days(
    queue: &TaskQueue,
    args: &Times,
    since: Duration,
    kinds: BTreeSet<Kind>,
    begin: Micros,
) -> Result<(), Failure> {
    let mut all = Vec::new();
    for kind in kinds {
        let days = queue.days(&kind, since).await?;
        if !days.is_empty() {
            all.push((kind, days));
        }
    }
    if args.json {
        let kinds = all.iter().map(|(kind, days)| KindDays::of(kind, days)).collect();
        return print_json(&Days { kinds, since_us: begin.get() / (24 * HOUR) * (24 * HOUR) });
    }
    if all.is_empty() {
        let text = format!("no task was added or ended within {}", show(since));
        return Err(Failure::new(NOINPUT, text));
    }
    let rows = |(kind, days): &(Kind, Vec<Day>)| {
        let row = |day: &Day| {
            let date = words::time(day.day);
            let date = date.split('T').next().unwrap_or_default();
            counts(&format!("{}, {date}", words::line(kind.as_str())), &day.throughput)
        };
        days.iter().map(row).collect::<Vec<_>>()
    };
    let rows: Vec<_> = all.iter().flat_map(rows).collect();
    print(&counts_table("kind, day", &rows))
}

const HOUR: u64 = 3_600_000_000;

fn name(kind: &Kind, hour: Option<Micros>) -> String {
    let hour = hour.map_or(String::new(), |hour| format!(", {}", words::time(hour)));
    format!("{}{hour}", words::line(kind.as_str()))
}

fn row(name: &str, times: &Hour) -> [String; 9] {
    let [begun, waited @ ..] = cells(&times.wait);
    let [ended, ran @ ..] = cells(&times.run);
    let [w50, w90, w99] = waited;
    let [r50, r90, r99] = ran;
    [name.to_owned(), begun, w50, w90, w99, ended, r50, r90, r99]
}

fn counts_table(first: &str, rows: &[[String; 6]]) -> String {
    table([first, "added", "done", "failed", "retried", "cancelled"], rows, room())
}

fn counts(name: &str, of: &Throughput) -> [String; 6] {
    let [added, done, failed, retried, cancelled] =
        [of.added, of.done, of.failed, of.retried, of.cancelled].map(words::number);
    [name.to_owned(), added, done, failed, retried, cancelled]
}

/// The number, and upper bounds of durations.
fn cells(of: &Histogram) -> [String; 4] {
    let within = |share| of.quantile(share).map_or("–".into(), |most| format!("< {}", show(most)));
    [words::number(of.number()), within(0.5), within(0.9), within(0.99)]
}
