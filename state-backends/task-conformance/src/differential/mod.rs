//! Sends the same random commands to a store and to the memory: replies and tasks must be equal.
//!
//! Finds wrong lookups and writes, and wrong implementations of the rules.

mod random_load;

use interval_queue_contract::{Micros, QueueName, StateError};
use interval_queue_memory::MemoryTasks;
use interval_queue_task_contract::{Command, Follow, Mark, Order, Read, Reply, Selector, State, TaskStore};

use self::random_load::Load;
use crate::fuzzer::{Target, Within};

/// Commands between two comparisons of all rows.
const COMMANDS_BETWEEN_CHECKS: usize = 16;

/// A command whose reply or result differs between a store and the memory.
#[derive(Clone, Debug, thiserror::Error)]
#[error("seed {seed}, command {number}: {what}")]
#[non_exhaustive]
pub struct Difference {
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
pub async fn compare(seed: u64, commands: usize, target: &Target) -> Result<usize, Difference> {
    compare_with_ends(seed, commands, target, None).await
}

/// As [`compare`]. Some runs of the store end by `within`, which must reject what the rule rejects.
///
/// # Errors
///
/// The first difference.
///
/// # Cancel safety
///
/// A dropped future leaves the queue as it is.
pub async fn compare_with_ends(
    seed: u64,
    commands: usize,
    target: &Target,
    within: Option<&dyn Within>,
) -> Result<usize, Difference> {
    let clock = target.clock.clone();
    let memory = MemoryTasks::with_clock(move || clock.now());
    target.set_clock(Micros::new(1_000_000_000_000));
    let mut load = Load::new(seed);
    let queue = QueueName::new("mail").unwrap_or_else(|_| unreachable!());
    let mut leased = 0;
    for number in 0..commands {
        let pause = load.pause();
        let now = target.clock.now().get();
        target.set_clock(Micros::new(now.saturating_add_signed(pause)));
        if let Some(within) = within
            && let Some((worker, completion)) = load.end_within()
        {
            let expected = memory.complete_within(&queue, worker, &completion);
            let found = within.end(&queue, worker, &completion).await;
            let what =
                format!("{completion:?} within a transaction\nstore:  {found:?}\nmemory: {expected:?}");
            let text = |error: StateError| format!("{:?}: {error}", error.kind());
            let is_same = match (found, expected) {
                (Ok(found), Ok(expected)) => (found.id, found.state) == (expected.id, expected.state),
                (Err(found), Err(expected)) => text(found) == text(expected),
                _ => false,
            };
            if !is_same {
                return Err(Difference { seed, number, what });
            }
        }
        let command = load.command();
        let same = |found: String, expected: String| match found == expected {
            true => Ok(()),
            false => Err(Difference {
                seed,
                number,
                what: format!("{command:?}\nstore:  {found}\nmemory: {expected}"),
            }),
        };
        let expected = memory.apply(&queue, command.clone()).await;
        let found = target.store.apply(&queue, command.clone()).await;
        same(comparable(&found), comparable(&expected))?;
        load.observe_reply(found.as_ref().ok());
        if let Ok(Reply::Stepped(stepped)) = &found {
            leased += stepped.leased.len();
        }
        if number % COMMANDS_BETWEEN_CHECKS == COMMANDS_BETWEEN_CHECKS - 1 {
            same(all(&*target.store, &queue).await, all(&memory, &queue).await)?;
            let times = Load::kinds().map(|kind| Read::Times { kind, from: Micros::ZERO });
            for read in [Read::Overview, Read::Workers, Read::Schedules].into_iter().chain(times) {
                let read = Command::Read(read);
                let expected = memory.apply(&queue, read.clone()).await;
                same(comparable(&target.store.apply(&queue, read).await), comparable(&expected))?;
            }
            // A follower is active half of the time, because events may disable fast paths.
            if number % (16 * COMMANDS_BETWEEN_CHECKS) < 8 * COMMANDS_BETWEEN_CHECKS {
                let after = Some(Mark { number: 0, at: target.clock.now() });
                let follow = Command::Follow(Follow { after, most: 1_000 });
                let expected = memory.apply(&queue, follow.clone()).await;
                same(comparable(&target.store.apply(&queue, follow).await), comparable(&expected))?;
            }
        }
    }
    Ok(leased)
}

/// The comparable part of a reply.
fn comparable(answer: &Result<Reply, StateError>) -> String {
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
        let page = Read::Page {
            selector: Selector::states(State::ALL),
            after: after.unwrap_or(Order::Oldest.start()),
            limit: 1_000,
            bodies: true,
        };
        let page = store.apply(queue, Command::Read(page)).await;
        all.push_str(&comparable(&page));
        match page {
            Ok(Reply::Page(page)) if page.next.is_some() => after = page.next,
            _ => return all,
        }
    }
}
