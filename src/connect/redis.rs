//! A Redis or Valkey.

use interval_queue_contract::InvalidInput;
use interval_queue_redis::{Builder, RedisState};

use super::parameters::{Parameters, values::no_at_in_query};

/// Parameters that belong to the address of a Redis; which of them depends on its scheme.
const OF_ADDRESS: [&str; 6] = ["ca", "sentinel-user", "sentinel-password", "db", "user", "pass"];

pub(super) fn parse(scheme: &str, rest: &str) -> Result<Builder, InvalidInput> {
    if scheme != "redis+unix" {
        no_at_in_query("redis", rest)?;
    }
    let (place, mut parameters) = Parameters::split(rest)?;
    let of_address: Vec<_> = OF_ADDRESS
        .into_iter()
        .filter_map(|name| parameters.raw(name).map(|value| format!("{name}={value}")))
        .collect();
    let question = if of_address.is_empty() { "" } else { "?" };
    let mut builder = RedisState::builder(format!("{scheme}:{place}{question}{}", of_address.join("&")));
    if let Some(prefix) = parameters.text("prefix")? {
        builder = builder.prefix(prefix);
    }
    if let Some(timeout) = parameters.duration("timeout")? {
        builder = builder.timeout(timeout);
    }
    if let Some(expiry) = parameters.duration("idle_expiry")? {
        builder = builder.idle_expiry(expiry);
    }
    let known: Vec<_> = ["prefix", "timeout", "idle_expiry"].into_iter().chain(OF_ADDRESS).collect();
    parameters.finish("redis:", &known)?;
    Ok(builder)
}
