//! The state's clock: one for both handles, and it goes.

use std::time::Duration;

use interval_queue_contract::Micros;

use crate::client::{Handles, opened};

/// Through both handles in turn the time never goes back, and a twentieth of a second is neither nothing nor ages.
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
    // A clock may be coarse by some milliseconds, and a busy machine late by seconds.
    assert!(seen >= pause * 4 / 5 && seen < Duration::from_secs(20), "{pause:?} were {seen:?}");
}
