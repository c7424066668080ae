//! The store's clock: one for both handles, and it advances.

use std::time::Duration;

use interval_queue_contract::Micros;
use tokio::time::Instant;

use crate::client::{Handles, Shard, opened};

/// Time never goes back, and 50 ms measure at least 40 ms and less than 20 s.
pub async fn the_clock_goes_forward(handles: Handles) {
    let (one, other) = opened(handles, Duration::from_secs(1)).await;
    let began = one.snapshot().await.at;
    assert!(began > Micros::ZERO, "instants before the beginning of the clock cannot be told");
    let mut before = began;
    for client in [&other, &one].repeat(20) {
        let at = client.snapshot().await.at;
        assert!(at >= before, "{} µs after {} µs", at.get(), before.get());
        before = at;
    }
    let pause = Duration::from_millis(50);
    tokio::time::sleep(pause).await;
    let seen = (other.snapshot().await.at - before).to_duration();
    // A clock may be coarse by milliseconds, and a busy machine late by seconds.
    assert!(seen >= pause * 4 / 5 && seen < Duration::from_secs(20), "{pause:?} were {seen:?}");
}

/// The clock is read under the record's lock: of two concurrent commands, the later one happens
/// later by about the delay of its reply. Detected only if commands take over 200 µs.
pub async fn the_clock_is_read_in_turn(handles: Handles) {
    const ROUNDS: u32 = 30;
    const WORTHWHILE: Duration = Duration::from_micros(200);
    let (one, other) = opened(handles, Duration::from_secs(1)).await;
    let mut shards = [one.shard("one"), other.shard("other")];
    let mut request = 0;
    let mut told = (Duration::ZERO, Duration::ZERO);
    // A busy machine may delay replies, but hardly half of the later ones in every round.
    for _ in 0..4 {
        let (mut apart, mut answered_apart) = (Duration::ZERO, Vec::new());
        for _ in 0..ROUNDS {
            request += 1;
            let [one, other] = &mut shards;
            let mut taken = <[_; 2]>::from(tokio::join!(timed(one, request), timed(other, request)));
            taken.sort_unstable_by_key(|taken| taken.ticket);
            let [earlier, later] = taken;
            apart += (later.at - earlier.at).to_duration();
            answered_apart.push(later.answered.saturating_duration_since(earlier.answered));
        }
        answered_apart.sort_unstable();
        // The median ignores single late replies; the mean of a coarse clock is right.
        told = (apart / ROUNDS, answered_apart[answered_apart.len() / 2]);
        if told.1 < WORTHWHILE || told.0 >= told.1 / 4 {
            return;
        }
    }
    let (apart, answered_apart) = told;
    panic!("commands that are answered {answered_apart:?} apart claim to have happened {apart:?} apart");
}

struct TakenAt {
    ticket: u64,
    at: Micros,
    answered: Instant,
}

#[allow(clippy::disallowed_methods, reason = "the check compares the state's clock with this one")]
async fn timed(shard: &mut Shard, request: u64) -> TakenAt {
    let ticket = shard.take(request, 1).await.first.get();
    TakenAt { ticket, at: shard.memory.at, answered: Instant::now() }
}
