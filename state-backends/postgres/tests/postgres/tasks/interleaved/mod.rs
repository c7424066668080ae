//! Steps, verbs, adds and transactions of applications that meet, statement by statement: whatever the order,
//! the outcome is that of one after the other.
//!
//! Each client of the library reaches the server through a relay, which lets one statement pass at a time. Whether one
//! waits for another is what the server says of its locks.

mod clients;
mod relay;

use interval_queue_task_conformance::interleaved::{
    Bounds, Explored, INTERLEAVINGS, INTERLEAVINGS_WITHIN, Interleaving, Member, Prepared, explore,
};

use self::clients::Clients;

/// Every so many orders are played.
fn every() -> usize {
    if std::env::var("INTERVAL_QUEUE_MODEL").is_ok_and(|size| size == "large") { 1 } else { 12 }
}

async fn all(have_seen: bool, meetings: impl IntoIterator<Item = &Interleaving>) -> Explored {
    let mut all = Explored::default();
    for meeting in meetings {
        let clients = Clients::new(have_seen).await;
        let prepared = Prepared::of(meeting).await;
        // Commands that a client sends at once go over connections of their own.
        let is_group = |member: &Member| matches!(member, Member::Commands(all) if all.len() > 1);
        if prepared.members().iter().any(is_group) {
            continue;
        }
        let is_large = prepared.members().len() > 2;
        let changes = if is_large { 0 } else { 1 };
        let bounds = Bounds { changes, reads_between: true, every: every() };
        let explored = match explore(&clients, meeting, bounds).await {
            Ok(explored) => explored,
            Err(tangled) => panic!("{tangled}"),
        };
        println!("{}: {explored:?}", meeting.name);
        all.schedules += explored.schedules;
        all.statements += explored.statements;
        all.waits += explored.waits;
        all.refused += explored.refused;
        all.undone += explored.undone;
    }
    println!("{all:?}");
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn interleaved_commands_are_serializable() {
    let all = all(false, INTERLEAVINGS).await;
    assert!(all.waits > 10, "{all:?}");
    assert_eq!(all.refused, 0, "{all:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn interleaved_shared_polls_are_serializable() {
    let all = all(true, INTERLEAVINGS).await;
    assert!(all.waits > 10, "{all:?}");
    assert_eq!(all.refused, 0, "{all:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs postgresql: scripts/test runs it"]
async fn interleaved_transactions_of_applications_are_serializable() {
    let all = all(true, INTERLEAVINGS_WITHIN).await;
    assert_eq!(all.refused, 0, "{all:?}");
}
