//! The line that explains what the next start waits for.

use std::time::Duration;

use interval_queue::{Micros, StartStatus};
use interval_queue_tasks::Condition;

use super::{
    history::{History, Waiting},
    messages::{Known, Outage},
};
use crate::tasks::Summary;

/// An unused free slot is reported after this time, or after two intervals if that is longer.
const UNUSED_SLOT_TIMEOUT: Duration = Duration::from_millis(1500);

/// The severity of a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Jobs start, or will at their slots.
    Good,
    /// No process waits for a start.
    Idle,
    /// Starts are held back as intended.
    Waiting,
    /// Something is wrong.
    Bad,
}

/// The reason why nothing starts, or the next start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reason {
    pub(crate) tone: Tone,
    /// One or two words.
    pub(crate) word: &'static str,
    pub(crate) text: String,
}

impl Reason {
    /// The reason that follows from the last read of a queue, at `now`.
    pub(crate) fn of(known: Option<&Known>, outage: Option<&Outage>, now: Duration) -> Self {
        if let Some(outage) = outage {
            let since = span(now.saturating_sub(outage.since));
            let text = format!("for {since}: {} (retrying)", outage.error);
            return Self::new(Tone::Bad, "UNREACHABLE", text);
        }
        match known {
            None => Self::new(Tone::Idle, "NOT READ YET", "the store has not answered yet"),
            Some(Known::Missing) => {
                Self::new(Tone::Idle, "NOT THERE", "this queue does not exist yet: `run --every` creates it")
            }
            Some(Known::Unreadable(error)) => Self::new(Tone::Bad, "UNREADABLE", error),
            Some(Known::Queue(history)) => Self::of_queue(history, now),
        }
    }

    /// The reason that follows from the stored tasks.
    pub(crate) fn of_tasks(summary: &Summary) -> Self {
        let (tone, word) = match summary.conditions.first() {
            Some(Condition::Running { .. }) => (Tone::Good, "RUNNING"),
            Some(Condition::Empty) => (Tone::Idle, "EMPTY"),
            Some(Condition::NoWorker | Condition::Unserved { .. }) => (Tone::Bad, "NO WORKER"),
            Some(Condition::Lost { .. }) => (Tone::Bad, "LOST"),
            Some(Condition::Next | Condition::Rate { .. }) => (Tone::Good, "NEXT"),
            Some(Condition::RateHeld { .. }) => (Tone::Waiting, "HELD"),
            Some(pause) if pause.is_pause() => (Tone::Waiting, "PAUSED"),
            _ => (Tone::Waiting, "WAITING"),
        };
        Self::new(tone, word, summary.reason())
    }

    /// The stored tasks of a queue cannot be read.
    pub(crate) fn tasks_unreadable(error: &str) -> Self {
        Self::new(Tone::Bad, "UNREADABLE", format!("its stored tasks cannot be read: {error}"))
    }

    /// No queue is stored.
    pub(crate) fn none() -> Self {
        Self::new(
            Tone::Idle,
            "NOT THERE",
            "the store has no queue yet: `interval-queue run --every` creates one",
        )
    }

    /// The store has not answered a read.
    pub(crate) fn silence(silent: Duration) -> Self {
        Self::new(Tone::Bad, "NO ANSWER", format!("no reply of the store for {}", span(silent)))
    }

    fn of_queue(history: &History, now: Duration) -> Self {
        let snapshot = history.snapshot();
        let since = |left: Micros| span(left.to_duration().saturating_sub(history.age(now)));
        let tickets = snapshot.tickets();
        let waiting = match snapshot.outstanding() {
            0 => "no job waits".to_owned(),
            _ if tickets.starts_with("at most") => format!("{tickets} waiting"),
            1 => "1 job waits".to_owned(),
            _ => format!("{tickets} jobs wait"),
        };
        let timeout = UNUSED_SLOT_TIMEOUT.max(snapshot.record.interval().to_duration() * 2);
        match snapshot.start_status() {
            StartStatus::Paused => Self::new(
                Tone::Waiting,
                "PAUSED",
                format!("nothing starts until `interval-queue resume`; {waiting}"),
            ),
            StartStatus::Held { ends_in } => Self::new(
                Tone::Waiting,
                "HELD",
                format!("nothing starts for another {}; {waiting}", since(ends_in)),
            ),
            StartStatus::Empty => match history.last_start(now).filter(|ago| *ago < timeout) {
                Some(ago) => {
                    let text = format!("no job waits; the last job started {} ago", span(ago));
                    Self::new(Tone::Good, "STARTING", text)
                }
                None => Self::new(Tone::Idle, "EMPTY", waiting),
            },
            StartStatus::AtMaxRunning { running, limit } => Self::new(
                Tone::Waiting,
                "AT ITS LIMIT",
                format!("{running} run, {limit} at most: the next job starts when one ends; {waiting}"),
            ),
            StartStatus::Next { ticket, label, lease_ends_in, slot_in, .. } => {
                let overdue = history.overdue().unwrap_or_default();
                if overdue > timeout {
                    let lease = since(lease_ends_in);
                    let overdue = span(overdue);
                    let text = format!(
                        "ticket {ticket} of {label} could have started {overdue} ago, but its process has not contacted \
                         the store; the process counts as dead in {lease}"
                    );
                    return Self::new(Tone::Bad, "NOTHING STARTS", text);
                }
                let missed = if ticket <= snapshot.record.current { ", which missed its slot" } else { "" };
                let text = match slot_in.to_duration().saturating_sub(history.age(now)) {
                    Duration::ZERO => format!("ticket {ticket} of {label}{missed}, now"),
                    left => format!("ticket {ticket} of {label}{missed}, in {}", span(left)),
                };
                Self::new(Tone::Good, "NEXT", text)
            }
            other => Self::new(Tone::Waiting, "WAITING", other.to_string()),
        }
    }

    fn new(tone: Tone, word: &'static str, text: impl Into<String>) -> Self {
        Self { tone, word, text: text.into() }
    }
}

/// Formats a duration briefly: `0.25s`, `12.3s`, `4m 05s`, `2h 10m`, `3d 04h`.
pub(crate) fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..10 => format!("{:.2}s", (duration.as_secs_f64() * 100.0).floor() / 100.0),
        10..60 => format!("{:.1}s", (duration.as_secs_f64() * 10.0).floor() / 10.0),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h {:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d {:02}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::scene::Scene;

    fn reason(scene: &Scene, after: Duration) -> Reason {
        let known = Known::Queue(Box::new(History::new(scene.build(), Duration::ZERO)));
        Reason::of(Some(&known), None, after)
    }

    const SECOND: u64 = 1_000_000;

    #[test]
    fn every_standing_has_its_word_and_what_is_left_counts_down() {
        let scene = Scene::new(SECOND).at(SECOND).ticket(7).current(5).free_at(SECOND * 3).shard("loop 1", 6);
        let next = reason(&scene, Duration::from_millis(500));
        assert_eq!((next.tone, next.word), (Tone::Good, "NEXT"));
        assert_eq!(next.text, "ticket 6 of loop 1, in 1.50s");
        let paused = reason(&scene.clone().paused(), Duration::ZERO);
        assert_eq!((paused.tone, paused.word), (Tone::Waiting, "PAUSED"));
        assert!(paused.text.ends_with("2 jobs wait"), "{}", paused.text);
        let held = reason(&scene.clone().held_until(SECOND * 61), Duration::from_secs(10));
        assert!(held.word == "HELD" && held.text.contains("another 50.0s"), "{held:?}");
        let full = reason(&scene.clone().max_running(2).runs("b", 2), Duration::ZERO);
        assert!(full.word == "AT ITS LIMIT" && full.text.contains("2 run, 2 at most"), "{full:?}");
        let empty = reason(&Scene::new(SECOND), Duration::ZERO);
        assert_eq!((empty.word, empty.text.as_str()), ("EMPTY", "no job waits"));
        // Tickets of unknown shards.
        let scene = Scene::new(SECOND).ticket(7).current(3);
        assert_eq!(reason(&scene, Duration::ZERO).text, "at most 4 tickets waiting");
        assert!(reason(&scene.paused(), Duration::ZERO).text.ends_with("; at most 4 tickets waiting"));
    }

    #[test]
    fn a_slot_that_nobody_takes_is_told_once_it_is_odd() {
        // The record is old: a shard that has just arrived did not leave the slot unused.
        let scene = Scene::new(1000).at(SECOND * 9).ticket(7).current(5).free_at(SECOND).shard("dead", 6);
        let mut history = History::new(scene.build(), Duration::ZERO);
        let mut reason_at = |second: u64| {
            let now = Duration::from_secs(second);
            history.feed(scene.clone().at(SECOND * (9 + second)).build(), now);
            Reason::of(Some(&Known::Queue(Box::new(history.clone()))), None, now)
        };
        assert_eq!(reason_at(1).tone, Tone::Good);
        let stuck = reason_at(3);
        assert_eq!((stuck.tone, stuck.word), (Tone::Bad, "NOTHING STARTS"));
        assert!(stuck.text.contains("3.00s ago") && stuck.text.contains("dead in 2.00s"), "{}", stuck.text);
    }

    #[test]
    fn an_outage_says_since_when_and_what_was_said() {
        let outage = Outage { since: Duration::from_secs(5), error: "connection refused".into() };
        let reason = Reason::of(None, Some(&outage), Duration::from_secs(80));
        assert_eq!((reason.tone, reason.word), (Tone::Bad, "UNREACHABLE"));
        assert!(reason.text.starts_with("for 1m 15s") && reason.text.contains("connection refused"));
        assert_eq!(Reason::of(None, None, Duration::ZERO).word, "NOT READ YET");
        assert_eq!(Reason::of(Some(&Known::Missing), None, Duration::ZERO).word, "NOT THERE");
    }
}
