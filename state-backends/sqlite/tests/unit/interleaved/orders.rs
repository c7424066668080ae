//! All meetings, in all orders.

use interval_queue_task_conformance::interleaved::{
    Bounds, Explored, INTERLEAVINGS, INTERLEAVINGS_WITHIN, Interleaving, Prepared, Unserializable, explore,
};

use super::clients::{Clients, Setting};

/// So many sessions that could go on are left for another one, in each order.
fn changes() -> usize {
    if std::env::var("INTERVAL_QUEUE_MODEL").is_ok_and(|size| size == "large") { 2 } else { 1 }
}

async fn all(setting: Setting, meetings: impl IntoIterator<Item = &Interleaving>) -> Explored {
    let mut all = Explored::default();
    for meeting in meetings {
        let clients = Clients::new(setting).await;
        let is_large = Prepared::of(meeting).await.members().len() > 2;
        let bounds = Bounds { changes: changes() - usize::from(is_large), reads_between: true, every: 1 };
        let explored = match explore(&clients, meeting, bounds).await {
            Ok(explored) => explored,
            Err(tangled) => panic!("{tangled}"),
        };
        println!("{}: {explored:?}", meeting.name);
        assert!(explored.schedules > 5, "{}: {explored:?}", meeting.name);
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
async fn interleaved_commands_at_the_database_are_serializable() {
    let all = all(Setting::default(), INTERLEAVINGS).await;
    assert!(all.waits > 100 && all.undone > 0, "{all:?}");
    assert_eq!(all.refused, 0, "{all:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_without_the_lock_changes_nothing() {
    let all = all(Setting { is_impatient: true, ..Setting::default() }, INTERLEAVINGS).await;
    assert!(all.refused > 100, "{all:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interleaved_commands_at_the_gate_are_serializable() {
    let all = all(Setting { has_gate: true, ..Setting::default() }, INTERLEAVINGS.iter().step_by(4)).await;
    assert!(all.waits > 20, "{all:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interleaved_transactions_of_applications_are_serializable() {
    let all = all(Setting::default(), INTERLEAVINGS_WITHIN).await;
    assert!(all.waits > 20, "{all:?}");
    assert_eq!((all.refused, all.undone), (0, 0), "{all:?}");
}

/// What comes of a meeting at a store that reads before its transaction begins.
async fn flawed(name: &str) -> Option<Unserializable> {
    let meeting = INTERLEAVINGS.iter().find(|meeting| meeting.name == name).unwrap();
    let clients = Clients::new(Setting { is_flawed: true, ..Setting::default() }).await;
    explore(&clients, meeting, Bounds { changes: 1, reads_between: false, every: 1 }).await.err()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_reads_before_its_transaction_is_found() {
    for (name, what) in [
        ("two_steps_for_one_task", "the answer of"),
        ("two_steps_under_one_limit", "the answer of"),
        ("two_steps_at_one_key", ""),
        ("a_step_and_a_cancellation", ""),
        ("two_adds_of_one_name", ""),
    ] {
        let tangled = flawed(name).await.map(|tangled| tangled.to_string()).unwrap_or_default();
        println!("{tangled}");
        assert!(tangled.contains("no order") && tangled.contains(what), "{name} finds {tangled:?}");
    }
}
