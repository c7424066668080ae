//! Bounds of values. An error names the value and the bound.

use crate::{InvalidInput, Micros, Rate};

/// The shortest interval: 1 µs.
pub const MIN_INTERVAL: Micros = Micros::new(1);
/// The longest interval and the longest hold: 366 days.
pub const MAX_INTERVAL: Micros = Micros::from_millis(366 * 24 * 3600 * 1000);
/// The shortest lease: 100 ms.
pub const MIN_LEASE: Micros = Micros::from_millis(100);
/// The longest lease: one hour.
pub const MAX_LEASE: Micros = Micros::from_millis(3600 * 1000);
/// The largest lead: one second. A start granted before may still come this much after `pause`,
/// `hold` or a change of settings has returned.
pub const MAX_LEAD: Micros = Micros::from_millis(1000);
/// The largest weight of one job.
pub const MAX_WEIGHT: u32 = 1_000_000;
/// The largest burst of a rate.
pub const MAX_BURST: u32 = 1_000_000;
/// Maximum number of slots that one command requests.
pub const MAX_ASK: usize = 512;
/// Maximum number of tickets that one command takes.
pub const MAX_TAKE: u32 = 1_000_000;
/// The longest queue name, in bytes.
pub const MAX_NAME: usize = 200;
/// The longest label or shard id, in bytes.
pub const MAX_LABEL: usize = 128;

/// A clock that went back by at most this stands still.
pub(crate) const CLOCK_TOLERANCE: Micros = Micros::from_millis(1000);
/// Between shards that wait behind a dead one when its lease ends.
pub(crate) const MAX_REQUEST_GAP: Micros = Micros::from_millis(1);
/// Least time between the first shard's requests for a permit: the interval, within this and
/// [`MAX_POLL`].
pub(crate) const MIN_POLL: Micros = Micros::from_millis(10);
/// Longest lead of a younger ticket while another shard holds a late one. Enough for a near store,
/// so that slots do not slip while the holder is dead; at most half of the usual lead, so that a
/// living holder comes first.
pub(crate) const YIELDING_LEAD: Micros = Micros::from_millis(1);
pub(crate) const MAX_POLL: Micros = Micros::from_millis(100);

/// Checks a shard's lease.
///
/// # Errors
///
/// Out of range; the error names value and range.
pub fn check_lease(lease: Micros) -> Result<(), InvalidInput> {
    between("lease", lease, MIN_LEASE, MAX_LEASE)
}

/// Checks a job's weight.
///
/// # Errors
///
/// Out of range; the error names value and range.
pub fn check_weight(weight: u32) -> Result<(), InvalidInput> {
    if weight == 0 || weight > MAX_WEIGHT {
        return Err(InvalidInput::new(format!("weight {weight} is out of range: give 1 to {MAX_WEIGHT}")));
    }
    Ok(())
}

pub(crate) fn check_interval(interval: Micros) -> Result<(), InvalidInput> {
    between("interval", interval, MIN_INTERVAL, MAX_INTERVAL)
}

/// The burst must refill within the longest interval.
pub(crate) fn check_burst(rate: Rate) -> Result<(), InvalidInput> {
    let Rate { interval, burst } = rate;
    let most = (MAX_INTERVAL.get() / interval.get().max(1)).clamp(1, MAX_BURST.into());
    if burst == 0 || u64::from(burst) > most {
        let interval = text(interval);
        return Err(InvalidInput::new(format!(
            "burst {burst} at an interval of {interval} is out of range: give 1 to {most}"
        )));
    }
    Ok(())
}

pub(crate) fn check_lead(lead: Micros) -> Result<(), InvalidInput> {
    between("lead", lead, Micros::ZERO, MAX_LEAD)
}

pub(crate) fn check_hold(hold: Micros) -> Result<(), InvalidInput> {
    between("hold", hold, Micros::ZERO, MAX_INTERVAL)
}

fn between(what: &str, value: Micros, least: Micros, most: Micros) -> Result<(), InvalidInput> {
    if value < least || value > most {
        let (value, least, most) = (text(value), text(least), text(most));
        return Err(InvalidInput::new(format!("{what} {value} is out of range: give {least} to {most}")));
    }
    Ok(())
}

fn text(micros: Micros) -> String {
    const DAY: u64 = 86_400_000_000;
    match micros.get() {
        0 => "0".to_owned(),
        days if days % DAY == 0 => format!("{} days", days / DAY),
        _ => format!("{:?}", micros.to_duration()),
    }
}
