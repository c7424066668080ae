//! `tasks set`: what holds for all tasks of a queue.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use interval_queue::{
    MaxRunning, Micros,
    task_contract::{Change, Command, Keep, Reply, Settings, SettingsChange},
};

use super::{
    ask::{Tasks, unexpected},
    settings::{dump, load},
};
use crate::{
    args::max_running,
    change::running,
    duration::{delay, show},
    exit::{Failure, print},
};

/// Change for all how many tasks run at once, and how long and how many are kept that have ended; print what holds now.
/// Without an option nothing is changed.
///
/// What has ended is kept for 20 minutes at least, and as long as a task waits for it. Of those that are more than may
/// be kept the oldest go.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  interval-queue tasks set --max-running 20\n  \
    interval-queue tasks set --keep-done 7days --most-done 100000 --most-failed none\n  \
    interval-queue tasks set --json > settings.json                  # all of them\n  \
    interval-queue tasks set --queue other --from settings.json      # some or all of them")]
pub(super) struct Set {
    /// How many tasks of the queue run at once, over all workers, or none
    #[arg(long, value_name = "N|none", allow_hyphen_values = true, value_parser = max_running)]
    max_running: Option<MaxRunning>,
    /// How many tasks of one key run at once
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = key_limit)]
    key_limit: Option<u32>,
    /// How long tasks are kept that are done
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = delay)]
    keep_done: Option<Duration>,
    /// How long tasks are kept that failed
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = delay)]
    keep_failed: Option<Duration>,
    /// How long tasks are kept that were cancelled
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = delay)]
    keep_cancelled: Option<Duration>,
    /// How many tasks are kept that are done, or none: any number
    #[arg(long, value_name = "N|none", allow_hyphen_values = true, value_parser = bound)]
    most_done: Option<Bound>,
    /// How many tasks are kept that failed
    #[arg(long, value_name = "N|none", allow_hyphen_values = true, value_parser = bound)]
    most_failed: Option<Bound>,
    /// How many tasks are kept that were cancelled
    #[arg(long, value_name = "N|none", allow_hyphen_values = true, value_parser = bound)]
    most_cancelled: Option<Bound>,
    /// Set what this file says, as --json prints it; what it does not name stays. -: the standard input
    #[arg(long, value_name = "FILE")]
    #[arg(conflicts_with_all = ["max_running", "key_limit", "keep_done", "keep_failed", "keep_cancelled"])]
    #[arg(conflicts_with_all = ["most_done", "most_failed", "most_cancelled"])]
    from: Option<PathBuf>,
    /// Print what holds now as one JSON object; `interval-queue schema tasks` describes its fields
    #[arg(long)]
    json: bool,
}

/// At most so many; none: any number.
#[derive(Clone, Copy, Debug)]
struct Bound(Option<u32>);

fn key_limit(text: &str) -> Result<u32, String> {
    let pause = "to pause one key, run `interval-queue pause --key KEY`";
    match text.parse() {
        Ok(0) => Err(format!("give at least 1; {pause}")),
        Ok(limit) => Ok(limit),
        Err(_) => Err(format!("give a number from 1 to {}; {pause}", u32::MAX)),
    }
}

fn bound(text: &str) -> Result<Bound, String> {
    match (text, text.parse()) {
        ("none", _) => Ok(Bound(None)),
        (_, Ok(most)) => Ok(Bound(Some(most))),
        _ => Err(format!("give a number up to {}, or none", u32::MAX)),
    }
}

impl Set {
    fn change(&self, settings: &Settings) -> SettingsChange {
        let stored = settings.keep;
        let long = |given: Option<Duration>, stored| given.map_or(stored, Micros::from_duration);
        let many = |given: Option<Bound>, stored| given.map_or(stored, |Bound(most)| most);
        let keep = Keep {
            done: long(self.keep_done, stored.done),
            failed: long(self.keep_failed, stored.failed),
            cancelled: long(self.keep_cancelled, stored.cancelled),
            most_done: many(self.most_done, stored.most_done),
            most_failed: many(self.most_failed, stored.most_failed),
            most_cancelled: many(self.most_cancelled, stored.most_cancelled),
        };
        SettingsChange {
            max_running: self.max_running.unwrap_or(MaxRunning::Keep),
            key_limit: self.key_limit,
            keep: (keep != stored).then_some(keep),
            ..SettingsChange::default()
        }
    }
}

pub(super) async fn set(tasks: &Tasks, set: &Set) -> Result<(), Failure> {
    // A setting creates the queue.
    let stored = tasks.look().await?.map(|overview| overview.settings);
    let is_there = stored.is_some();
    let mut settings = stored.unwrap_or_default();
    let change = match &set.from {
        Some(file) => load(file, &settings)?,
        None => set.change(&settings),
    };
    if !is_there && change == SettingsChange::default() {
        return Err(tasks.missing());
    }
    if !is_there || change.on(&settings) != settings {
        settings = match tasks.ask(Command::Change(Change::Set(change))).await {
            Ok(Reply::Changed(settings)) => settings,
            other => return Err(unexpected(other)),
        };
    }
    if set.json {
        return print(&format!("{:#}", dump(&settings)));
    }
    print(&format!("{}: {}", tasks.queue, in_force(&settings)))
}

fn in_force(settings: &Settings) -> String {
    let keep = &settings.keep;
    let kept = [
        ("done", keep.done, keep.most_done),
        ("failed", keep.failed, keep.most_failed),
        ("cancelled", keep.cancelled, keep.most_cancelled),
    ]
    .map(|(end, long, most)| {
        let most = most.map_or(String::new(), |most| format!(", at most {most}"));
        format!("{end} for {}{most}", show(long))
    });
    let running = running(settings.max_running);
    format!("{running}, {} of a key; keeps {}", settings.key_limit, kept.join("; "))
}
