//! `tasks times`: how long tasks waited and ran.

use std::{collections::BTreeSet, time::Duration};

use clap::Args;
use interval_queue::Micros;
use interval_queue_documents::{
    KindTimes, Times as Document,
    duration::positive,
    words::{self, show},
};
use interval_queue_tasks::{Counter, Histogram, KEEP_TIMES, Kind, Times as Hour};

use crate::{
    add::kind,
    args::Target,
    exit::{Failure, NOINPUT, USAGE, print},
    json_output::print_json,
    table::{room, table},
};

/// Show how long tasks waited and how long they ran, by kind.
///
/// A wait is from the adding of a task, or from its time, to the lease. A run is from the lease to
/// its reported end, also of failed runs. Durations are rounded up to powers of two milliseconds,
/// counted for whole hours, and kept for a week.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  interval-queue tasks times\n  \
    interval-queue tasks times --since 7days --kind mail --by-hour")]
pub(super) struct Times {
    /// Only this kind; may be given several times. Default: all kinds
    #[arg(long = "kind", value_name = "KIND", value_parser = kind)]
    kinds: Vec<Kind>,
    /// How far to go back, rounded to whole hours; at most 7days
    #[arg(long, value_name = "DURATION", default_value = "1day", value_parser = positive)]
    since: Duration,
    /// Print a line for each hour
    #[arg(long)]
    by_hour: bool,
    /// Print one JSON object; `interval-queue schema tasks` describes its fields
    #[arg(long)]
    json: bool,
}

pub(super) async fn times(target: &Target, args: &Times) -> Result<(), Failure> {
    let since = Micros::from_duration(args.since);
    if since > KEEP_TIMES {
        let text = format!("--since {}: times are kept for a week: give at most 7days", show(args.since));
        return Err(Failure::new(USAGE, text));
    }
    let (queue, overview) = target.tasks_and_overview().await?;
    let run = overview.counts.iter().filter(|(_, counted, _)| *counted == Counter::EverLeased);
    let mut kinds: BTreeSet<_> = run.map(|(kind, ..)| kind.clone()).collect();
    kinds.retain(|kind| args.kinds.is_empty() || args.kinds.contains(kind));
    let mut all = Vec::new();
    for kind in kinds {
        let hours = queue.times(&kind, args.since).await?;
        if let Some((first, others)) = hours.split_first() {
            let mut sum = first.clone();
            others.iter().for_each(|other| sum += other);
            all.push((kind, sum, hours));
        }
    }
    if args.json {
        let kinds = all.iter().map(|(kind, sum, hours)| KindTimes::of(kind, sum, hours)).collect();
        let since_us = (overview.at - since).get() / HOUR * HOUR;
        return print_json(&Document { kinds, since_us });
    }
    if all.is_empty() {
        return Err(Failure::new(NOINPUT, format!("no task started within {}", show(args.since))));
    }
    let hours = |(kind, sum, hours): &(Kind, Hour, Vec<Hour>)| {
        let hours = if args.by_hour { hours.clone() } else { vec![sum.clone()] };
        hours.into_iter().map(|hour| row(kind, args.by_hour.then_some(hour.hour), &hour)).collect::<Vec<_>>()
    };
    let rows: Vec<_> = all.iter().flat_map(hours).collect();
    let first = if args.by_hour { "kind, hour" } else { "kind" };
    print(&table(
        [first, "begun", "waited: half", "90%", "99%", "ended", "ran: half", "90%", "99%"],
        &rows,
        room(),
    ))
}

const HOUR: u64 = 3_600_000_000;

fn row(kind: &Kind, hour: Option<Micros>, times: &Hour) -> [String; 9] {
    let hour = hour.map_or(String::new(), |hour| format!(", {}", words::time(hour)));
    let [begun, waited @ ..] = cells(&times.wait);
    let [ended, ran @ ..] = cells(&times.run);
    let [w50, w90, w99] = waited;
    let [r50, r90, r99] = ran;
    [format!("{}{hour}", words::line(kind.as_str())), begun, w50, w90, w99, ended, r50, r90, r99]
}

/// The number of waits or runs, and upper bounds of their durations.
fn cells(of: &Histogram) -> [String; 4] {
    let within = |share| of.quantile(share).map_or("–".into(), |most| format!("< {}", show(most)));
    [words::number(of.number()), within(0.5), within(0.9), within(0.99)]
}
