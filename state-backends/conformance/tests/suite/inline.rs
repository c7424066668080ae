//! The backend that the contract shows as an example passes the suite, and a program can run it too.

use std::sync::Arc;

use interval_queue_conformance::{CHECKS, Handles};

use crate::backends::Inline;

async fn make() -> Handles {
    let state = Arc::new(Inline::default());
    (state.clone(), state)
}

mod suite {
    interval_queue_conformance::suite!(super::make);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_runs_the_same_checks() {
    interval_queue_conformance::run(make).await.unwrap();
    let first = CHECKS[0];
    assert_eq!(first.name(), "reading_creates_nothing");
    first.run(make().await).await.unwrap();
}
