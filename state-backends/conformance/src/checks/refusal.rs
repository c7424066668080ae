//! Rejected commands change nothing.

use std::time::Duration;

use interval_queue_contract::{
    Change, Command, MAX_LEASE, MaxRunning, Memory, Micros, Rates, StateErrorKind, Step, Ticket,
};

use crate::client::{Handles, ask, kind, opened, take};

/// A step older than the shard's latest fails as `Superseded` and changes nothing.
pub async fn an_older_step_changes_nothing(handles: Handles) {
    let (one, other) = opened(handles, Duration::from_secs(1)).await;
    let mut shard = one.shard("hasty");
    let old = Step { take: Some(take(7, 5)), ..shard.step() };
    let ticket = shard.take(1, 2).await.first;
    let before = one.record().await;
    let twin = Step { ask: vec![ask(ticket.get())], sequence: shard.sequence, ..old.clone() };
    for step in [old, twin] {
        assert_eq!(kind(other.apply(Command::Step(step)).await), StateErrorKind::Superseded);
    }
    assert_eq!(other.record().await, before);
}

/// A command that exceeds a bound fails as `Invalid` and changes nothing.
pub async fn an_invalid_command_changes_nothing(handles: Handles) {
    let (one, other) = opened(handles, Duration::from_secs(1)).await;
    let mut shard = one.shard("careless");
    shard.take(1, 2).await;
    let before = one.record().await;

    let good = Step { sequence: 99, ..shard.step() };
    let steps = [
        Step { lease: Micros::ZERO, ..good.clone() },
        Step { lease: MAX_LEASE + Micros::new(1), ..good.clone() },
        Step { lead: Micros::MAX, ..good.clone() },
        Step { take: Some(take(0, 1)), ..good.clone() },
        Step { take: Some(take(2, 0)), ..good.clone() },
        Step { take: Some(take(2, u32::MAX)), ..good.clone() },
        Step { ask: vec![ask(2), ask(1)], ..good.clone() },
        Step { ask: vec![ask(2)], then: Some(Ticket::new(2)), ..good.clone() },
        // Fewer tickets are left than requested.
        Step { take: Some(take(2, 1)), then: Some(Ticket::MAX), ..good },
    ];
    let no_interval = Change::Set { rates: Some(Rates::every(Micros::ZERO)), max_running: MaxRunning::Keep };
    let no_limit = Change::Set { rates: None, max_running: MaxRunning::AtMost(0) };
    let changes = [no_interval, no_limit, Change::Hold(Micros::MAX)];
    let changes = changes.map(|change| Command::Change(change, Memory::default()));
    for command in steps.map(Command::Step).into_iter().chain(changes) {
        let outcome = other.apply(command.clone()).await;
        assert_eq!(kind(outcome), StateErrorKind::Invalid, "{command:?}");
    }
    assert_eq!(one.record().await, before);
}
