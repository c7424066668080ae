//! The loop: applies signals, keys and reads to the model, and draws it.

use std::{
    env,
    future::{Future, pending},
    io::{self, IsTerminal},
    pin::Pin,
    thread,
    time::Duration,
};

use interval_queue::QueueName;
use ratatui::crossterm::event::{self, Event};
use signal_hook::{
    consts::{SIGCONT, SIGTSTP},
    low_level::emulate_default_handler,
};
use tokio::{sync::mpsc, time::sleep};

use super::{
    draw::Theme,
    keys::action,
    messages::{Effect, Message},
    model::Model,
    options::{CHOSEN_VARIABLE, Watch},
    plain::Lines,
    reader::Reader,
    rounds::{Rounds, Scope, Task},
    screen::Screen,
    watch_clock::Clock,
};
use crate::{
    exit::{Ending, Failure, IOERR, USAGE, print},
    place,
    signals::Signals,
};

/// Without an event, since the age of a read and of an outage grows.
const MAX_REDRAW_INTERVAL: Duration = Duration::from_millis(500);
const MIN_REDRAW_INTERVAL: Duration = Duration::from_millis(100);
/// A longer read is reported.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(2);

type Work<T> = Pin<Box<dyn Future<Output = T>>>;

pub(crate) async fn run(watch: Watch) -> Result<Ending, Failure> {
    if !io::stdout().is_terminal() {
        let way_out = "use `interval-queue status`, or `status --json`";
        return Err(Failure::new(USAGE, format!("watch needs a terminal as stdout: {way_out}")));
    }
    let signals = Signals::listen_also(&[SIGTSTP, SIGCONT])
        .map_err(|error| Failure::os("cannot listen to signals", &error))?;
    let scope = if watch.queue.is_some() { Scope::One } else { Scope::All };
    let mut watching = LiveView {
        model: Model::new(place::without_secrets(&watch.store.url), watch.queue),
        rounds: Rounds::new(watch.refresh, scope),
        reader: Reader::new(watch.store),
        clock: Clock::start(),
        first: if scope == Scope::All {
            env::var(CHOSEN_VARIABLE).ok().and_then(|name| QueueName::new(name).ok())
        } else {
            None
        },
        reading: None,
        changing: None,
    };
    let dumb = env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    if dumb {
        watching.write_lines(signals).await
    } else {
        let frame = watch.refresh.clamp(MIN_REDRAW_INTERVAL, MAX_REDRAW_INTERVAL);
        watching.draw(signals, frame).await
    }
}

struct Reading {
    task: Task,
    since: Duration,
    message: Work<Result<Message, Failure>>,
}

struct LiveView {
    model: Model,
    rounds: Rounds,
    reader: Reader,
    clock: Clock,
    /// The queue to choose first, once it exists, unless another one was chosen.
    first: Option<QueueName>,
    reading: Option<Reading>,
    changing: Option<Work<Message>>,
}

impl LiveView {
    /// Draws on a terminal with a screen.
    async fn draw(&mut self, mut signals: Signals, frame: Duration) -> Result<Ending, Failure> {
        let gone = |error: io::Error| Failure::new(IOERR, format!("cannot draw on the terminal: {error}"));
        let theme = if env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) {
            Theme::Plain
        } else {
            Theme::Colours
        };
        let mut screen = Screen::take().map_err(|error| Failure::os("cannot use the terminal", &error))?;
        let mut events = events().map_err(|error| Failure::os("cannot read keys", &error))?;
        loop {
            self.model.now = self.clock.now();
            screen.draw(&mut self.model, theme).map_err(gone)?;
            let effect = tokio::select! {
                signal = signals.next() => match signal.number {
                    SIGTSTP => Effect::Suspend,
                    // The shell that continued the process may have changed the terminal.
                    SIGCONT => {
                        screen.without(|| ()).map_err(gone)?;
                        Effect::None
                    }
                    ends => return Ok(Ending::Signal(ends)),
                },
                Some(event) = events.recv() => match event {
                    Event::Key(key) => action(key).map_or(Effect::None, |action| self.model.act(action)),
                    _ => Effect::None,
                },
                updated = self.update() => {
                    updated?;
                    Effect::None
                }
                () = sleep(frame) => Effect::None,
            };
            match effect {
                Effect::None => {}
                Effect::Read => {
                    self.first = None;
                    self.rounds.read_soon();
                }
                Effect::Change(queue, wanted) => self.begin(|reader| reader.change(queue, wanted)),
                Effect::Open(queue, id) => self.begin(|reader| reader.open(queue, id)),
                Effect::Failures(queue) => self.begin(|reader| reader.failures(queue)),
                Effect::Quit => return Ok(Ending::Code(0)),
                Effect::Suspend => {
                    // Returns when the process continues.
                    let stopped = screen.without(|| emulate_default_handler(SIGTSTP)).map_err(gone)?;
                    stopped.map_err(|error| Failure::os("cannot stop", &error))?;
                }
            }
        }
    }

    /// Begins what a key requests.
    fn begin<F: Future<Output = Message> + 'static>(&mut self, work: impl FnOnce(Reader) -> F) {
        self.changing = Some(Box::pin(work(self.reader.clone())));
    }

    /// Writes lines to a dumb terminal.
    async fn write_lines(&mut self, mut signals: Signals) -> Result<Ending, Failure> {
        let mut lines = Lines::default();
        loop {
            tokio::select! {
                signal = signals.next() => match signal.number {
                    SIGTSTP => emulate_default_handler(SIGTSTP).map_err(|error| Failure::os("cannot stop", &error))?,
                    SIGCONT => {}
                    ends => return Ok(Ending::Signal(ends)),
                },
                updated = self.update() => updated?,
                () = sleep(MAX_REDRAW_INTERVAL) => {}
            }
            self.model.now = self.clock.now();
            let answered = self.model.state().is_some() || self.model.now > SILENCE_TIMEOUT;
            if let Some(line) = answered.then(|| lines.next(&self.model)).flatten() {
                print(&line)?;
            }
        }
    }

    /// Waits until something has been read or changed, and applies it.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: operations in progress are kept.
    async fn update(&mut self) -> Result<(), Failure> {
        loop {
            let now = self.clock.now();
            if self.reading.is_none() {
                self.reading = self.rounds.next(&self.model, now).map(|task| {
                    let message = Box::pin(self.reader.clone().read(task.clone()));
                    Reading { task, since: now, message }
                });
            }
            let silent = self.reading.as_ref().map(|reading| reading.since);
            self.model.read_since = silent.filter(|since| now.saturating_sub(*since) >= SILENCE_TIMEOUT);
            let idle = self.rounds.wake_at().saturating_sub(now);
            let changed = tokio::select! {
                message = under_way(self.changing.as_mut()) => Some(message),
                message = under_way(self.reading.as_mut().map(|reading| &mut reading.message)) => {
                    return self.reading.take().map_or(Ok(()), |reading| self.apply_read(&reading, message));
                }
                () = sleep(idle), if self.reading.is_none() => None,
            };
            if let Some(message) = changed {
                self.changing = None;
                self.rounds.read_soon();
                self.model.apply(message, self.clock.now());
                return Ok(());
            }
        }
    }

    /// Applies the result of a read.
    fn apply_read(&mut self, reading: &Reading, message: Result<Message, Failure>) -> Result<(), Failure> {
        let now = self.clock.now();
        self.model.read_since = None;
        let message = match message {
            Ok(message) => message,
            // A permanent failure ends the program if nothing was read before. Later, another
            // person may fix the cause.
            Err(failure) if self.model.answered => Message::Outage(failure.message),
            Err(failure) => return Err(failure),
        };
        if matches!(message, Message::Outage(_)) {
            self.rounds.failed(&self.model, now);
        }
        self.model.apply(message, now);
        if self.model.outage.is_none() {
            if reading.task == Task::List && self.first.as_ref().is_some_and(|first| self.model.choose(first))
            {
                self.first = None;
            }
            self.rounds.done(&reading.task, &self.model, now, now.saturating_sub(reading.since));
        }
        Ok(())
    }
}

/// Pending forever without work.
async fn under_way<T>(work: Option<&mut Work<T>>) -> T {
    match work {
        Some(work) => work.await,
        None => pending().await,
    }
}

/// Read on a thread of their own.
fn events() -> io::Result<mpsc::UnboundedReceiver<Event>> {
    let (sender, receiver) = mpsc::unbounded_channel();
    thread::Builder::new().name("keys".into()).spawn(move || {
        // Ends if there is no keyboard: then signals end the program.
        while let Ok(event) = event::read() {
            if sender.send(event).is_err() {
                break;
            }
        }
    })?;
    Ok(receiver)
}
