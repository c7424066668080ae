//! A server that the tests of a file share, and places on it.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "no test needs all of it, and each fails by panicking"
)]

use std::sync::{
    Arc, Mutex, PoisonError, Weak,
    atomic::{AtomicU32, Ordering},
};

use interval_queue_postgres::deadpool_postgres::{Config, Pool, PoolConfig, Runtime};
use interval_queue_test_support::PostgresServer;
use tokio_postgres::NoTls;

/// A server that runs as long as a test uses it.
pub type Shared = Arc<PostgresServer>;

/// The server for tests that do it no harm: one for all that run at the same time.
pub fn server() -> Shared {
    static SERVER: Mutex<Weak<PostgresServer>> = Mutex::new(Weak::new());
    let mut known = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
    known.upgrade().unwrap_or_else(|| {
        let server = Arc::new(PostgresServer::start());
        *known = Arc::downgrade(&server);
        server
    })
}

/// The name of a schema that nobody else uses.
pub fn someplace() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("place {}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// A pool as an application has one.
pub fn pool(url: &str, connections: usize) -> Pool {
    let mut config = Config::new();
    config.url = Some(url.to_owned());
    config.pool = Some(PoolConfig::new(connections));
    config.create_pool(Some(Runtime::Tokio1), NoTls).unwrap()
}
