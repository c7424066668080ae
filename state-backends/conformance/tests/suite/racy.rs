//! A backend that is not atomic fails the suite.

use std::sync::Arc;

use interval_queue_conformance::{CHECKS, Handles};

use crate::backends::Racy;

async fn make() -> Handles {
    let state = Arc::new(Racy::default());
    (state.clone(), state)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_racy_backend_fails_where_commands_meet() {
    let failures = interval_queue_conformance::run(make).await.unwrap_err();
    let failed = failures.names();
    for check in [
        "tickets_are_unique_and_dense",
        "a_retried_take_gets_the_same_tickets",
        "slots_keep_their_distance",
        "one_thread_may_have_many_commands_under_way",
        "commands_that_meet_follow_the_rules",
    ] {
        assert!(failed.contains(&check), "{check} did not notice the race: {failures}");
    }
    assert!(failed.len() < CHECKS.len() / 2, "what one command does is right: {failures}");
    assert!(failures.iter().all(|failure| !failure.message.is_empty()));
}
