//! Upcoming starts, as far as the record shows: the known tickets and their slots.

use interval_queue::{Label, Micros, ShardId, Snapshot, Ticket};

use super::history::Waiting;

/// An upcoming ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Next {
    pub(crate) ticket: Ticket,
    pub(crate) shard: ShardId,
    pub(crate) label: Label,
    /// Its slot on the store's clock if no other ticket intervenes. `None`: unknown.
    pub(crate) slot: Option<Micros>,
    /// Whether it missed its own slot and takes the next free one.
    pub(crate) late: bool,
}

/// The next tickets, at most `most`. After a shard's head, only the tickets of its last take are
/// known.
pub(crate) fn forecast(snapshot: &Snapshot, now: Micros, most: usize) -> Vec<Next> {
    let record = &snapshot.record;
    let mut tickets: Vec<(Ticket, &ShardId, &Label)> = Vec::new();
    for (head, id, presence) in snapshot.waiting().into_iter().take(most) {
        tickets.push((head, id, &presence.label));
        if let Some(take) = presence.last_take {
            let taken = (0..u64::from(take.count)).map(|n| take.first.after(n));
            tickets.extend(
                taken.filter(|ticket| *ticket > head).take(most).map(|ticket| (ticket, id, &presence.label)),
            );
        }
    }
    tickets.sort_by_key(|(ticket, ..)| *ticket);
    tickets.dedup_by_key(|(ticket, ..)| *ticket);
    tickets.truncate(most);

    let full = record.max_running.is_some_and(|limit| snapshot.running() >= u64::from(limit));
    let known = !record.paused && !full;
    let behind = |slots| record.meters.slot_behind(record.held_until, now, slots, 0, 1);
    let first = behind(0);
    let gaps = record.current < record.gaps_until;
    let mut before: Option<Micros> = None;
    tickets
        .into_iter()
        .zip(0..)
        .map(|((ticket, shard, label), n)| {
            let late = ticket <= record.current;
            let distance = ticket.behind(record.current).saturating_sub(1);
            let slot = match before {
                None => first,
                // Late tickets follow each other without gaps. So do tickets with unowned tickets
                // between them.
                Some(_) if late || gaps => behind(n),
                Some(before) => behind(distance.max(n)).max(before),
            };
            before = Some(slot);
            Next { ticket, shard: shard.clone(), label: label.clone(), slot: known.then_some(slot), late }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::scene::Scene;

    fn tickets_and_slots(snapshot: &Snapshot, most: usize) -> Vec<(u64, String, Option<u64>)> {
        let next = forecast(snapshot, snapshot.at, most).into_iter();
        next.map(|next| (next.ticket.get(), next.label.to_string(), next.slot.map(Micros::get))).collect()
    }

    #[test]
    fn slots_follow_from_the_distance_to_current() {
        let scene = Scene::new(100).at(1000).ticket(9).current(4).free_at(1050);
        let scene = scene.shard("b", 7).shard("a", 5).took("a", 2).lease(0).shard("dead", 6);
        let all = [(5, "a".into(), Some(1050)), (6, "a".into(), Some(1150)), (7, "b".into(), Some(1250))];
        assert_eq!(tickets_and_slots(&scene.build(), 9), all);
        assert_eq!(tickets_and_slots(&scene.build(), 2), all[..2]);
        assert_eq!(tickets_and_slots(&Scene::new(100).build(), 2), []);
    }

    #[test]
    fn free_slots_are_now_and_late_tickets_come_first() {
        let scene = Scene::new(100).at(1000).ticket(9).current(6).free_at(400).shard("late", 2).shard("a", 7);
        assert_eq!(
            tickets_and_slots(&scene.build(), 9),
            [(2, "late".into(), Some(1000)), (7, "a".into(), Some(1100))]
        );
        assert!(forecast(&scene.build(), Micros::new(1000), 9)[0].late);
    }

    #[test]
    fn a_hold_delays_and_nobody_knows_when_a_pause_or_a_job_ends() {
        let scene = Scene::new(100).at(1000).ticket(9).current(6).free_at(400).shard("a", 7);
        assert_eq!(
            tickets_and_slots(&scene.clone().held_until(7000).build(), 9),
            [(7, "a".into(), Some(7000))]
        );
        assert_eq!(tickets_and_slots(&scene.clone().paused().build(), 9), [(7, "a".into(), None)]);
        assert_eq!(tickets_and_slots(&scene.max_running(2).runs("b", 2).build(), 9), [(7, "a".into(), None)]);
    }
}
