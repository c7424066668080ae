//! `turns`: prints a line for each requested turn, at its slot, for programs that start their work
//! themselves.

mod requests;
mod turns_args;

use std::{
    collections::{BTreeMap, VecDeque},
    io::{self, Write},
    pin::pin,
    time::Duration,
};

use futures::{
    FutureExt, StreamExt,
    future::{AbortHandle, Abortable, BoxFuture},
    stream::FuturesUnordered,
};
use interval_queue::{Error, IntervalQueue, Turn};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::SIGPIPE;
use tokio::{
    io::{Stdin, stdin},
    time::sleep,
};

use self::requests::{Request, Requests};
pub(crate) use self::turns_args::Turns;
use crate::{
    clock::until,
    connection_state::{ConnectionState, Stage},
    exit::{Ending, Failure, IOERR, Stdout},
    shard::{FirstConnection, Refusals, leave, tick_through_pauses, tickets_ahead},
    signals::Signals,
};

/// With as many requests waiting, no input is read.
const MAX_WAITING: usize = 10_000;
/// After the last request, a closed stdout is noticed at this interval.
const READER_CHECK_INTERVAL: Duration = Duration::from_millis(200);

pub(crate) async fn run(turns: Turns) -> Result<Ending, Failure> {
    let mut signals = Signals::listen()?;
    let connection = ConnectionState::new(&turns.shard.target.store.url);
    let queue = tokio::select! {
        biased;
        signal = signals.next() => return Ok(Ending::Signal(signal.number)),
        queue = turns.shard.open("turns", FirstConnection::MustSucceed, &connection) => queue?,
    };
    let ending = tokio::select! {
        biased;
        signal = signals.next() => Ok(Ending::Signal(signal.number)),
        ending = TurnServer::new(&queue, turns.shard.weight).serve(&connection) => ending,
    };
    connection.enter(Stage::Leaving);
    tokio::select! {
        () = leave(&queue) => {}
        _ = signals.next() => {}
    }
    ending
}

struct TurnServer<'a> {
    queue: &'a IntervalQueue,
    weight: u32,
    requests: Requests<Stdin>,
    is_read: bool,
    /// Weights of requests that hold no ticket yet, oldest first.
    waiting: VecDeque<u32>,
    /// Requests that hold a ticket, by number, with their abort handles.
    requested: BTreeMap<u64, AbortHandle>,
    turns: FuturesUnordered<BoxFuture<'a, Answer>>,
    /// Answers that arrived together, in the order of their requests.
    answers: VecDeque<Answer>,
    request_count: u64,
    /// Turns that count as running until the program reports their end.
    taken: Vec<Turn>,
    refusals: Refusals,
}

/// Number, weight and turn of a request that holds a ticket. `None`: it was taken back.
type Answer = (u64, u32, Option<Result<Turn, Error>>);

enum Event {
    Request(Option<Request>),
    Answer(Answer),
    Retry,
    /// The reader may be gone.
    CheckReader,
}

impl<'a> TurnServer<'a> {
    fn new(queue: &'a IntervalQueue, weight: u32) -> Self {
        Self {
            queue,
            weight,
            requests: Requests::of(stdin()),
            is_read: false,
            waiting: VecDeque::new(),
            requested: BTreeMap::new(),
            turns: FuturesUnordered::new(),
            answers: VecDeque::new(),
            request_count: 0,
            taken: Vec::new(),
            refusals: Refusals::default(),
        }
    }

    /// Answers all requests.
    ///
    /// # Cancel safety
    ///
    /// Dropping it gives up the waiting requests.
    async fn serve(mut self, connection: &ConnectionState) -> Result<Ending, Failure> {
        let mut ticking = pin!(tick_through_pauses::<()>(self.queue, connection));
        loop {
            self.request_turns();
            if self.is_read && (self.waiting.is_empty() && self.requested.is_empty() || is_reader_gone()) {
                return Ok(Ending::Code(0));
            }
            let event = tokio::select! {
                biased;
                event = self.next() => event?,
                () = &mut ticking => continue,
            };
            let answered = match event {
                Event::Retry => {
                    self.refusals.retry();
                    Ok(())
                }
                Event::CheckReader => Ok(()),
                Event::Request(request) => self.take(request).await,
                Event::Answer(answer) => self.answer(answer, connection).await?,
            };
            match answered {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                    return Ok(Ending::Signal(SIGPIPE));
                }
                Err(error) => return Err(Failure::new(IOERR, format!("cannot write the turns: {error}"))),
                Ok(()) => {}
            }
        }
    }

    async fn next(&mut self) -> Result<Event, Failure> {
        // After a delay of this process several answers are ready, in any order. A turn is printed
        // after those of earlier requests, unless they were taken back.
        while let Some(Some(answer)) = self.turns.next().now_or_never() {
            self.answers.push_back(answer);
        }
        self.answers.make_contiguous().sort_by_key(|(number, ..)| *number);
        let first =
            self.requested.iter().find(|(_, request)| !request.is_aborted()).map(|(number, _)| *number);
        let is_due =
            |(number, _, turn): &Answer| turn.is_none() || first.is_none_or(|first| *number <= first);
        if let Some(answer) = self.answers.iter().position(is_due).and_then(|due| self.answers.remove(due)) {
            return Ok(Event::Answer(answer));
        }
        let reads = !self.is_read && self.waiting.len() < MAX_WAITING;
        let retry = until(self.refusals.until());
        tokio::select! {
            biased;
            Some(answer) = self.turns.next() => {
                self.answers.push_back(answer);
                Ok(Event::CheckReader)
            }
            () = retry => Ok(Event::Retry),
            request = self.requests.next(), if reads => Ok(Event::Request(request?)),
            () = sleep(READER_CHECK_INTERVAL), if self.is_read => Ok(Event::CheckReader),
        }
    }

    /// Requests a turn for each slot of the near future.
    fn request_turns(&mut self) {
        let ahead = tickets_ahead(self.queue, self.weight);
        while self.requested.len() < ahead
            && !self.refusals.are_waiting()
            && let Some(weight) = self.waiting.pop_front()
        {
            let number = self.request_count;
            self.request_count += 1;
            let (handle, registration) = AbortHandle::new_pair();
            let turn = self.queue.turn().weight(weight).into_future();
            let turn = Abortable::new(turn, registration);
            self.turns.push(async move { (number, weight, turn.await.ok()) }.boxed());
            self.requested.insert(number, handle);
        }
    }

    async fn take(&mut self, request: Option<Request>) -> io::Result<()> {
        match request {
            None => self.is_read = true,
            Some(Request::Turn(weight)) => self.waiting.push_back(weight.unwrap_or(self.weight)),
            Some(Request::Done) => drop(self.taken.pop()),
            Some(Request::Back) => {
                if self.waiting.pop_back().is_some() {
                    return write_line("back").await;
                }
                match self.requested.values().rev().find(|request| !request.is_aborted()) {
                    // Answered when its ticket is returned.
                    Some(request) => request.abort(),
                    // Its turn has come meanwhile, and is not used.
                    None => drop(self.taken.pop()),
                }
            }
        }
        Ok(())
    }

    async fn answer(
        &mut self,
        answer: Answer,
        connection: &ConnectionState,
    ) -> Result<io::Result<()>, Failure> {
        let (number, weight, turn) = answer;
        self.requested.remove(&number);
        match turn {
            Some(Ok(turn)) => {
                self.refusals.granted();
                let written = write_line(&format!("turn {}", turn.ticket())).await;
                if self.queue.max_running().is_some() {
                    self.taken.push(turn);
                }
                Ok(written)
            }
            Some(Err(error)) => {
                self.waiting.push_front(weight);
                self.refusals.record(error, connection)?;
                Ok(Ok(()))
            }
            None => Ok(write_line("back").await),
        }
    }
}

/// A slow reader blocks only answers.
async fn write_line(line: &str) -> io::Result<()> {
    let line = format!("{line}\n");
    if stdout_events(PollFlags::OUT).contains(PollFlags::OUT) {
        return Stdout.write_all(line.as_bytes());
    }
    tokio::task::spawn_blocking(move || Stdout.write_all(line.as_bytes())).await?
}

fn is_reader_gone() -> bool {
    stdout_events(PollFlags::empty()).intersects(PollFlags::ERR | PollFlags::HUP)
}

/// Errors are always reported, whatever the `flags`.
fn stdout_events(flags: PollFlags) -> PollFlags {
    let stdout = io::stdout();
    let mut ready = [PollFd::new(&stdout, flags)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    // If stdout cannot be polled, the next write returns the error.
    let _ = poll(&mut ready, Some(&at_once));
    ready[0].revents()
}
