//! The parsers of URLs and of HTTP fields for the fuzz targets in `fuzz/`, which connect to nothing. No part
//! of the public API.

use interval_queue_contract::InvalidInput;

use crate::store;

/// What a URL names.
#[derive(Debug)]
pub enum Target {
    /// A state without an address.
    Local,
    /// A Redis that was not looked for.
    Redis(interval_queue_redis::Builder),
    /// A PostgreSQL that was not looked for.
    Postgres(interval_queue_postgres::Builder),
}

/// Takes a URL apart.
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
