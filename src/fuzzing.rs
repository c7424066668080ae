//! Parsers of URLs and HTTP fields for the targets in `fuzz/`. Not public API; connects to nothing.

use interval_queue_contract::InvalidInput;

use crate::store;

/// A parsed URL.
#[derive(Debug)]
pub enum Target {
    /// A store without a server.
    Local,
    /// Redis, not connected.
    Redis(interval_queue_redis::Builder),
    /// PostgreSQL, not connected.
    Postgres(interval_queue_postgres::Builder),
}

/// Parses a URL.
///
/// # Errors
///
/// The URL cannot be used.
pub fn target(url: &str) -> Result<Target, InvalidInput> {
    Ok(match store::Address::parse(url)? {
        store::Address::Redis(builder) => Target::Redis(builder),
        store::Address::Postgres(builder) => Target::Postgres(builder),
        _ => Target::Local,
    })
}

pub use crate::http::asked;
