//! The protocol between a worker and a guard.

mod guard_clock;
mod orders;

use futures::FutureExt;

pub(crate) use orders::{GuardReport, Order};

/// Up to the first invalid one; also returns the bytes left.
pub(crate) fn orders(mut bytes: &[u8]) -> (Vec<Order>, &[u8]) {
    let mut all = Vec::new();
    loop {
        // Reading from memory never waits.
        match orders::read_order(&mut bytes).now_or_never().unwrap() {
            Some(order) => all.push(order),
            None => return (all, bytes),
        }
    }
}
