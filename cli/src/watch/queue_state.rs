//! The last read of a queue, and its status on one line.

use interval_queue::{Micros, QueueName, Snapshot};
use interval_queue_documents::{Failures, QueueStatus, Worker, in_order};
use interval_queue_tasks::Condition;

use crate::tasks::Summary;

/// Without a rate limit and without tasks, the queue does not exist.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueueState {
    /// `None`: no rate limit.
    pub(crate) rate: Option<Snapshot>,
    /// `None`: no stored tasks.
    pub(crate) tasks: Option<Summary>,
    /// If a part of the queue cannot be read.
    pub(crate) error: Option<String>,
}

/// The parts of a queue of tasks that are read less often.
#[derive(Clone, Debug)]
pub(crate) struct Details {
    pub(crate) workers: Vec<Worker>,
    /// `None`: too many tasks to group their errors repeatedly.
    pub(crate) failures: Option<Failures>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Jobs or tasks start, or will at their slots.
    Good,
    /// Nothing waits for a start.
    Idle,
    /// Starts are held back as intended.
    Waiting,
    /// An error, or a missing worker.
    Bad,
}

impl Tone {
    /// The tone of a `status` of the documents.
    fn of(word: &str) -> Self {
        match word {
            "next" | "rate" | "running" => Self::Good,
            "empty" => Self::Idle,
            "lost" | "miscounted" | "no_worker" | "unserved" => Self::Bad,
            _ => Self::Waiting,
        }
    }

    /// Distinguishes the tone without colours.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Self::Good => "●",
            Self::Idle => "○",
            Self::Waiting => "‖",
            Self::Bad => "▲",
        }
    }
}

/// A word, and the reason as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StatusLine {
    pub(crate) tone: Tone,
    pub(crate) word: String,
    pub(crate) text: String,
}

impl StatusLine {
    pub(crate) fn new(tone: Tone, word: &str, text: impl Into<String>) -> Self {
        Self { tone, word: word.to_uppercase().replace('_', " "), text: text.into() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InOrder {
    pub(crate) label: String,
    /// `None`: it only runs jobs.
    pub(crate) ticket: Option<u64>,
    /// Estimated. `None`: unknown.
    pub(crate) starts_in: Option<Micros>,
    pub(crate) running: u32,
    /// Zero: the lease has ended.
    pub(crate) lease_left: Micros,
}

impl QueueState {
    /// As `status` and `tasks` print it. Tasks that wait or run are more important than the rate
    /// limit, which their status includes.
    pub(crate) fn status(&self, queue: &QueueName) -> StatusLine {
        if let Some(error) = &self.error {
            return StatusLine::new(Tone::Bad, "unreadable", error);
        }
        match (&self.rate, &self.tasks) {
            (rate, Some(tasks)) if rate.is_none() || tasks.left() > 0 => {
                let word = tasks.conditions.first().map_or("other", Condition::as_str);
                StatusLine::new(Tone::of(word), word, tasks.reason())
            }
            (Some(rate), _) => {
                let document = QueueStatus::of(queue.as_str(), rate, None);
                StatusLine::new(Tone::of(document.status), document.status, document.reason)
            }
            (None, _) => {
                let text = "this queue does not exist yet: `run --every` or `add` creates it";
                StatusLine::new(Tone::Idle, "not there", text)
            }
        }
    }

    pub(crate) fn exists(&self) -> bool {
        self.rate.is_some() || self.tasks.is_some()
    }

    /// Or the tasks of a queue without a rate limit.
    pub(crate) fn is_paused(&self) -> bool {
        match (&self.rate, &self.tasks) {
            (Some(rate), _) => rate.record.paused,
            (None, Some(tasks)) => tasks.conditions.iter().any(|one| matches!(one, Condition::Paused { .. })),
            (None, None) => false,
        }
    }

    /// A slot is unknown while a pause or a running job has to end before it.
    pub(crate) fn order_of_starts(&self) -> Vec<InOrder> {
        let Some(rate) = &self.rate else { return Vec::new() };
        let record = &rate.record;
        let is_full = record.max_running.is_some_and(|limit| rate.running() >= u64::from(limit));
        let is_known = !record.paused && !is_full;
        let mut ahead = 0;
        let shard = |(_, presence): (_, &interval_queue::Presence)| {
            let is_alive = presence.expires_at > rate.at;
            let head = presence.head.filter(|_| is_alive);
            let starts_in = head.filter(|_| is_known).map(|head| {
                let has_gaps = record.current < record.gaps_until;
                let distance = if has_gaps { 0 } else { head.behind(record.current).saturating_sub(1) };
                let slots = distance.max(ahead);
                record.meters.slot_behind(record.held_until, rate.at, slots, 0, 1) - rate.at
            });
            ahead += u64::from(head.is_some());
            InOrder {
                label: presence.label.to_string(),
                ticket: presence.head.map(|head| head.get()),
                starts_in,
                running: presence.running,
                lease_left: presence.expires_at - rate.at,
            }
        };
        in_order(record).into_iter().map(shard).collect()
    }
}

#[cfg(test)]
mod tests {
    use interval_queue::task_contract::{Counted, State};

    use super::*;
    use crate::watch::tests::{Scene, name, tasks};

    const SECOND: u64 = 1_000_000;

    fn paced(scene: &Scene) -> QueueState {
        QueueState { rate: Some(scene.build()), ..QueueState::default() }
    }

    fn order(scene: &Scene) -> Vec<(String, Option<u64>)> {
        let order = paced(scene).order_of_starts().into_iter();
        order.map(|shard| (shard.label, shard.starts_in.map(Micros::get))).collect()
    }

    #[test]
    fn each_state_has_its_word_and_tone() {
        let status = |state: &QueueState| {
            let status = state.status(&name("mail"));
            (status.tone, status.word)
        };
        let scene = Scene::new(SECOND).at(SECOND).ticket(7).current(5).free_at(SECOND * 3).shard("a", 6);
        for (scene, tone, word) in [
            (scene.clone(), Tone::Good, "NEXT"),
            (scene.clone().paused(), Tone::Waiting, "PAUSED"),
            (scene.clone().held_until(SECOND * 61), Tone::Waiting, "HELD"),
            (scene.clone().max_running(2).runs("b", 2), Tone::Waiting, "AT MAX RUNNING"),
            (Scene::new(SECOND), Tone::Idle, "EMPTY"),
        ] {
            assert_eq!(status(&paced(&scene)), (tone, word.to_owned()));
        }
        assert_eq!(status(&QueueState::default()), (Tone::Idle, "NOT THERE".to_owned()));
        let broken = QueueState { error: Some("damaged".into()), ..paced(&scene) };
        assert_eq!(status(&broken), (Tone::Bad, "UNREADABLE".to_owned()));
        // Tasks that wait are more important than a rate for which no process waits.
        let waiting = |conditions| {
            let tasks = Summary { conditions, ..tasks(&[(Counted::Now(State::Ready), 3)]) };
            QueueState { tasks: Some(tasks), ..paced(&Scene::new(SECOND)) }
        };
        assert_eq!(status(&waiting(vec![Condition::NoWorker])), (Tone::Bad, "NO WORKER".to_owned()));
        let running = vec![Condition::Running { running: 3, limit: None }];
        assert_eq!(status(&waiting(running)), (Tone::Good, "RUNNING".to_owned()));
        let ended = QueueState { tasks: Some(tasks(&[])), ..paced(&scene) };
        assert_eq!(status(&ended), (Tone::Good, "NEXT".to_owned()));
    }

    #[test]
    fn starts_are_estimated_from_the_distance_to_current() {
        let scene = Scene::new(100).at(1000).ticket(9).current(4).free_at(1050);
        let scene = scene.shard("b", 7).shard("a", 5).runs("c", 1).lease(0).shard("dead", 6);
        let expected = [("a", Some(50)), ("dead", None), ("b", Some(250)), ("c", None)];
        assert_eq!(order(&scene), expected.map(|(label, time)| (label.to_owned(), time)));
    }

    #[test]
    fn a_missed_ticket_takes_the_next_free_slot() {
        let scene = Scene::new(100).at(1000).ticket(9).current(6).free_at(400).shard("late", 2).shard("a", 7);
        assert_eq!(order(&scene), [("late".into(), Some(0)), ("a".into(), Some(100))]);
    }

    #[test]
    fn a_hold_delays_and_a_pause_ends_at_an_unknown_time() {
        let scene = Scene::new(100).at(1000).ticket(9).current(6).free_at(400).shard("a", 7);
        assert_eq!(order(&scene.clone().held_until(7000)), [("a".into(), Some(6000))]);
        assert_eq!(order(&scene.clone().paused()), [("a".into(), None)]);
        assert_eq!(order(&scene.max_running(2).runs("b", 2))[0], ("a".into(), None));
    }
}
