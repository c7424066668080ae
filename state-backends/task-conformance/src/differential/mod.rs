//! Sends the same random commands to a store and to the memory: replies and tasks must be equal.
//!
//! Finds wrong lookups and writes, and wrong implementations of the rules.

mod crowd;

use interval_queue_contract::{Micros, QueueName, StateError};
use interval_queue_memory::MemoryTasks;
use interval_queue_task_contract::{Command, Follow, Mark, Read, Reply, Selector, State, TaskStore};

use self::crowd::Crowd;
use crate::play::Stage;

/// Commands between two comparisons of all rows.
const BETWEEN_LOOKS: usize = 16;

/// A command whose reply or result differs between a store and the memory.
#[derive(Clone, Debug, thiserror::Error)]
#[error("seed {seed}, command {number}: {what}")]
#[non_exhaustive]
pub struct Different {
    /// The seed of the commands.
    pub seed: u64,
    /// The index of the command, from 0.
    pub number: usize,
    /// The command, and the differing replies or rows.
    pub what: String,
}

/// Sends `commands` commands to both. Returns the number of leased tasks.
///
/// # Errors
///
/// The first difference.
///
/// # Cancel safety
///
/// A dropped future leaves the queue as it is.
pub async fn compare(seed: u64, commands: usize, stage: &Stage) -> Result<usize, Different> {
    let clock = stage.clock.clone();
    let memory = MemoryTasks::with_clock(move || clock.now());
    stage.set_clock(Micros::new(1_000_000_000_000));
    let mut crowd = Crowd::new(seed);
    let queue = QueueName::new("mail").unwrap_or_else(|_| unreachable!());
    let mut leased = 0;
    for number in 0..commands {
        let pause = crowd.pause();
        let now = stage.clock.now().get();
        stage.set_clock(Micros::new(now.saturating_add_signed(pause)));
        let command = crowd.command();
        let same = |found: String, expected: String| match found == expected {
            true => Ok(()),
            false => Err(Different {
                seed,
                number,
                what: format!("{command:?}\nstore:  {found}\nmemory: {expected}"),
            }),
        };
        let expected = memory.apply(&queue, command.clone()).await;
        let found = stage.store.apply(&queue, command.clone()).await;
        same(notified(&found), notified(&expected))?;
        crowd.hear(found.as_ref().ok());
        if let Ok(Reply::Stepped(stepped)) = &found {
            leased += stepped.leased.len();
        }
        if number % BETWEEN_LOOKS == BETWEEN_LOOKS - 1 {
            same(all(&*stage.store, &queue).await, all(&memory, &queue).await)?;
            let times = Crowd::kinds().map(|kind| Read::Times { kind, from: Micros::ZERO });
            for read in [Read::Overview, Read::Workers, Read::Schedules].into_iter().chain(times) {
                let read = Command::Read(read);
                let expected = memory.apply(&queue, read.clone()).await;
                same(notified(&stage.store.apply(&queue, read).await), notified(&expected))?;
            }
            // A follower is active half of the time, because events may disable fast paths.
            if number % (16 * BETWEEN_LOOKS) < 8 * BETWEEN_LOOKS {
                let after = Some(Mark { number: 0, at: stage.clock.now() });
                let follow = Command::Follow(Follow { after, most: 1_000 });
                let expected = memory.apply(&queue, follow.clone()).await;
                same(notified(&stage.store.apply(&queue, follow).await), notified(&expected))?;
            }
        }
    }
    Ok(leased)
}

/// The comparable part of a reply.
fn notified(answer: &Result<Reply, StateError>) -> String {
    match answer {
        // Stores number events independently.
        Ok(Reply::Followed(followed)) => format!("{:?}, missed: {}", followed.events, followed.missed),
        Ok(reply) => format!("{reply:?}"),
        Err(error) => format!("{:?}: {error}", error.kind()),
    }
}

/// All tasks, with payloads and results.
async fn all(store: &dyn TaskStore, queue: &QueueName) -> String {
    let (mut all, mut after) = (String::new(), None);
    loop {
        let page = Read::Page { selector: Selector::states(State::ALL), after, limit: 1_000, bodies: true };
        let page = store.apply(queue, Command::Read(page)).await;
        all.push_str(&notified(&page));
        match page {
            Ok(Reply::Page(page)) if page.next.is_some() => after = page.next,
            _ => return all,
        }
    }
}
