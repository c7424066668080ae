//! `tasks set`: the settings of a queue of tasks.

use std::{path::PathBuf, time::Duration};

use clap::{Args, value_parser};
use interval_queue::{MaxRunning, Micros};
use interval_queue_documents::{
    Settings as Document,
    duration::{deadline, delay},
    words::show,
};
use interval_queue_tasks::{Keep, Kind, MAX_ATTEMPTS, Policy, PolicyOverride, Settings, SettingsChange};

use super::{kind_policy, settings::load};
use crate::{
    add::kind,
    args::{Target, max_running},
    change::running,
    exit::{Failure, USAGE, print},
    json_output::print_json,
};

/// Change the limits, the retries and the retention of a queue, for all workers; print all settings.
/// Default: change nothing
///
/// Options that are not given stay as they are. Ended tasks are kept for at least 20 minutes, and
/// as long as a task needs them. If more are stored than may be kept, the oldest are deleted first.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  interval-queue tasks set --max-running 20\n  \
    interval-queue tasks set --max-attempts 10 --backoff 1min\n  \
    interval-queue tasks set --kind mail --max-attempts 3 --timeout 1min\n  \
    interval-queue tasks set --kind mail --inherit\n  \
    interval-queue tasks set --keep-done 7days --most-done 100000\n  \
    interval-queue tasks set --json > settings.json\n  \
    interval-queue tasks set --queue other --from settings.json")]
pub(super) struct Set {
    /// Tasks of the queue that run at once, over all workers, or none. A new queue: none
    #[arg(long, value_name = "N|none", allow_hyphen_values = true, value_parser = max_running)]
    max_running: Option<MaxRunning>,
    /// Tasks of one key that are ready or run at once. A new queue: 1
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = key_limit)]
    key_limit: Option<u32>,
    /// Failures after which a task fails for good; 1: run it at most once. A new queue: 5
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=i64::from(MAX_ATTEMPTS)))]
    max_attempts: Option<u32>,
    /// Time until the retry after the first failure; it doubles with each. A new queue: 10s
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = delay)]
    backoff: Option<Duration>,
    /// Longest time until a retry. A new queue: 1h
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = delay)]
    max_backoff: Option<Duration>,
    /// Longest run of a task, or none for no limit; a longer run counts as a failure. A new queue:
    /// none
    #[arg(long, value_name = "DURATION|none", allow_hyphen_values = true, value_parser = timeout)]
    timeout: Option<Timeout>,
    /// How long done tasks are kept. A new queue: 1day
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = delay)]
    keep_done: Option<Duration>,
    /// How long failed tasks are kept. A new queue: 14days
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = delay)]
    keep_failed: Option<Duration>,
    /// How long cancelled tasks are kept. A new queue: 1day
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true, value_parser = delay)]
    keep_cancelled: Option<Duration>,
    /// How many done tasks are kept, the latest, or none for no limit. A new queue: none
    #[arg(long, value_name = "N|none", allow_hyphen_values = true, value_parser = bound)]
    most_done: Option<Bound>,
    /// How many failed tasks are kept, the latest, or none for no limit. A new queue: none
    #[arg(long, value_name = "N|none", allow_hyphen_values = true, value_parser = bound)]
    most_failed: Option<Bound>,
    /// How many cancelled tasks are kept, the latest, or none for no limit. A new queue: none
    #[arg(long, value_name = "N|none", allow_hyphen_values = true, value_parser = bound)]
    most_cancelled: Option<Bound>,
    /// Change the policy of this kind alone: --max-attempts, --backoff, --max-backoff, --timeout
    #[arg(long, value_name = "KIND", value_parser = kind)]
    #[arg(conflicts_with_all = ["max_running", "key_limit", "keep_done", "keep_failed", "keep_cancelled"])]
    #[arg(conflicts_with_all = ["most_done", "most_failed", "most_cancelled", "from"])]
    kind: Option<Kind>,
    /// With --kind: parts of the policy that are not given are those of the queue again
    #[arg(long, requires = "kind")]
    inherit: bool,
    /// Read settings from this file, as --json prints them, some or all; - is stdin
    #[arg(long, value_name = "FILE")]
    #[arg(conflicts_with_all = ["max_running", "key_limit", "keep_done", "keep_failed", "keep_cancelled"])]
    #[arg(conflicts_with_all = ["most_done", "most_failed", "most_cancelled"])]
    #[arg(conflicts_with_all = ["max_attempts", "backoff", "max_backoff", "timeout"])]
    from: Option<PathBuf>,
    /// Print the settings as one JSON object; `interval-queue schema tasks` describes its fields
    #[arg(long)]
    json: bool,
}

/// `None`: unlimited.
#[derive(Clone, Copy, Debug)]
struct Timeout(Option<Duration>);

fn timeout(text: &str) -> Result<Timeout, String> {
    match text {
        "none" => Ok(Timeout(None)),
        _ => deadline(text).map(|timeout| Timeout(Some(timeout))),
    }
}

/// `None`: unlimited.
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
    fn change(&self, settings: &Settings) -> Result<SettingsChange, Failure> {
        match &self.kind {
            Some(kind) => Ok(kind_policy::change(kind, self.of_kind()?, self.inherit, settings)),
            None => Ok(self.of_queue(settings)),
        }
    }

    /// The parts of the policy that are given for a kind.
    fn of_kind(&self) -> Result<PolicyOverride, Failure> {
        if let Some(Timeout(None)) = self.timeout {
            let text = "--timeout none: a kind cannot remove the time-out of its queue; give a duration, or --inherit for \
                        that of the queue";
            return Err(Failure::new(USAGE, text));
        }
        Ok(PolicyOverride {
            max_attempts: self.max_attempts,
            max_retries: None,
            backoff: self.backoff.map(Micros::from_duration),
            max_backoff: self.max_backoff.map(Micros::from_duration),
            timeout: self.timeout.and_then(|Timeout(timeout)| timeout).map(Micros::from_duration),
        })
    }

    fn of_queue(&self, settings: &Settings) -> SettingsChange {
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
        let policy = Policy {
            max_attempts: self.max_attempts.unwrap_or(settings.policy.max_attempts),
            max_retries: settings.policy.max_retries,
            backoff: long(self.backoff, settings.policy.backoff),
            max_backoff: long(self.max_backoff, settings.policy.max_backoff),
            timeout: match self.timeout {
                Some(Timeout(timeout)) => timeout.map(Micros::from_duration),
                None => settings.policy.timeout,
            },
        };
        SettingsChange {
            policy: (policy != settings.policy).then_some(policy),
            max_running: self.max_running.unwrap_or(MaxRunning::Keep),
            key_limit: self.key_limit,
            keep: (keep != stored).then_some(keep),
            ..SettingsChange::default()
        }
    }
}

pub(super) async fn set(target: &Target, set: &Set) -> Result<(), Failure> {
    let (queue, stored) = match target.tasks_if_any().await? {
        Some((queue, overview)) => (Some(queue), Some(overview.settings)),
        None => (None, None),
    };
    let is_new = stored.is_none();
    let mut settings = stored.unwrap_or_default();
    let change = match &set.from {
        Some(file) => load(file, &settings)?,
        None => set.change(&settings)?,
    };
    if is_new && change == SettingsChange::default() {
        return Err(target.no_tasks());
    }
    if is_new || change.on(&settings) != settings {
        // A setting creates the queue.
        let queue = match queue {
            Some(queue) => queue,
            None => target.created_tasks().await?,
        };
        settings = queue.set(change).await?;
    }
    if set.json {
        return print_json(&Document::from(&settings));
    }
    print(&format!("{}: {}{}", target.queue, in_force(&settings), kind_policy::lines(&settings)))
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
    let Policy { max_attempts, backoff, max_backoff, timeout, .. } = settings.policy;
    let retries =
        format!("at most {max_attempts} attempts, {} to {} apart", show(backoff), show(max_backoff));
    let timeout = timeout.map_or(String::new(), |timeout| format!(", {} each", show(timeout)));
    format!("{running}, {} of a key; {retries}{timeout}; keeps {}", settings.key_limit, kept.join("; "))
}
