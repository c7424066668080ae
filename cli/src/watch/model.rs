//! The model of the screen: updated by reads and keys, drawn by `draw`, independent of both.

use std::{collections::HashMap, time::Duration};

use interval_queue::{QueueName, Snapshot, task_contract::TaskId};
use interval_queue_tasks::Condition;

use super::{
    history::History,
    keys::{Action, Move},
    messages::{Effect, Known, Message, Outage, Wanted},
    reason::{Reason, Tone},
    stored::Stored,
};
use crate::tasks::{Summary, TextPage};

/// Maximum queues that are kept besides the queues in view.
const MAX_QUEUES: usize = 256;
/// Lines per page of a text.
const PAGE_LINES: usize = 10;
/// How long a note stays.
const NOTE_TIME: Duration = Duration::from_secs(6);

/// An open text.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    pub(crate) page: TextPage,
    pub(crate) shows_bodies: bool,
    /// Lines that are scrolled out of view at the top.
    pub(crate) first_line: usize,
}

/// The content of the screen.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    /// The URL of the store without secrets.
    pub(crate) place: String,
    /// Time since the start of the program, on the clock of the host.
    pub(crate) now: Duration,
    /// The names of the queues; a single one with `--queue`.
    pub(crate) names: Vec<QueueName>,
    /// The index of the shown queue.
    pub(crate) chosen: usize,
    /// Rows of the list in the last drawing, and the first of them.
    pub(crate) page: usize,
    pub(crate) first_row: usize,
    known: HashMap<QueueName, Known>,
    /// The stored tasks of the chosen queue.
    stored: Option<Stored>,
    /// The last status of the tasks of each queue; or the error of the store if they cannot be
    /// read.
    summaries: HashMap<QueueName, Result<Box<Summary>, String>>,
    /// The marked task. `Some` while keys move between tasks.
    pub(crate) marked: Option<TaskId>,
    pub(crate) opened: Option<Opened>,
    /// The outage, if the store does not answer.
    pub(crate) outage: Option<Outage>,
    /// Start of the read in progress, if it takes long.
    pub(crate) read_since: Option<Duration>,
    /// A change that needs a confirmation.
    pub(crate) to_confirm: Option<(QueueName, Wanted)>,
    pub(crate) help: bool,
    note: Option<(Duration, String)>,
    /// Whether the names have been read, and whether anything has.
    listed: bool,
    answered: bool,
}

impl Model {
    /// Creates an empty model. With `only`, only that queue is shown.
    pub(crate) fn new(place: impl Into<String>, only: Option<QueueName>) -> Self {
        Self {
            place: place.into(),
            now: Duration::ZERO,
            listed: only.is_some(),
            names: only.into_iter().collect(),
            chosen: 0,
            page: 1,
            first_row: 0,
            known: HashMap::new(),
            stored: None,
            summaries: HashMap::new(),
            marked: None,
            opened: None,
            outage: None,
            read_since: None,
            to_confirm: None,
            help: false,
            note: None,
            answered: false,
        }
    }

    /// The shown queue.
    pub(crate) fn queue(&self) -> Option<&QueueName> {
        self.names.get(self.chosen)
    }

    /// The last read of a queue.
    pub(crate) fn known(&self, queue: &QueueName) -> Option<&Known> {
        self.known.get(queue)
    }

    /// The history of the shown queue.
    pub(crate) fn history(&self) -> Option<&History> {
        match self.known.get(self.queue()?)? {
            Known::Queue(history) => Some(history),
            Known::Missing | Known::Unreadable(_) => None,
        }
    }

    /// The stored tasks of the shown queue. `None`: it has none.
    pub(crate) fn stored(&self) -> Option<&Stored> {
        self.stored.as_ref().filter(|stored| Some(&stored.queue) == self.queue())
    }

    /// The reason why nothing starts in the shown queue.
    pub(crate) fn reason(&self) -> Reason {
        let known = self.queue().and_then(|queue| self.known.get(queue));
        if self.listed && self.names.is_empty() && self.outage.is_none() {
            return Reason::none();
        }
        let silent = self.read_since.filter(|_| self.outage.is_none());
        let mut reason = match silent {
            Some(since) => Reason::silence(self.now.saturating_sub(since)),
            None => Reason::of(known, self.outage.as_ref(), self.now),
        };
        if silent.is_some() || self.outage.is_some() {
            return reason;
        }
        if let Some(queue) = self.queue() {
            reason = self.with_tasks(queue, reason);
        }
        if let Some(stored) = self.stored() {
            reason.text = format!("{}; stored tasks: {}", reason.text, stored.last.in_words());
        }
        reason
    }

    /// The conditions in force on a listed queue, as far as is known.
    pub(crate) fn reason_of(&self, queue: &QueueName) -> Reason {
        self.with_tasks(queue, Reason::of(self.known.get(queue), None, self.now))
    }

    /// The status of the tasks of a queue. `None`: it has none, or they cannot be read.
    pub(crate) fn summary(&self, queue: &QueueName) -> Option<&Summary> {
        self.summaries.get(queue)?.as_deref().ok()
    }

    /// The reason of the stored tasks, unless none of them waits or the rate has a problem.
    fn with_tasks(&self, queue: &QueueName, of_pace: Reason) -> Reason {
        let has_pace = matches!(self.known.get(queue), Some(Known::Queue(_)));
        match self.summaries.get(queue) {
            Some(Err(error)) => Reason::tasks_unreadable(error),
            Some(Ok(summary)) if !has_pace || summary.left() > 0 && of_pace.tone != Tone::Bad => {
                Reason::of_tasks(summary)
            }
            _ => of_pace,
        }
    }

    /// Whether the store has ever answered.
    pub(crate) fn has_answered(&self) -> bool {
        self.answered
    }

    /// A note that is shown for some seconds.
    pub(crate) fn note(&self) -> Option<&str> {
        let (until, note) = self.note.as_ref()?;
        (self.now < *until).then_some(note)
    }

    fn set_note(&mut self, note: impl Into<String>) {
        self.note = Some((self.now + NOTE_TIME, note.into()));
    }

    /// Chooses a queue by its name. Returns whether it exists.
    pub(crate) fn choose(&mut self, queue: &QueueName) -> bool {
        let place = self.names.iter().position(|name| name == queue);
        self.chosen = place.unwrap_or(self.chosen);
        place.is_some()
    }

    /// The queues in view, without the chosen one.
    pub(crate) fn in_view(&self) -> impl Iterator<Item = &QueueName> {
        let chosen = self.queue();
        let rows = self.names.iter().skip(self.first_row).take(self.page);
        rows.filter(move |name| Some(*name) != chosen)
    }

    /// Applies a result from the store, at `now` on the clock of the host.
    pub(crate) fn apply(&mut self, message: Message, now: Duration) {
        self.now = now;
        match message {
            Message::Outage(error) => {
                let since = self.outage.as_ref().map_or(now, |outage| outage.since);
                self.outage = Some(Outage { since, error });
                return;
            }
            Message::Names(names) => {
                let chosen = self.queue().cloned();
                self.names = names;
                self.listed = true;
                self.chosen = self.chosen.min(self.names.len().saturating_sub(1));
                if let Some(chosen) = chosen {
                    self.choose(&chosen);
                }
            }
            Message::Read(queue, found) => self.apply_snapshot(queue, found),
            Message::WithTasks(queue, tasks, read) => {
                let found = match tasks {
                    Ok(Some(summary)) => {
                        self.summaries.insert(queue.clone(), Ok(summary.clone()));
                        Some(summary)
                    }
                    Ok(None) => {
                        self.summaries.remove(&queue);
                        None
                    }
                    Err(error) => {
                        self.summaries.insert(queue.clone(), Err(error));
                        None
                    }
                };
                if Some(&queue) == self.queue() {
                    let before = self.stored.take().filter(|stored| stored.queue == queue);
                    self.stored = found.map(|read| match before {
                        Some(mut stored) => {
                            stored.feed(*read, now);
                            stored
                        }
                        None => Stored::new(queue, *read, now),
                    });
                    // The marked task has ended.
                    if self.marked.is_some_and(|marked| self.tasks().all(|id| id != marked)) {
                        let first = self.tasks().next();
                        self.marked = first;
                    }
                }
                return self.apply(*read, now);
            }
            Message::Unreadable(queue, error) => {
                self.known.insert(queue, Known::Unreadable(error));
            }
            Message::Opened(Ok(page)) => {
                self.opened = Some(Opened { page, shows_bodies: false, first_line: 0 });
            }
            Message::Opened(Err(error)) => {
                self.set_note(error);
                return;
            }
            Message::Done(queue, Wanted::Pause) => self.set_note(format!("{queue} is paused")),
            Message::Done(queue, Wanted::Resume) => {
                self.set_note(format!("{queue} is resumed: waiting processes start within about a second"));
            }
            Message::NotDone(queue, error) => {
                self.set_note(format!("{queue} is unchanged: {error}"));
                return;
            }
        }
        self.answered = true;
        if let Some(outage) = self.outage.take() {
            let gone = super::reason::span(now.saturating_sub(outage.since));
            self.set_note(format!("the store answers again, after {gone}"));
        }
    }

    fn apply_snapshot(&mut self, queue: QueueName, found: Option<Snapshot>) {
        let Some(snapshot) = found else {
            self.known.insert(queue, Known::Missing);
            return;
        };
        match self.known.get_mut(&queue) {
            Some(Known::Queue(history)) => history.feed(snapshot, self.now),
            _ => {
                self.known.insert(queue, Known::Queue(Box::new(History::new(snapshot, self.now))));
            }
        }
        if self.known.len() > MAX_QUEUES {
            let keep: Vec<_> = self.in_view().chain(self.queue()).cloned().collect();
            self.known.retain(|name, _| keep.contains(name));
            self.summaries.retain(|name, _| keep.contains(name));
        }
    }

    /// Applies a key.
    pub(crate) fn act(&mut self, action: Action) -> Effect {
        if let Some((queue, wanted)) = self.to_confirm.take() {
            return match action {
                Action::Yes => Effect::Change(queue, wanted),
                Action::Quit => Effect::Quit,
                Action::Suspend => Effect::Suspend,
                _ => Effect::None,
            };
        }
        match action {
            Action::Quit => return Effect::Quit,
            Action::Suspend => return Effect::Suspend,
            Action::Back if self.opened.take().is_some() => {}
            _ if self.opened.is_some() => self.read_on(action),
            Action::Back if self.help => self.help = false,
            Action::Back if self.marked.take().is_some() => {}
            Action::Focus => {
                let first = self.tasks().next().filter(|_| self.marked.is_none());
                self.marked = first;
            }
            Action::Go(to) if self.marked.is_some() => self.mark(to),
            Action::Open => {
                if let (Some(queue), Some(id)) = (self.queue(), self.marked) {
                    return Effect::Open(queue.clone(), id);
                }
            }
            Action::Failures => {
                if let Some(stored) = self.stored() {
                    return Effect::Failures(stored.queue.clone());
                }
            }
            Action::Back => return Effect::Quit,
            Action::Help => self.help = !self.help,
            Action::Pause => self.request_confirmation(),
            Action::Go(to) => {
                let before = self.chosen;
                let last = self.names.len().saturating_sub(1);
                self.chosen = match to {
                    Move::Up => before.saturating_sub(1),
                    Move::Down => (before + 1).min(last),
                    Move::PageUp => before.saturating_sub(self.page.max(1)),
                    Move::PageDown => (before + self.page.max(1)).min(last),
                    Move::First => 0,
                    Move::Last => last,
                };
                if self.chosen != before {
                    return Effect::Read;
                }
            }
            Action::Yes | Action::Bodies | Action::Other => {}
        }
        Effect::None
    }

    /// The running and the upcoming tasks.
    fn tasks(&self) -> impl Iterator<Item = TaskId> {
        let last = self.stored().map(|stored| &stored.last);
        let runs = last.into_iter().flat_map(|last| last.runs.iter().map(|(task, _)| task.id));
        runs.chain(last.into_iter().flat_map(|last| last.upcoming.iter().map(|task| task.id)))
    }

    pub(crate) fn has_tasks(&self) -> bool {
        self.tasks().next().is_some()
    }

    /// Marks another task.
    fn mark(&mut self, to: Move) {
        let all: Vec<TaskId> = self.tasks().collect();
        let now = all.iter().position(|id| Some(*id) == self.marked).unwrap_or(0);
        let last = all.len().saturating_sub(1);
        let next = match to {
            Move::Up => now.saturating_sub(1),
            Move::Down => now + 1,
            Move::PageUp | Move::First => 0,
            Move::PageDown | Move::Last => last,
        };
        self.marked = all.get(next.min(last)).copied();
    }

    /// Scrolls the open text, or shows more of it.
    fn read_on(&mut self, action: Action) {
        let Some(opened) = &mut self.opened else { return };
        match action {
            Action::Bodies => opened.shows_bodies = !opened.shows_bodies,
            Action::Go(Move::Up) => opened.first_line = opened.first_line.saturating_sub(1),
            Action::Go(Move::Down) => opened.first_line += 1,
            Action::Go(Move::PageUp) => opened.first_line = opened.first_line.saturating_sub(PAGE_LINES),
            Action::Go(Move::PageDown) => opened.first_line += PAGE_LINES,
            Action::Go(Move::First) => opened.first_line = 0,
            _ => {}
        }
    }

    fn request_confirmation(&mut self) {
        let Some(queue) = self.queue().cloned() else { return };
        match (&self.outage, self.history()) {
            (None, found) if found.is_some() || self.stored().is_some() => {
                let is_pause = |one: &Condition| matches!(one, Condition::Paused { .. });
                let of_tasks =
                    || self.stored().is_some_and(|stored| stored.last.conditions.iter().any(is_pause));
                let paused = found.map_or_else(of_tasks, |history| history.snapshot().record.paused);
                let wanted = if paused { Wanted::Resume } else { Wanted::Pause };
                self.to_confirm = Some((queue, wanted));
            }
            _ => self.set_note(format!("{queue} cannot be paused now: it cannot be read")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::scene::Scene;

    fn name(name: &str) -> QueueName {
        QueueName::new(name).unwrap()
    }

    fn two_queues() -> Model {
        let mut model = Model::new("file:queues.json", None);
        model.apply(Message::Names(vec![name("a"), name("b")]), Duration::ZERO);
        for queue in ["a", "b"] {
            let paused = Scene::new(1000).paused().build();
            let read = if queue == "a" { Scene::new(1000).build() } else { paused };
            model.apply(Message::Read(name(queue), Some(read)), Duration::ZERO);
        }
        model
    }

    #[test]
    fn a_change_needs_a_yes_and_is_the_one_that_was_asked_about() {
        let mut model = two_queues();
        assert_eq!(model.act(Action::Pause), Effect::None);
        assert_eq!(model.to_confirm, Some((name("a"), Wanted::Pause)));
        // Another process pauses the queue meanwhile.
        model.apply(Message::Read(name("a"), Some(Scene::new(1000).paused().build())), Duration::ZERO);
        assert_eq!(model.act(Action::Yes), Effect::Change(name("a"), Wanted::Pause));
        for other in [Action::Pause, Action::Back, Action::Other, Action::Go(Move::Down), Action::Help] {
            model.act(Action::Pause);
            assert_eq!(model.act(other), Effect::None, "{other:?}");
            assert_eq!(model.to_confirm, None);
        }
        assert_eq!(model.act(Action::Go(Move::Down)), Effect::Read);
        model.act(Action::Pause);
        assert_eq!(model.act(Action::Yes), Effect::Change(name("b"), Wanted::Resume));
        assert_eq!(model.act(Action::Yes), Effect::None, "nothing is asked");
    }

    #[test]
    fn an_unreadable_queue_is_not_paused() {
        let mut model = two_queues();
        model.apply(Message::Outage("gone".into()), Duration::from_secs(1));
        model.act(Action::Pause);
        assert_eq!(model.to_confirm, None);
        assert!(model.note().is_some_and(|note| note.contains("cannot be read")));
    }

    #[test]
    fn an_outage_begins_once_and_ends_with_an_answer() {
        let mut model = two_queues();
        for (second, error) in [(1, "refused"), (2, "timed out")] {
            model.apply(Message::Outage(error.into()), Duration::from_secs(second));
        }
        let outage = Outage { since: Duration::from_secs(1), error: "timed out".into() };
        assert_eq!(model.outage, Some(outage));
        model.apply(Message::Read(name("a"), None), Duration::from_secs(5));
        assert_eq!(model.outage, None);
        assert_eq!(model.note(), Some("the store answers again, after 4.00s"));
        assert_eq!(model.reason().word, "NOT THERE");
        model.now = Duration::from_secs(60);
        assert_eq!(model.note(), None);
    }

    #[test]
    fn the_chosen_queue_stays_chosen_when_others_come_and_go() {
        let mut model = two_queues();
        model.act(Action::Go(Move::Last));
        model.apply(Message::Names(["0", "a", "b", "c"].map(name).to_vec()), Duration::ZERO);
        assert_eq!(model.queue(), Some(&name("b")));
        model.apply(Message::Names(vec![name("a")]), Duration::ZERO);
        assert_eq!(model.queue(), Some(&name("a")));
        model.apply(Message::Names(Vec::new()), Duration::ZERO);
        assert_eq!(model.queue(), None);
        assert_eq!(model.reason().word, "NOT THERE");
        for action in [Action::Go(Move::Down), Action::Go(Move::PageUp), Action::Pause, Action::Yes] {
            assert_eq!(model.act(action), Effect::None);
        }
    }

    #[test]
    fn ten_thousand_queues_are_not_all_remembered() {
        let mut model = Model::new("redis://localhost", None);
        let names: Vec<_> = (0..10_000).map(|n| name(&format!("q{n:05}"))).collect();
        model.apply(Message::Names(names.clone()), Duration::ZERO);
        model.page = 10;
        for name in &names {
            model.apply(Message::Read(name.clone(), Some(Scene::new(1000).build())), Duration::ZERO);
        }
        assert!(model.known.len() <= MAX_QUEUES + 1, "{}", model.known.len());
        assert_eq!(model.in_view().count(), 9);
    }
}
