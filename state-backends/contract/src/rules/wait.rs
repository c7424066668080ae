//! When a shard without a slot requests again: late enough to be cheap, early enough to waste no
//! slot.

use super::slot::Counter;
use crate::{Ask, Micros, Wait, WaitReason, limits::MAX_REQUEST_GAP};

impl Counter<'_> {
    /// For the lowest remaining ticket. `refused`: the reply to its request, if any.
    pub(super) fn wait(&self, head: Ask, refused: Option<WaitReason>, lease: Micros) -> Wait {
        let renew = Micros::new(lease.get() / 2);
        let slot_in = self.slot_to_ask_for(head) - self.now;
        let reason = self.admit().err().unwrap_or_else(|| self.waits_for(head.ticket));
        let ask_in = match reason {
            WaitReason::Paused => return Wait { reason, ask_in: None },
            // A job may end before the slot comes; then the shard must poll.
            WaitReason::AtMaxRunning if slot_in == Micros::ZERO => self.poll() * (self.rank(head.ticket) + 1),
            _ => slot_in,
        };
        // One shard after the other, or a thousand would request at the same instant; close
        // together, since earlier shards may be dead.
        let next_end_of_a_lease = match reason {
            WaitReason::Slot => Micros::MAX,
            _ => self.others.next_end + self.request_gap() * self.rank(head.ticket).saturating_sub(1),
        };
        let reason = refused.filter(|refused| *refused == WaitReason::Missed).unwrap_or(reason);
        Wait { reason, ask_in: Some(ask_in.min(renew).min(next_end_of_a_lease - self.now)) }
    }

    /// Time between two shards' requests when a lease ends.
    fn request_gap(&self) -> Micros {
        self.record.meters.first().interval.min(MAX_REQUEST_GAP)
    }

    /// Half the lead before the slot. A late ticket without its own slot uses the whole lead, so it
    /// comes first.
    fn slot_to_ask_for(&self, head: Ask) -> Micros {
        let middle = Micros::new(self.lead_for(head.ticket).get() / 2);
        let interval = self.record.meters.first().interval;
        let rank = self.rank(head.ticket);
        if head.ticket <= self.record.current {
            return match self.own_slot(head) {
                Some(slot) => slot - middle,
                None => self.by_rank(head) - self.lead,
            };
        }
        if rank == 0 {
            return self.record.next_slot(head.weight) - middle;
        }
        let by_distance = match self.by_distance(head) - middle {
            passed if passed <= self.now => passed + self.courtesy(head.ticket),
            to_come => to_come,
        };
        if self.record.current < self.record.gaps_until {
            let by_rank = self.by_rank(head) - middle;
            return by_distance.min(by_rank.max(self.now + interval));
        }
        by_distance
    }
}
