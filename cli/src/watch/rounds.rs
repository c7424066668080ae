//! Chooses the next read. One read is in progress at a time, so the load depends on time and not on
//! the number of queues.

use std::time::Duration;

use interval_queue::QueueName;

use super::model::Model;

/// Also the interval while there is no queue.
const LIST_INTERVAL: Duration = Duration::from_secs(10);
const EMPTY_LIST_INTERVAL: Duration = Duration::from_secs(2);
const DETAILS_INTERVAL: Duration = Duration::from_secs(2);
/// After a listing or after details, as a multiple of the read's duration.
const PAUSE_FACTOR: u32 = 20;
/// If the chosen queue changes, whatever `--refresh` is.
const MIN_READ_INTERVAL: Duration = Duration::from_millis(200);
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// The names of all queues.
    List,
    /// The shown queue, with its stored tasks.
    Read(QueueName),
    /// The workers and the failures of the shown queue.
    Details(QueueName),
    /// Another queue in view: its rate, and the counts of its tasks.
    ReadCounts(QueueName),
}

#[derive(Clone, Debug)]
pub(crate) struct Rounds {
    refresh: Duration,
    last_read: Option<Duration>,
    read_at: Duration,
    /// `None`: only one queue is shown.
    list_at: Option<Duration>,
    details_at: Duration,
    /// Whether another queue is read after the chosen one, and the number of such reads.
    other: bool,
    turn: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    All,
    One,
}

impl Rounds {
    pub(crate) fn new(refresh: Duration, scope: Scope) -> Self {
        let list_at = (scope == Scope::All).then_some(Duration::ZERO);
        let (read_at, details_at) = (Duration::ZERO, Duration::ZERO);
        Self { refresh, last_read: None, read_at, list_at, details_at, other: false, turn: 0 }
    }

    /// `None` before [`Rounds::wake_at`].
    pub(crate) fn next(&mut self, model: &Model, now: Duration) -> Option<Task> {
        if self.list_at.is_some_and(|at| at <= now) {
            // Replaced when the duration of the listing is known.
            self.list_at = Some(now + LIST_INTERVAL);
            return Some(Task::List);
        }
        if self.read_at <= now {
            self.read_at = now + self.refresh;
            self.last_read = Some(now);
            self.other = true;
            if let Some(queue) = model.queue() {
                return Some(Task::Read(queue.clone()));
            }
        }
        if let Some(queue) =
            model.queue().filter(|_| self.other && self.details_at <= now && model.tasks().is_some())
        {
            // Replaced when the duration of the read is known.
            self.details_at = now + DETAILS_INTERVAL;
            return Some(Task::Details(queue.clone()));
        }
        if std::mem::take(&mut self.other) {
            self.turn = self.turn.wrapping_add(1);
            let others = model.in_view().count().max(1);
            return model.in_view().nth(self.turn % others).cloned().map(Task::ReadCounts);
        }
        None
    }

    pub(crate) fn wake_at(&self) -> Duration {
        self.list_at.map_or(self.read_at, |list| list.min(self.read_at))
    }

    pub(crate) fn done(&mut self, task: &Task, model: &Model, now: Duration, took: Duration) {
        match task {
            Task::List => {
                let pause = if model.names.is_empty() { EMPTY_LIST_INTERVAL } else { LIST_INTERVAL };
                self.list_at = self.list_at.map(|_| now + pause.max(took * PAUSE_FACTOR));
                self.read_soon();
            }
            Task::Details(_) => self.details_at = now + DETAILS_INTERVAL.max(took * PAUSE_FACTOR),
            Task::Read(_) | Task::ReadCounts(_) => {}
        }
    }

    /// Another queue was chosen, or the chosen one was changed.
    pub(crate) fn read_soon(&mut self) {
        let earliest = self.last_read.map_or(Duration::ZERO, |last_read| last_read + MIN_READ_INTERVAL);
        self.read_at = self.read_at.min(earliest);
    }

    pub(crate) fn failed(&mut self, model: &Model, now: Duration) {
        self.other = false;
        self.read_at = self.read_at.max(now + RETRY_INTERVAL);
        if model.names.is_empty() {
            self.list_at = self.list_at.map(|_| now + RETRY_INTERVAL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::{
        keys::{Action, Move},
        messages::Message,
        tests::{read_tasks, tasks},
    };

    /// Reads for `seconds`. A read takes a millisecond. Returns the reads.
    fn read_for(
        model: &mut Model,
        rounds: &mut Rounds,
        seconds: u64,
        mut between: impl FnMut(&mut Model, &mut Rounds),
    ) -> Vec<Task> {
        let mut tasks = Vec::new();
        let mut now = Duration::ZERO;
        while now < Duration::from_secs(seconds) {
            match rounds.next(model, now) {
                Some(task) => {
                    now += Duration::from_millis(1);
                    rounds.done(&task, model, now, Duration::from_millis(1));
                    tasks.push(task);
                }
                None => now = now.max(rounds.wake_at()),
            }
            between(model, rounds);
        }
        tasks
    }

    fn many(count: usize) -> Model {
        let mut model = Model::new("redis://localhost", None);
        let names = (0..count).map(|n| QueueName::new(format!("q{n:05}")).unwrap()).collect();
        model.apply(Message::Names(names), Duration::ZERO);
        model.page = 20;
        model
    }

    #[test]
    fn reads_are_bounded_however_many_queues_there_are() {
        let mut rounds = Rounds::new(Duration::from_millis(200), Scope::All);
        let mut model = many(10_000);
        let tasks = read_for(&mut model, &mut rounds, 60, |_, _| {});
        let lists = tasks.iter().filter(|task| **task == Task::List).count();
        assert!((6..=7).contains(&lists), "{lists}");
        let chosen = tasks.iter().filter(|task| **task == Task::Read(model.names[0].clone())).count();
        assert!((290..=320).contains(&chosen), "{chosen}");
        assert!(tasks.len() <= lists + 2 * chosen, "{}", tasks.len());
        for name in &model.names[1..20] {
            assert!(tasks.contains(&Task::ReadCounts(name.clone())), "{name} is in view");
        }
        assert!(!tasks.contains(&Task::ReadCounts(model.names[20].clone())), "it is not in view");
    }

    #[test]
    fn a_finger_on_a_key_reads_no_more() {
        let mut rounds = Rounds::new(Duration::from_millis(200), Scope::All);
        let tasks = read_for(&mut many(10_000), &mut rounds, 60, |model, rounds| {
            model.act(Action::Go(Move::Down));
            rounds.read_soon();
        });
        assert!(tasks.len() <= 650, "{}", tasks.len());
    }

    #[test]
    fn a_chosen_queue_is_read_soon_at_any_refresh() {
        let mut rounds = Rounds::new(Duration::from_secs(3600), Scope::One);
        let model = many(1);
        let now = Duration::from_secs(5);
        assert!(rounds.next(&model, now).is_some());
        assert_eq!(rounds.next(&model, now), None);
        assert_eq!(rounds.wake_at(), now + Duration::from_secs(3600));
        rounds.read_soon();
        assert_eq!(rounds.wake_at(), now + MIN_READ_INTERVAL);
    }

    #[test]
    fn a_state_that_does_not_answer_is_asked_once_a_second() {
        let mut rounds = Rounds::new(Duration::from_millis(20), Scope::All);
        let model = Model::new("redis://localhost", None);
        let mut now = Duration::ZERO;
        let mut tasks = 0;
        while now < Duration::from_secs(60) {
            match rounds.next(&model, now) {
                Some(_) => {
                    tasks += 1;
                    rounds.failed(&model, now);
                }
                None => now = rounds.wake_at(),
            }
        }
        assert!((55..=125).contains(&tasks), "{tasks}");
    }

    #[test]
    fn details_are_read_rarely_and_rarer_if_they_take_long() {
        for (took, expected) in [(1, 14..=16), (500, 3..=4)] {
            let mut rounds = Rounds::new(Duration::from_millis(200), Scope::One);
            let mut model = Model::new("sqlite:queues.db", QueueName::new("mail").ok());
            model.apply(read_tasks("mail", None, tasks(&[])), Duration::ZERO);
            let (mut now, mut details) = (Duration::ZERO, 0);
            while now < Duration::from_secs(30) {
                match rounds.next(&model, now) {
                    Some(task @ Task::Details(_)) => {
                        details += 1;
                        let took = Duration::from_millis(took);
                        now += took;
                        rounds.done(&task, &model, now, took);
                    }
                    Some(_) => {}
                    None => now = now.max(rounds.wake_at()),
                }
            }
            assert!(expected.contains(&details), "{details}");
        }
    }

    #[test]
    fn one_queue_is_read_alone() {
        let mut rounds = Rounds::new(Duration::from_millis(200), Scope::One);
        let mut model = Model::new("redis://localhost", QueueName::new("mail").ok());
        let tasks = read_for(&mut model, &mut rounds, 10, |_, _| {});
        assert!(tasks.iter().all(|task| *task != Task::List) && tasks.len() <= 50, "{}", tasks.len());
    }
}
