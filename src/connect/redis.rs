//! A Redis or Valkey.

use interval_queue_contract::InvalidInput;
use interval_queue_redis::{Builder, RedisState};
use interval_queue_store::Url;

/// Parameters that belong to the address of a Redis; which of them depends on its scheme.
const OF_ADDRESS: [&str; 6] = ["ca", "sentinel-user", "sentinel-password", "db", "user", "pass"];

pub(super) fn parse(mut url: Url) -> Result<Builder, InvalidInput> {
    let mut of_address = Vec::new();
    for name in OF_ADDRESS {
        of_address.extend(url.raw(name)?.map(|value| format!("{name}={value}")));
    }
    let question = if of_address.is_empty() { "" } else { "?" };
    let address = format!("{}:{}{question}{}", url.scheme(), url.place(), of_address.join("&"));
    let mut builder = RedisState::builder(address);
    if let Some(prefix) = url.text("prefix")? {
        builder = builder.prefix(prefix);
    }
    if let Some(timeout) = url.duration("timeout")? {
        builder = builder.timeout(timeout);
    }
    if let Some(expiry) = url.duration("idle_expiry")? {
        builder = builder.idle_expiry(expiry);
    }
    url.finish()?;
    Ok(builder)
}
