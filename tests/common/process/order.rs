//! Whether slots were granted in the order that was promised, told from the grants alone.

use std::{collections::BTreeSet, time::Duration};

use super::{Log, Slot, micros, said::Said, worker::ALIVE};

/// How early a younger ticket may be granted its slot while another shard holds a late one.
const YIELDING: u64 = 1_000;

impl Log {
    /// Asserts that slots were granted in the order of tickets: see [`out_of_order`](Self::out_of_order).
    pub fn assert_in_order(&self, interval: Duration) {
        let wrong = self.out_of_order(interval);
        assert!(wrong.is_empty(), "G2: out of order: {wrong:?}");
    }

    /// Grants that are not in the order of tickets although their shards were punctual: those that took the
    /// place of a ticket before them, and those whose own place was taken although they were asked for in
    /// time. Each with the highest ticket granted before. A ticket that was given up and granted anew counts
    /// as it was granted first.
    pub fn out_of_order(&self, interval: Duration) -> Vec<[Slot; 2]> {
        let interval = micros(interval);
        let mut grants = self.grants();
        // In the order of the state. Those of one reply are heard in their order.
        grants.sort_by_key(|grant| grant.granted);
        let changes = self.collect(|_, said| match *said {
            Said::Changed { from, to } => Some((from, to)),
            _ => None,
        });
        let returned = self.collect(|_, said| match *said {
            Said::Returned { at, up_to } => Some((at, up_to)),
            _ => None,
        });
        let (mut wrong, mut seen) = (Vec::new(), BTreeSet::new());
        let Some(mut highest) = grants.first().copied() else { return wrong };
        seen.insert(highest.ticket);
        // When slots last moved against tickets. Whoever had been overtaken by then has no place of its own
        // any more.
        let mut shifted = 0;
        for (n, &grant) in grants.iter().enumerate().skip(1) {
            if !seen.insert(grant.ticket) {
                // Given up and granted anew.
                shifted = grant.granted;
                continue;
            }
            let behind = |first: &Slot, second: &Slot| interval * (second.ticket - first.ticket);
            if grant.ticket > highest.ticket {
                let is_passed = |later: &Slot| {
                    later.worker != grant.worker
                        && (highest.ticket + 1..grant.ticket).contains(&later.ticket)
                        && later.granted < grant.granted + ALIVE.get()
                };
                let in_line = highest.at + behind(&highest, &grant);
                let least = if grants[n..].iter().any(is_passed) { in_line } else { highest.at + interval };
                if grant.at < least {
                    wrong.push([highest, grant]);
                }
                if grant.at != in_line {
                    shifted = grant.granted;
                }
                highest = grant;
                continue;
            }
            let overtaken_by = || grants[..n].iter().filter(|other| other.ticket > grant.ticket);
            let place = overtaken_by().map(|other| other.at.saturating_sub(behind(&grant, other))).min();
            let since = overtaken_by().map(|other| other.granted).min();
            let (Some(place), Some(since)) = (place, since) else { continue };
            let is_moved = changes.iter().any(|(from, to)| *from <= grant.granted && *to >= since)
                || returned.iter().any(|(at, up_to)| *at <= grant.granted && *up_to >= grant.ticket);
            if grant.granted <= place && shifted < since && !is_moved && grant.at > place {
                wrong.push([highest, grant]);
            }
            if grant.at != place {
                shifted = grant.granted;
            }
        }
        wrong
    }

    /// Grants that did not leave the first place to a shard with late tickets: younger ones of others, given
    /// early between two grants of late ones. A shard that is not heard of for `alive` may count as gone. Of
    /// two shards with late tickets, as a stalled host makes them, neither yields.
    pub fn not_yielding(&self, late: &[Slot], alive: Duration) -> Vec<Slot> {
        // With the first of them that takes the next free slot those behind it lose the slots they may have
        // owned.
        let last_before = |at| self.slots().iter().filter(|slot| slot.granted < at).map(|slot| slot.at).max();
        // One that was given up and granted anew was not asked for all the time.
        let mut by_grant = late.to_vec();
        by_grant.sort_by_key(|slot| slot.granted);
        let mut seen = BTreeSet::new();
        by_grant.retain(|slot| seen.insert(slot.ticket));
        let heard = by_grant.iter().skip_while(|slot| Some(slot.at) <= last_before(slot.granted));
        let heard: Vec<_> = heard.map(|slot| slot.granted).collect();
        let held = |at| {
            heard.windows(2).any(|pair| (pair[0] + 1..pair[1].min(pair[0] + micros(alive))).contains(&at))
        };
        let highest = late.iter().map(|slot| slot.ticket).max().unwrap_or(u64::MAX);
        let slots = self.slots();
        let is_late = |slot: &Slot| {
            slots.iter().any(|other| other.ticket > slot.ticket && other.granted < slot.granted)
        };
        let others = slots.iter().filter(|slot| slot.worker != late[0].worker && slot.ticket > highest);
        let early = others.filter(|slot| held(slot.granted) && slot.at > slot.granted + YIELDING);
        early.filter(|slot| !is_late(slot)).copied().collect()
    }
}
