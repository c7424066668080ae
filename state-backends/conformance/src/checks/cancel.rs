//! Dropped futures: the command took effect or not, and later ones work.

use std::{collections::BTreeSet, task::Poll, time::Duration};

use interval_queue_contract::{Command, Step};

use crate::{
    client::{Client, Handles, opened, take, together},
    random::Random,
};

const TAKES: u64 = 40;

/// After dropped commands, repeated takes get unique tickets and no extra tickets exist.
pub async fn dropped_commands_leave_a_working_state(handles: Handles) {
    let (one, other) = opened(handles, Duration::from_secs(1)).await;
    let tickets = together([&one, &other], 4, drop_and_retry).await;
    let unique: BTreeSet<u64> = tickets.iter().copied().collect();
    assert_eq!(unique.len(), tickets.len(), "a ticket was given twice");
    let record = other.record().await;
    record.check().unwrap();
    let dropped_for_good = 4 * TAKES;
    let most = tickets.len() as u64 + dropped_for_good;
    let last = record.ticket.get();
    assert!(last <= most && unique.last() <= Some(&last), "{last} of at most {most}");
    assert_eq!(one.shard("afterwards").take(1, 1).await.first.get(), last + 1);
}

/// Drops every take at a random point and repeats every second one.
async fn drop_and_retry(client: Client, seed: u64) -> Vec<u64> {
    let mut random = Random::seeded(seed);
    let mut shard = client.shard(&format!("dropper {seed}"));
    let mut tickets = Vec::new();
    for request in 1..=2 * TAKES {
        let step = Step { take: Some(take(request, 1)), then: tickets.first().copied(), ..shard.step() };
        let doomed = client.apply(Command::Step(step.clone()));
        match random.next() % 3 {
            0 => drop(doomed),
            1 => poll_once(doomed).await,
            _ => {
                let soon = Duration::from_micros(random.next() % 2000);
                let _done_or_not = tokio::time::timeout(soon, doomed).await;
            }
        }
        if request % 2 == 0 {
            let step = Step { sequence: shard.step().sequence, ..step };
            let taken = shard.send(step).await.unwrap().taken.expect("a ticket was wanted");
            tickets.push(taken.first);
        }
    }
    tickets.into_iter().map(|ticket| ticket.get()).collect()
}

async fn poll_once(future: impl Future) {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|context| {
        let _done_or_not = future.as_mut().poll(context);
        Poll::Ready(())
    })
    .await;
}
