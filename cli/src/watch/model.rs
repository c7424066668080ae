//! The model of the screen: updated by reads and keys, drawn by `draw`, independent of both.

use std::{collections::HashMap, time::Duration};

use interval_queue::QueueName;
use interval_queue_documents::words::{about, number};
use interval_queue_tasks::TaskId;
use ratatui::widgets::TableState;

use super::{
    history::History,
    keys::{Action, Move},
    messages::{Effect, Message, Wanted},
    queue_state::{Details, QueueState, StatusLine, Tone},
};
use crate::tasks::{Summary, TextPage};

/// Besides the queues in view.
const MAX_QUEUES: usize = 256;
const PAGE_LINES: usize = 10;
const NOTE_TIME: Duration = Duration::from_secs(6);

#[derive(Clone, Debug)]
pub(crate) struct Opened {
    pub(crate) page: TextPage,
    pub(crate) shows_bodies: bool,
    /// Lines above it are scrolled out of view.
    pub(crate) first_line: usize,
}

#[derive(Clone, Debug)]
struct Chosen {
    queue: QueueName,
    /// Time of the last read, on the clock of the host.
    seen_at: Duration,
    history: History,
    details: Option<Details>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    /// The URL of the store without secrets.
    pub(crate) store: String,
    /// Since the start of the program, on the clock of the host.
    pub(crate) now: Duration,
    /// A single name with `--queue`.
    pub(crate) names: Vec<QueueName>,
    pub(crate) chosen: usize,
    /// Rows of the list of queues in the last drawing.
    pub(crate) page: usize,
    pub(crate) queue_rows: TableState,
    pub(crate) task_rows: TableState,
    known: HashMap<QueueName, QueueState>,
    of_chosen: Option<Chosen>,
    /// `Some` while keys move between tasks.
    pub(crate) marked: Option<TaskId>,
    pub(crate) opened: Option<Opened>,
    /// Since when, on the clock of the host, and the error.
    pub(crate) outage: Option<(Duration, String)>,
    /// `Some` if the read takes long.
    pub(crate) read_since: Option<Duration>,
    pub(crate) to_confirm: Option<(QueueName, Wanted)>,
    pub(crate) help: bool,
    note: Option<(Duration, String)>,
    /// Whether the names have been read.
    listed: bool,
    pub(crate) answered: bool,
}

impl Model {
    /// With `only`, only that queue is shown.
    pub(crate) fn new(store: impl Into<String>, only: Option<QueueName>) -> Self {
        let (store, listed) = (store.into(), only.is_some());
        Self { store, listed, names: only.into_iter().collect(), page: 1, ..Self::default() }
    }

    pub(crate) fn queue(&self) -> Option<&QueueName> {
        self.names.get(self.chosen)
    }

    pub(crate) fn state_of(&self, queue: &QueueName) -> Option<&QueueState> {
        self.known.get(queue)
    }

    pub(crate) fn state(&self) -> Option<&QueueState> {
        self.known.get(self.queue()?)
    }

    /// `None`: it has none.
    pub(crate) fn tasks(&self) -> Option<&Summary> {
        self.state()?.tasks.as_ref()
    }

    fn of_chosen(&self) -> Option<&Chosen> {
        self.of_chosen.as_ref().filter(|chosen| Some(&chosen.queue) == self.queue())
    }

    pub(crate) fn history(&self) -> Option<&History> {
        self.of_chosen().map(|chosen| &chosen.history)
    }

    pub(crate) fn details(&self) -> Option<&Details> {
        self.of_chosen()?.details.as_ref()
    }

    pub(crate) fn age(&self) -> Option<Duration> {
        self.of_chosen().map(|chosen| self.now.saturating_sub(chosen.seen_at))
    }

    /// Or the outage, if the store does not answer.
    pub(crate) fn status(&self) -> StatusLine {
        let ago = |since: Duration| about(self.now.saturating_sub(since));
        if let Some((since, error)) = &self.outage {
            let text = format!("for {}: {error} (retrying)", ago(*since));
            return StatusLine::new(Tone::Bad, "unreachable", text);
        }
        if let Some(since) = self.read_since {
            return StatusLine::new(
                Tone::Bad,
                "no answer",
                format!("no reply of the store for {}", ago(since)),
            );
        }
        match (self.queue(), self.state()) {
            (Some(queue), Some(state)) => state.status(queue),
            (None, _) if self.listed => {
                let text = "the store has no queue yet: `interval-queue run --every` or `add` creates one";
                StatusLine::new(Tone::Idle, "not there", text)
            }
            _ => StatusLine::new(Tone::Idle, "not read yet", "the store has not answered yet"),
        }
    }

    /// Waiting and running jobs and the achieved rate. `None`: no rate limit.
    pub(crate) fn facts(&self) -> Option<String> {
        let rate = self.state()?.rate.as_ref()?;
        let record = &rate.record;
        let waiting = match record.ticket.behind(record.current) {
            0 => "0 waiting".to_owned(),
            // Tickets may belong to processes that have ended.
            some => format!("at most {} waiting", number(some)),
        };
        let running = record.max_running.map_or(String::new(), |limit| {
            format!(", {} running of {}", number(rate.running()), number(limit.into()))
        });
        let share = self.history().and_then(History::starts).and_then(|starts| starts.share);
        let achieved = share.map_or(String::new(), |share| format!(", {:.0}% of the rate", share * 100.0));
        Some(format!("{waiting}{running}{achieved}"))
    }

    /// Shown for some seconds.
    pub(crate) fn note(&self) -> Option<&str> {
        let (until, note) = self.note.as_ref()?;
        (self.now < *until).then_some(note)
    }

    fn set_note(&mut self, note: impl Into<String>) {
        self.note = Some((self.now + NOTE_TIME, note.into()));
    }

    /// Returns whether the queue exists.
    pub(crate) fn choose(&mut self, queue: &QueueName) -> bool {
        let place = self.names.iter().position(|name| name == queue);
        self.chosen = place.unwrap_or(self.chosen);
        place.is_some()
    }

    /// Excludes the chosen queue.
    pub(crate) fn in_view(&self) -> impl Iterator<Item = &QueueName> {
        let chosen = self.queue();
        let rows = self.names.iter().skip(self.queue_rows.offset()).take(self.page);
        rows.filter(move |name| Some(*name) != chosen)
    }

    /// `now`: on the clock of the host.
    pub(crate) fn apply(&mut self, message: Message, now: Duration) {
        self.now = now;
        match message {
            Message::Outage(error) => {
                let since = self.outage.as_ref().map_or(now, |(since, _)| *since);
                self.outage = Some((since, error));
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
            Message::Read(queue, state) => self.apply_state(queue, *state),
            Message::Details(queue, details) => {
                if let Some(chosen) = self.of_chosen.as_mut().filter(|chosen| chosen.queue == queue) {
                    chosen.details = Some(details);
                }
            }
            Message::Opened(Ok(page)) => {
                self.opened = Some(Opened { page, shows_bodies: false, first_line: 0 });
            }
            Message::Opened(Err(error)) => return self.set_note(error),
            Message::Changed(queue, Wanted::Pause, Ok(())) => self.set_note(format!("{queue} is paused")),
            Message::Changed(queue, Wanted::Resume, Ok(())) => {
                self.set_note(format!("{queue} is resumed: waiting processes start within about a second"));
            }
            Message::Changed(queue, _, Err(error)) => {
                return self.set_note(format!("{queue} is unchanged: {error}"));
            }
        }
        self.answered = true;
        if let Some((since, _)) = self.outage.take() {
            let gone = about(now.saturating_sub(since));
            self.set_note(format!("the store answers again, after {gone}"));
        }
    }

    fn apply_state(&mut self, queue: QueueName, state: QueueState) {
        if Some(&queue) == self.queue() {
            let before = self.of_chosen.take().filter(|chosen| chosen.queue == queue);
            let (mut history, details) = before.map_or_else(Default::default, |it| (it.history, it.details));
            if let Some(rate) = &state.rate {
                history.add_rate(rate);
            }
            if let Some(tasks) = &state.tasks {
                history.add_tasks(tasks);
            }
            self.of_chosen = Some(Chosen { queue: queue.clone(), seen_at: self.now, history, details });
        }
        self.known.insert(queue, state);
        // The marked task may have ended.
        if self.marked.is_some_and(|marked| self.task_ids().all(|id| id != marked)) {
            let first = self.task_ids().next();
            self.marked = first;
        }
        if self.known.len() > MAX_QUEUES {
            let keep: Vec<_> = self.in_view().chain(self.queue()).cloned().collect();
            self.known.retain(|name, _| keep.contains(name));
        }
    }

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
                let first = self.task_ids().next().filter(|_| self.marked.is_none());
                self.marked = first;
            }
            Action::Go(to) if self.marked.is_some() => {
                let all: Vec<TaskId> = self.task_ids().collect();
                let at = all.iter().position(|id| Some(*id) == self.marked).unwrap_or(0);
                self.marked = all.get(moved(at, to, PAGE_LINES, all.len())).copied();
            }
            Action::Open => {
                if let (Some(queue), Some(id)) = (self.queue(), self.marked) {
                    return Effect::Open(queue.clone(), id);
                }
            }
            Action::Failures => {
                if let Some(queue) = self.queue().filter(|_| self.tasks().is_some()) {
                    return Effect::Failures(queue.clone());
                }
            }
            Action::Back => return Effect::Quit,
            Action::Help => self.help = !self.help,
            Action::Pause => self.request_confirmation(),
            Action::Go(to) => {
                let chosen = moved(self.chosen, to, self.page, self.names.len());
                if std::mem::replace(&mut self.chosen, chosen) != chosen {
                    return Effect::Read;
                }
            }
            Action::Yes | Action::Bodies | Action::Other => {}
        }
        Effect::None
    }

    /// The running and the upcoming tasks.
    fn task_ids(&self) -> impl Iterator<Item = TaskId> {
        let runs = self.tasks().into_iter().flat_map(|tasks| tasks.runs.iter().map(|(task, _)| task.id));
        let upcoming = self.tasks().into_iter().flat_map(|tasks| tasks.upcoming.iter().map(|task| task.id));
        runs.chain(upcoming)
    }

    /// Index among all running and upcoming tasks.
    pub(crate) fn marked_row(&self) -> Option<usize> {
        let marked = self.marked?;
        self.task_ids().position(|id| id == marked)
    }

    /// Scrolls the open text, or shows more of it.
    fn read_on(&mut self, action: Action) {
        let Some(opened) = &mut self.opened else { return };
        match action {
            Action::Bodies => opened.shows_bodies = !opened.shows_bodies,
            Action::Go(to) => opened.first_line = moved(opened.first_line, to, PAGE_LINES, opened.lines()),
            _ => {}
        }
    }

    fn request_confirmation(&mut self) {
        let Some(queue) = self.queue().cloned() else { return };
        match self.state().filter(|state| self.outage.is_none() && state.exists()) {
            Some(state) => {
                let wanted = if state.is_paused() { Wanted::Resume } else { Wanted::Pause };
                self.to_confirm = Some((queue, wanted));
            }
            None => self.set_note(format!("{queue} cannot be paused now: it cannot be read")),
        }
    }

    /// Includes the queue's position in the list.
    pub(crate) fn title(&self) -> String {
        match (self.queue(), self.names.len()) {
            (None, _) => "no queue".to_owned(),
            (Some(queue), 0 | 1) => queue.to_string(),
            (Some(queue), count) => format!("{queue}  ({} of {count})", self.chosen + 1),
        }
    }
}

impl Opened {
    /// Payload and result only if they are shown.
    pub(crate) fn text(&self) -> String {
        let bodies = if self.shows_bodies { self.page.bodies.as_str() } else { "" };
        format!("{}{bodies}", self.page.about)
    }

    fn lines(&self) -> usize {
        self.text().lines().count()
    }
}

/// The list has `count` rows.
fn moved(at: usize, to: Move, page: usize, count: usize) -> usize {
    let last = count.saturating_sub(1);
    match to {
        Move::Up => at.saturating_sub(1),
        Move::Down => at + 1,
        Move::PageUp => at.saturating_sub(page.max(1)),
        Move::PageDown => at + page.max(1),
        Move::First => 0,
        Move::Last => last,
    }
    .min(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::tests::{Scene, name, read, tasks};

    fn two_queues() -> Model {
        let mut model = Model::new("file:queues.json", None);
        model.apply(Message::Names(vec![name("a"), name("b")]), Duration::ZERO);
        model.apply(read("a", Scene::new(1000)), Duration::ZERO);
        model.apply(read("b", Scene::new(1000).paused()), Duration::ZERO);
        model
    }

    #[test]
    fn a_change_needs_a_yes_and_is_the_one_that_was_asked_about() {
        let mut model = two_queues();
        assert_eq!(model.act(Action::Pause), Effect::None);
        assert_eq!(model.to_confirm, Some((name("a"), Wanted::Pause)));
        // Another process pauses the queue meanwhile.
        model.apply(read("a", Scene::new(1000).paused()), Duration::ZERO);
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
        assert_eq!(model.outage, Some((Duration::from_secs(1), "timed out".into())));
        model.apply(Message::Read(name("a"), Box::default()), Duration::from_secs(5));
        assert_eq!(model.outage, None);
        assert_eq!(model.note(), Some("the store answers again, after 4s"));
        assert_eq!(model.status().word, "NOT THERE");
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
        assert_eq!(model.status().word, "NOT THERE");
        for action in [Action::Go(Move::Down), Action::Go(Move::PageUp), Action::Pause, Action::Yes] {
            assert_eq!(model.act(action), Effect::None);
        }
    }

    #[test]
    fn details_of_another_queue_are_not_shown() {
        let mut model = two_queues();
        let details = || Details { workers: Vec::new(), failures: None };
        model.apply(read("a", Scene::new(1000)), Duration::ZERO);
        model.apply(Message::Details(name("a"), details()), Duration::ZERO);
        assert!(model.details().is_some());
        model.act(Action::Go(Move::Down));
        assert!(model.details().is_none() && model.history().is_none());
        model.apply(Message::Details(name("a"), details()), Duration::ZERO);
        model.apply(read("b", Scene::new(1000)), Duration::ZERO);
        assert!(model.details().is_none() && model.history().is_some());
    }

    #[test]
    fn ten_thousand_queues_are_not_all_remembered() {
        let mut model = Model::new("redis://localhost", None);
        let names: Vec<_> = (0..10_000).map(|n| name(&format!("q{n:05}"))).collect();
        model.apply(Message::Names(names.clone()), Duration::ZERO);
        model.page = 10;
        for name in &names {
            model.apply(read(name.as_str(), Scene::new(1000)), Duration::ZERO);
        }
        assert!(model.known.len() <= MAX_QUEUES + 1, "{}", model.known.len());
        assert_eq!(model.in_view().count(), 9);
    }

    #[test]
    fn a_queue_of_tasks_alone_is_paused_and_resumed() {
        let mut model = Model::new("sqlite:queues.db", Some(name("mail")));
        let paused = vec![interval_queue_tasks::Condition::Paused { since: None, running: 0 }];
        for (conditions, wanted) in [(Vec::new(), Wanted::Pause), (paused, Wanted::Resume)] {
            let summary = Summary { conditions, ..tasks(&[]) };
            model.apply(crate::watch::tests::read_tasks("mail", None, summary), Duration::ZERO);
            model.act(Action::Pause);
            assert_eq!(model.act(Action::Yes), Effect::Change(name("mail"), wanted));
        }
    }
}
