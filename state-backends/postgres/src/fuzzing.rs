//! The parser of addresses for the fuzz targets in `fuzz/`, which have bytes and no server. No part of the
//! public API.

use interval_queue_contract::StateError;

use crate::Builder;

/// Takes the address of a builder apart.
///
/// # Errors
///
/// The address cannot be used.
pub fn parse(builder: &Builder) -> Result<(), StateError> {
    builder.address().map(drop)
}
