//! The stages of an item: read, upcoming, running, waiting for a retry.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    pin::pin,
    time::Duration,
};

use futures::{
    FutureExt, StreamExt,
    future::{BoxFuture, LocalBoxFuture},
    stream::FuturesUnordered,
};
use interval_queue::{Error, IntervalQueue, Turn};
use signal_hook::consts::{SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM};
use tokio::{
    sync::{broadcast, oneshot},
    time::Instant,
};

use super::{
    attempt::{Attempt, Outcome, Why},
    each_args::Each,
    each_progress::Board,
    each_stop::Stop,
    item::Item,
    items::{Items, Next},
    jobs::most_at_once,
    output::{Fate, Grouping, Output, OutputEvent, Printout},
    tally::Tally,
    template::Template,
};
use crate::{
    child::End,
    clock::{now, until},
    connection_state::ConnectionState,
    shard::{Refusals, tick_through_pauses, tickets_ahead, too_late},
    signals::{Signal, Signals},
};

/// With as many items waiting for a retry, no item is read.
const MAX_RESTING: usize = 1000;
/// With as many outputs waiting for earlier ones, no item is read.
const MAX_HELD: usize = 100_000;

/// Two signals within this time count once: some programs signal the process and its group.
const SIGNAL_WINDOW: Duration = Duration::from_millis(100);

pub(crate) struct Flow<'a> {
    options: &'a Each,
    queue: &'a IntervalQueue,
    template: &'a Template,
    items: &'a mut Items,
    tally: &'a mut Tally,
    output: &'a mut Output,
    board: &'a Board,
    /// Maximum commands that run at once.
    jobs: usize,
    /// Items that wait for a turn. Each turn starts the first of them.
    upcoming: VecDeque<Item>,
    turns: FuturesUnordered<BoxFuture<'a, Result<Turn, Error>>>,
    running: FuturesUnordered<LocalBoxFuture<'a, (u64, Outcome)>>,
    /// Running items, by number.
    started: BTreeMap<u64, Item>,
    /// Outputs in the printing thread that still take memory.
    printing: FuturesUnordered<oneshot::Receiver<()>>,
    /// Items that are done if all of their output is written.
    unprinted: BTreeMap<u64, Item>,
    /// Items that wait for a retry, by its time and by number.
    resting: BTreeMap<(Instant, u64), Item>,
    signals: broadcast::Sender<Signal>,
    taken: u64,
    /// Start of the time in which an item was upcoming and nothing started.
    idle_since: Instant,
    refusals: Refusals,
    stop: Option<Stop>,
}

enum Event {
    Signal(Signal),
    Turn(Result<Turn, Error>),
    Ended(u64, Outcome),
    Printed,
    Rested,
    Read,
    Output(OutputEvent),
    Retry,
    TooLate(Duration),
}

impl<'a> Flow<'a> {
    pub(crate) fn new(
        options: &'a Each,
        queue: &'a IntervalQueue,
        template: &'a Template,
        items: &'a mut Items,
        tally: &'a mut Tally,
        output: &'a mut Output,
        board: &'a Board,
    ) -> Self {
        Self {
            options,
            queue,
            template,
            items,
            tally,
            output,
            board,
            jobs: most_at_once(options),
            upcoming: VecDeque::new(),
            turns: FuturesUnordered::new(),
            running: FuturesUnordered::new(),
            started: BTreeMap::new(),
            printing: FuturesUnordered::new(),
            unprinted: BTreeMap::new(),
            resting: BTreeMap::new(),
            signals: broadcast::Sender::new(16),
            taken: 0,
            idle_since: now(),
            refusals: Refusals::default(),
            stop: None,
        }
    }

    /// Runs as many items as possible. Returns why it stopped before the end of the input, and the
    /// items whose output may not be written yet.
    pub(crate) async fn run(
        mut self,
        connection: &ConnectionState,
        signals: &mut Signals,
    ) -> (Option<Stop>, BTreeMap<u64, Item>) {
        let mut ticking = pin!(tick_through_pauses::<()>(self.queue, connection));
        let mut reporting = pin!(connection.report_pauses::<()>());
        loop {
            self.request_turns();
            self.post();
            if self.is_over() {
                break;
            }
            let event = tokio::select! {
                biased;
                event = self.next(signals) => event,
                () = &mut ticking => continue,
                () = &mut reporting => continue,
            };
            match event {
                Event::Signal(signal) => self.signal(signal),
                Event::Turn(Ok(turn)) => self.start(turn),
                Event::Turn(Err(error)) => self.refused(error, connection),
                Event::Ended(number, outcome) => self.ended(number, outcome),
                Event::Printed | Event::Read => {}
                Event::Rested => self.upcoming.extend(self.resting.pop_first().map(|(_, item)| item)),
                Event::Retry => self.refusals.retry(),
                Event::Output(OutputEvent::Fate(fate)) => self.printed(fate),
                Event::Output(OutputEvent::Broken(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                    self.stop(Stop::OutputClosed);
                }
                Event::Output(OutputEvent::Broken(error)) => self.stop(Stop::OutputFailed(error)),
                Event::TooLate(limit) => self.stop(Stop::Failure(too_late(limit, connection))),
            }
            if matches!(self.stop, Some(Stop::Signal { repeated: true, .. })) {
                // Commands that have ended are recorded before the rest is left running.
                while let Some(Some((number, outcome))) = self.running.next().now_or_never() {
                    self.ended(number, outcome);
                }
                break;
            }
        }
        self.record_undone().await;
        (self.stop, self.unprinted)
    }

    async fn next(&mut self, signals: &mut Signals) -> Event {
        let limit = self.options.start_within.filter(|_| self.waits());
        let too_late = until(limit.map(|limit| self.idle_since + limit));
        let is_going = self.stop.is_none();
        let rested = until(self.resting.keys().next().map(|(end, _)| *end).filter(|_| is_going));
        let retry = until(self.refusals.until().filter(|_| is_going));
        let reads = self.stop.is_none() && self.items.has_room();
        tokio::select! {
            biased;
            signal = signals.next() => Event::Signal(signal),
            Some(turn) = self.turns.next() => Event::Turn(turn),
            Some((number, outcome)) = self.running.next() => Event::Ended(number, outcome),
            Some(_) = self.printing.next() => Event::Printed,
            () = rested => Event::Rested,
            () = retry => Event::Retry,
            event = self.output.next_event() => Event::Output(event),
            () = self.items.read(), if reads => Event::Read,
            () = too_late => Event::TooLate(limit.unwrap_or_default()),
        }
    }

    /// Moves items to `upcoming`, and requests a turn for each slot of the near future.
    fn request_turns(&mut self) {
        if self.stop.is_some() {
            return;
        }
        let ahead = tickets_ahead(self.queue, self.options.shard.weight);
        let has_room = self.resting.len() < MAX_RESTING && self.output.held() < MAX_HELD;
        while has_room && self.upcoming.len() < ahead {
            let Some(next) = self.items.take() else { break };
            let number = self.taken;
            self.taken += 1;
            match next {
                Next::Item(value) => self.upcoming.push_back(Item::new(number, value, self.options.retry)),
                Next::Overlong(item) => {
                    let (stdout, stderr) = Default::default();
                    self.print(Printout { item: Some(number), stdout, stderr });
                    self.tally.overlong(item);
                    if self.options.fail_fast {
                        return self.stop(Stop::FirstFailure);
                    }
                }
            }
        }
        let busy = self.running.len() + self.printing.len();
        let room = self.jobs.saturating_sub(busy).min(ahead).min(self.upcoming.len());
        if !self.waits() {
            self.idle_since = now();
        }
        while self.turns.len() < room && !self.refusals.are_waiting() {
            self.turns.push(self.queue.turn().weight(self.options.shard.weight).into_future());
        }
    }

    /// Whether an item is upcoming.
    fn waits(&self) -> bool {
        !self.turns.is_empty() || self.refusals.are_waiting()
    }

    /// Handles a refused turn. If a person can fix the cause, the items wait.
    fn refused(&mut self, error: Error, connection: &ConnectionState) {
        if let Err(failure) = self.refusals.record(error, connection) {
            self.stop(Stop::Failure(failure));
        }
    }

    fn start(&mut self, turn: Turn) {
        // There are never more turns than upcoming items.
        let Some(item) = self.upcoming.pop_front() else { return };
        self.refusals.granted();
        let command = self.template.command(&item.value);
        let attempt = Attempt::start(command, self.options.grouping(), turn);
        self.idle_since = now();
        self.tally.started(self.idle_since);
        if item.why.is_some() {
            self.tally.counts.retried += 1;
        }
        let (number, timeout, signals) = (item.number, self.options.timeout, self.signals.subscribe());
        let ending = async move { (number, attempt.finish(timeout, signals).await) };
        self.running.push(ending.boxed_local());
        self.started.insert(number, item);
    }

    fn ended(&mut self, number: u64, outcome: Outcome) {
        let Some(mut item) = self.started.remove(&number) else { return };
        let Outcome { failure, stdout, stderr } = outcome;
        let Some(why) = failure else {
            self.tally.counts.done += 1;
            if !stdout.is_empty() {
                self.unprinted.insert(number, item);
            }
            return self.print(Printout { item: Some(number), stdout, stderr });
        };
        let for_all = why.for_all().cloned();
        if self.stop.is_none()
            && for_all.is_none()
            && let Some(delay) = item.delays.next()
        {
            self.print(Printout { item: None, stdout: Default::default(), stderr });
            item.why = Some(why);
            self.resting.insert((now() + delay, number), item);
            return;
        }
        self.print(Printout { item: Some(number), stdout, stderr });
        self.tally.failed(&item.value, &why);
        match (for_all, why) {
            (Some(failure), _) => self.stop(Stop::Failure(failure)),
            // Without grouping only the commands see a closed stdout.
            (_, Why::Ended(End::Signal(SIGPIPE))) if self.options.grouping() == Grouping::None => {
                self.stop(Stop::OutputClosed)
            }
            _ if self.options.fail_fast => self.stop(Stop::FirstFailure),
            _ => {}
        }
    }

    fn print(&mut self, printout: Printout) {
        self.printing.push(self.output.print(printout));
    }

    fn printed(&mut self, Fate { item, written }: Fate) {
        if let (Some(item), Err(error)) = (self.unprinted.remove(&item), written) {
            self.tally.output_lost(&item.value, error);
        }
    }

    fn signal(&mut self, signal: Signal) {
        let _ = self.signals.send(signal);
        let number = signal.number;
        if ![SIGHUP, SIGINT, SIGQUIT, SIGTERM].contains(&number) {
            return;
        }
        match &mut self.stop {
            Some(Stop::Signal { since, repeated, .. }) => *repeated |= now() > *since + SIGNAL_WINDOW,
            Some(_) => self.stop = Some(Stop::Signal { number, since: now(), repeated: true }),
            None => {
                if !self.running.is_empty() && !self.options.quiet {
                    let waits = "waiting for the running commands; a second signal ends `each` at once";
                    self.output.line_writer()(&format!("starting nothing more; {waits}"));
                }
                self.stop(Stop::Signal { number, since: now(), repeated: false });
            }
        }
    }

    /// Starts nothing more. The first reason is kept.
    fn stop(&mut self, stop: Stop) {
        self.stop.get_or_insert(stop);
        self.turns.clear();
    }

    fn is_over(&self) -> bool {
        let at_rest = self.running.is_empty() && self.printing.is_empty();
        let done = self.items.is_read() && self.items.ready() == 0;
        let nothing_waits = self.upcoming.is_empty() && self.resting.is_empty();
        at_rest && (self.stop.is_some() || done && nothing_waits)
    }

    fn post(&mut self) {
        let counts = &mut self.tally.counts;
        counts.running = self.running.len() as u64;
        counts.total = self.items.is_read().then(|| self.taken + self.items.ready() as u64);
        self.board.post(*counts);
    }

    /// Records all items that were not done.
    async fn record_undone(&mut self) {
        while let Some(fate) = self.output.fate() {
            self.printed(fate);
        }
        // Sorted by number: the order of the input.
        let mut undone = BTreeMap::new();
        undone.extend(
            std::mem::take(&mut self.started).into_iter().map(|(number, item)| (number, (true, item))),
        );
        let resting = std::mem::take(&mut self.resting).into_values();
        let waiting = resting.chain(std::mem::take(&mut self.upcoming));
        undone.extend(waiting.map(|item| (item.number, (false, item))));
        for (is_running, item) in undone.into_values() {
            match item.why {
                _ if is_running => self.tally.cut_off(&item.value),
                Some(why) => self.tally.failed(&item.value, &why),
                None => self.tally.left(&item.value),
            }
        }
        loop {
            while let Some(item) = self.items.take() {
                match item {
                    Next::Item(item) => self.tally.left(&item),
                    Next::Overlong(item) => self.tally.overlong(item),
                }
            }
            if self.items.is_read() || !self.tally.has_file() || !Items::is_file() {
                break;
            }
            self.items.read().await;
        }
    }
}
