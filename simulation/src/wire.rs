//! The network between a process and the store: messages are late, lost, doubled or reordered.

use std::time::Duration;

use async_trait::async_trait;
use interval_queue::Host;
use interval_queue_contract::{Command, QueueName, Reply, SharedState, StateError, StateErrorKind};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep_until},
};

use crate::{process::Process, world::World};

/// A client's default.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) time_out: Duration,
    pub(crate) wakes: bool,
    /// Longest ordinary delay of requests, and of replies.
    pub(crate) delay: (Duration, Duration),
    /// One for each of the next messages.
    pub(crate) next: std::collections::VecDeque<Mishap>,
    /// Cut off until this instant, in this manner.
    pub(crate) cut: Option<(Instant, Cut)>,
}

impl Default for Line {
    fn default() -> Self {
        Self {
            time_out: REQUEST_TIMEOUT,
            wakes: true,
            delay: Default::default(),
            next: Default::default(),
            cut: None,
        }
    }
}

/// Something that a process asks the store.
pub(crate) trait Request: Clone + Send + 'static {
    type Reply: Send + 'static;

    fn arrive(&self, world: &World, process: usize, queue: &QueueName) -> Result<Self::Reply, StateError>;

    fn delivered(_: &World, _: usize, _: &QueueName, _: &Self::Reply, _applied: Instant) {}

    /// For the journal.
    fn words(&self) -> String;
}

impl Request for Command {
    type Reply = Reply;

    fn arrive(&self, world: &World, process: usize, queue: &QueueName) -> Result<Reply, StateError> {
        world.apply(process, queue, self)
    }

    fn delivered(world: &World, process: usize, queue: &QueueName, reply: &Reply, applied: Instant) {
        world.delivered(process, queue, reply, applied);
    }

    fn words(&self) -> String {
        words(self)
    }
}

/// Something that happens to one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mishap {
    /// The request does not arrive.
    LoseRequest,
    /// The request arrives, and in place of its reply comes an error, or nothing.
    LoseReply(Cut),
    /// The request arrives again after this time.
    Duplicate(Duration),
    /// Request and reply are late by so much.
    Delay(Duration, Duration),
}

/// How a connection fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// At once, with an error.
    Refused,
    /// Without a word.
    Silent,
}

const MAX_DELAY: Duration = Duration::from_secs(5);

/// A reply, and when the store gave it.
type Answer<R> = (Result<R, StateError>, Instant);
type Answered<R> = oneshot::Sender<Answer<R>>;

struct Fate {
    cut: Option<Cut>,
    leaves: Instant,
    request: Duration,
    reply: Duration,
    mishap: Option<Mishap>,
    time_out: Duration,
}

impl Process {
    fn fate(&self) -> Fate {
        let (now, began) = (self.world.now(), self.world.began());
        self.world.inside(|inside| {
            let condition = &mut inside.processes[self.id];
            let line = &mut inside.lines[self.id];
            let leaves = condition.present(now);
            let mut some = |most: Duration| most.mul_f64(condition.random.f64());
            let (mut request, mut reply) = (some(line.delay.0), some(line.delay.1));
            let (mishap, time_out) = (line.next.pop_front(), line.time_out);
            if mishap.is_some() {
                inside.tasks.disturbed(now - began + request + reply + time_out + MAX_DELAY);
            }
            if let Some(Mishap::Delay(late_request, late_reply)) = mishap {
                request += late_request;
                reply += late_reply;
            }
            let cut = [line.cut, inside.outage].into_iter().flatten().find(|(until, _)| leaves < *until);
            Fate { cut: cut.map(|(_, cut)| cut), leaves, request, reply, mishap, time_out }
        })
    }

    pub(crate) fn message_arrives(&self) -> Instant {
        let now = self.world.now();
        self.world.inside(|inside| {
            let late = inside.lines[self.id].delay.1.mul_f64(inside.processes[self.id].random.f64());
            now + late
        })
    }

    pub(crate) async fn send<R: Request>(
        &self,
        queue: &QueueName,
        command: R,
    ) -> Result<R::Reply, StateError> {
        let fate = self.fate();
        let deadline = self.now() + fate.time_out;
        let world = &self.world;
        match fate.cut {
            Some(Cut::Refused) => {
                self.sleep(Duration::from_millis(1)).await;
                return Err(StateError::new(StateErrorKind::Unreachable, "the simulated store is cut off"));
            }
            Some(Cut::Silent) => {}
            None if fate.mishap == Some(Mishap::LoseRequest) => {
                world.note(|| format!("a request of {} is lost: {}", self.name(), command.words()));
            }
            None => {
                let (sender, mut replied) = oneshot::channel();
                world.runtime().spawn(transport(self.clone(), queue.clone(), command, fate, sender));
                tokio::select! {
                    biased;
                    replied = &mut replied => if let Ok((reply, applied)) = replied {
                        if let Ok(reply) = &reply {
                            R::delivered(world, self.id, queue, reply, applied);
                        }
                        return reply;
                    },
                    () = self.sleep_until(deadline) => {}
                }
            }
        }
        self.sleep_until(deadline).await;
        Err(StateError::new(StateErrorKind::TimedOut, "no reply from the simulated store in time"))
    }
}

/// Whatever becomes of the process meanwhile.
async fn transport<R: Request>(
    process: Process,
    queue: QueueName,
    command: R,
    fate: Fate,
    sender: Answered<R::Reply>,
) {
    let world = process.world.clone();
    let Fate { leaves, request, reply, mishap, .. } = fate;
    if leaves > world.now() {
        sleep_until(leaves).await;
        if process.condition(|condition| condition.dead_since.is_some_and(|since| since < leaves)) {
            return;
        }
    }
    if let Some(Mishap::Duplicate(after)) = mishap {
        let (world, queue, command) = (world.clone(), queue.clone(), command.clone());
        let id = process.id;
        process.world.runtime().spawn(async move {
            sleep_until(leaves + request + after).await;
            world.note(|| format!("a request of process {id} arrives again: {}", command.words()));
            let _ = arrive(&world, id, &queue, &command);
        });
    }
    sleep_until(leaves + request).await;
    let Some(answer) = arrive(&world, process.id, &queue, &command) else { return };
    if let Some(Mishap::LoseReply(cut)) = mishap {
        world.note(|| format!("the reply to {} is lost", process.name()));
        if cut == Cut::Refused {
            let broken =
                StateError::new(StateErrorKind::Unreachable, "the connection to the simulated store broke");
            let _ = sender.send((Err(broken), world.now()));
        }
        return;
    }
    sleep_until(leaves + request + reply).await;
    if !world.is_cut(process.id) {
        // The waiter may be gone.
        let _ = sender.send(answer);
    }
}

fn arrive<R: Request>(world: &World, id: usize, queue: &QueueName, command: &R) -> Option<Answer<R::Reply>> {
    if world.is_cut(id) {
        world.note(|| format!("a request of process {id} does not get through: {}", command.words()));
        return None;
    }
    Some((command.arrive(world, id, queue), world.now()))
}

pub(crate) fn words(command: &Command) -> String {
    match command {
        Command::Step(step) => {
            let take = step.take.as_ref().map_or(String::new(), |take| format!(" take {}", take.count));
            let ask: Vec<_> = step.ask.iter().map(|ask| ask.ticket.to_string()).collect();
            let then = step.then.map_or(String::new(), |then| format!(" then {then}"));
            let lead = step.lead.get() / 1000;
            format!("step {}{take} ask [{}]{then} lead {lead} ms", step.sequence, ask.join(" "))
        }
        Command::Change(change, _) => format!("{change:?}"),
        other => format!("{other:?}"),
    }
}

#[async_trait]
impl SharedState for Process {
    async fn apply(&self, queue: &QueueName, command: Command) -> Result<Reply, StateError> {
        // The application that waits gets the error itself.
        let is_reported = matches!(command, Command::Step(_) | Command::Read);
        self.world.check(|checks| checks.sent(self.id, &command));
        let reply = self.send(queue, command).await;
        if let Err(error) = &reply {
            self.world.check(|checks| checks.failed(self.id, is_reported));
            self.world.note(|| format!("{} gets an error: {error}", self.name()));
        }
        reply
    }

    async fn queues(&self) -> Result<Vec<QueueName>, StateError> {
        Ok(self.world.inside(|inside| inside.store.queues()))
    }
}
