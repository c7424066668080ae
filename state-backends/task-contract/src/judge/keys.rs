//! Checks the limits, and the permits of keys.

use std::collections::BTreeSet;

use super::{Dump, Judge, ensure};
use crate::{Key, State, Task};

impl Judge {
    pub(super) fn keys(&self, before: &Dump, after: &Dump) -> Result<(), String> {
        if self.rolled_back {
            return Ok(());
        }
        if let Some(limit) = after.settings.max_running {
            let (was, is) = (before.running(), after.running());
            ensure!(is <= was.max(limit as usize), "T6: {is} run, and {limit} may");
        }
        let keys: BTreeSet<_> = after.rows().filter_map(|x| x.key.as_ref()).collect();
        for key in keys {
            let limit =
                self.key_limits.get(key.as_str()).copied().unwrap_or(after.settings.key_limit) as usize;
            let leased = |dump: &Dump| of_key(dump, key, |x| x.state == State::Leased).len();
            let (was, is) = (leased(before), leased(after));
            ensure!(is <= was.max(limit), "T6: {is} of key {key} run, and {limit} may");
            let held = of_key(after, key, |x| x.holds_key);
            let leased = of_key(after, key, |x| x.state == State::Leased);
            let alone = leased.len() < 2 || leased.iter().all(|x| !x.ordered) || self.needs_rebalancing;
            ensure!(alone, "T6: an ordered one of key {key} does not run alone");
            let in_the_way = held.iter().find(|x| x.state == State::Ready && !after.is_open(&x.kind));
            ensure!(
                in_the_way.is_none() || self.needs_rebalancing,
                "T6: {in_the_way:?} holds key {key}, and nobody may run its kind"
            );
            let unserved = of_key(after, key, |x| x.unserved);
            let kept_out = unserved.iter().find(|x| after.is_open(&x.kind));
            ensure!(
                kept_out.is_none() || self.needs_rebalancing,
                "T6: {kept_out:?} does not compete for its key"
            );
            let line = of_key(after, key, |x| x.state == State::Blocked && !x.unserved);
            // Blocked tasks of a closed kind become unserved only when they are the first of their
            // key.
            if self.needs_rebalancing || line.iter().any(|x| !after.is_open(&x.kind)) {
                continue;
            }
            let last = held.iter().filter(|x| x.state == State::Ready).max_by_key(|x| self.line(x));
            ensure!(
                held.len() <= limit || last.is_none(),
                "T6: {} hold key {key}, and {limit} may",
                held.len()
            );
            let Some(first) = line.iter().min_by_key(|x| self.line(x)) else { continue };
            let is_alone = limit > 1 && (first.ordered || held.iter().any(|x| x.ordered));
            let limit = if is_alone { 1 } else { limit };
            ensure!(held.len() >= limit, "T6: key {key} has a free permit, and {} waits: {held:?}", first.id);
            let overtakes = |last: &&&Task| {
                !(last.ordered && last.leased.is_some())
                    && self.line(last) > self.line(first)
                    && held.len() == limit
            };
            ensure!(
                last.filter(overtakes).is_none(),
                "T4: {} waits for key {key}, which the less urgent {last:?} has",
                first.id
            );
        }
        Ok(())
    }
}

fn of_key<'a>(dump: &'a Dump, key: &Key, is: impl Fn(&Task) -> bool) -> Vec<&'a Task> {
    dump.rows().filter(|x| x.key.as_ref() == Some(key) && is(x)).collect()
}
