//! scratch
#![allow(clippy::unwrap_used, reason = "a check without a server fails")]
use std::sync::Arc;
use interval_queue_conformance::Handles;
use interval_queue_postgres::PostgresState;
use std::sync::atomic::{AtomicU32, Ordering};
static N: AtomicU32 = AtomicU32::new(0);
async fn make() -> Handles {
    let schema = format!("s{}_{}", std::process::id(), N.fetch_add(1, Ordering::Relaxed));
    let url = std::env::var("PG_URL").unwrap();
    let one = PostgresState::builder(&url).schema(&schema).connections(2).connect().await.unwrap();
    let other = PostgresState::builder(&url).schema(&schema).connections(2).connect().await.unwrap();
    (Arc::new(one), Arc::new(other))
}
interval_queue_conformance::suite!(make);
