//! The starts between two reads of a queue, derived from the changes of the record.

use std::collections::{BTreeMap, HashMap};

use interval_queue::{Label, Micros, Presence, ShardId, Snapshot, Ticket, contract::Meter};

/// If more jobs start between two reads, neighbours are grouped into this number of starts.
const MAX_STARTS: u64 = 64;
/// If more tickets pass between two reads, they are not assigned to shards.
const MAX_ASSIGNED_TICKETS: u64 = 4096;

/// A start, or a group of starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    /// Its slot, on the store's clock. The slot of the last start is exact. Earlier ones are spaced
    /// by the interval.
    pub(crate) slot: Micros,
    /// The shard that started. `None`: a shard that came and went between the reads.
    pub(crate) who: Option<Who>,
    /// Number of starts in the group.
    pub(crate) count: u64,
}

/// A shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Who {
    pub(crate) shard: ShardId,
    pub(crate) label: Label,
}

/// The starts after `before` and up to `after`, including granted ones, in the order of their
/// slots.
///
/// A ticket has started if `current` has passed it and its shard no longer holds it. Tickets of
/// unseen shards count as starts as far as there were slots for them. The rest was unowned.
pub(crate) fn starts_between(before: &Snapshot, after: &Snapshot) -> Vec<Start> {
    let (old, new) = (&before.record, &after.record);
    if new.current < old.current || new.ticket < old.ticket || after.at < before.at {
        // The record was lost or the clock was stepped: starts are unknown.
        return Vec::new();
    }
    let mut started: Vec<Option<Who>> = late_starts(before, after);
    let passed = new.current.behind(old.current);
    let mut unknown = passed;
    if passed <= MAX_ASSIGNED_TICKETS {
        let owners = Owners::of(before, after);
        for ticket in (1..=passed).map(|n| old.current.after(n)) {
            match owners.of_ticket(ticket) {
                Some((id, _)) if still_holds(after, id, ticket) || died(before, after, id) => unknown -= 1,
                Some((id, presence)) => {
                    unknown -= 1;
                    started.push(Some(Who { shard: id.clone(), label: presence.label.clone() }));
                }
                None => {}
            }
        }
    }
    // Every start took a slot after the last reserved one, and after the time of the first read.
    let [tat_before, tat] = [old, new].map(|record| record.meters.first().tat);
    let earliest = tat_before.max(before.at);
    let interval = old.interval().min(new.interval()).get().max(1);
    let slots = (tat - earliest).get() / interval;
    let known = started.len() as u64;
    let unseen = unknown.min(slots.saturating_sub(known));
    spread(started, unseen, earliest, after)
}

/// Starts of tickets that `current` had passed at the first read, and that their shards no longer
/// hold.
fn late_starts(before: &Snapshot, after: &Snapshot) -> Vec<Option<Who>> {
    let late = before.record.shards.iter().filter_map(|(id, presence)| {
        let head = presence.head.filter(|head| *head <= before.record.current)?;
        let started = !still_holds(after, id, head) && !died(before, after, id);
        started.then(|| Some(Who { shard: id.clone(), label: presence.label.clone() }))
    });
    late.collect()
}

/// A shard holds its head, perhaps later tickets, but no earlier ones.
fn still_holds(after: &Snapshot, id: &ShardId, ticket: Ticket) -> bool {
    after.record.shards.get(id).and_then(|presence| presence.head).is_some_and(|head| head <= ticket)
}

/// Whether the lease of a shard ended, which drops its tickets.
fn died(before: &Snapshot, after: &Snapshot, id: &ShardId) -> bool {
    let lease = |snapshot: &Snapshot| snapshot.record.shards.get(id).map(|presence| presence.expires_at);
    match (lease(after), lease(before)) {
        (Some(expires_at), _) | (None, Some(expires_at)) => expires_at <= after.at,
        (None, None) => false,
    }
}

/// Assigns slots to the starts: the last slot is known, and the others are before it.
fn spread(mut started: Vec<Option<Who>>, unseen: u64, earliest: Micros, after: &Snapshot) -> Vec<Start> {
    let known = started.len() as u64;
    let total = known + unseen;
    let Meter { interval, burst, .. } = after.record.meters.first();
    let earliest = if burst > 1 { earliest.min(after.record.last_slot) } else { earliest };
    let last = after.record.last_slot;
    let last = if last < earliest { earliest.min(after.at) } else { last };
    let between = total.saturating_sub(1);
    // Spare time is due to a start that was a little late, or to a time without waiting jobs.
    let spare = (last - earliest) - interval * between;
    let even = Micros::new((last - earliest).get() / between.max(1));
    let step = if burst > 1 {
        even.min(interval)
    } else if spare <= interval {
        interval
    } else {
        even
    };
    let slot = |n: u64| last - step * (between - n);
    if total <= MAX_STARTS {
        // The order of unseen starts among the others is unknown: they come last.
        started.extend((0..unseen).map(|_| None));
        let starts = started.into_iter().zip(0..);
        return starts.map(|(who, n)| Start { slot: slot(n), who, count: 1 }).collect();
    }
    let mut counts: HashMap<Option<ShardId>, (Option<Who>, u64)> = HashMap::new();
    for who in started {
        counts.entry(who.as_ref().map(|who| who.shard.clone())).or_insert((who, 0)).1 += 1;
    }
    if unseen > 0 {
        counts.insert(None, (None, unseen));
    }
    let groups = (MAX_STARTS / counts.len() as u64).max(1);
    let mut starts: Vec<_> = counts
        .into_values()
        .flat_map(|(who, count)| {
            let groups = groups.min(count);
            (0..groups).map(move |group| {
                let share = |group| count * group / groups;
                (
                    group * total / groups,
                    Start { slot: Micros::ZERO, who: who.clone(), count: share(group + 1) - share(group) },
                )
            })
        })
        .map(|(n, start)| Start { slot: slot(n), ..start })
        .collect();
    starts.sort_by_key(|start| start.slot);
    starts
}

/// The owners of tickets, as far as the two reads show.
struct Owners<'a> {
    heads: HashMap<Ticket, (&'a ShardId, &'a Presence)>,
    /// By the first ticket of a take. Takes do not overlap.
    takes: BTreeMap<Ticket, (Ticket, &'a ShardId, &'a Presence)>,
}

impl<'a> Owners<'a> {
    fn of(before: &'a Snapshot, after: &'a Snapshot) -> Self {
        let mut owners = Self { heads: HashMap::new(), takes: BTreeMap::new() };
        for (id, presence) in before.record.shards.iter().chain(&after.record.shards) {
            if let Some(head) = presence.head {
                owners.heads.insert(head, (id, presence));
            }
            if let Some(take) = presence.last_take {
                let last = take.first.after(u64::from(take.count.max(1)) - 1);
                owners.takes.insert(take.first, (last, id, presence));
            }
        }
        owners
    }

    fn of_ticket(&self, ticket: Ticket) -> Option<(&'a ShardId, &'a Presence)> {
        self.heads.get(&ticket).copied().or_else(|| {
            let (_, (last, id, presence)) = self.takes.range(..=ticket).next_back()?;
            (ticket <= *last).then_some((*id, *presence))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::scene::Scene;

    fn slots_and_labels(starts: &[Start]) -> Vec<(u64, Option<&str>, u64)> {
        starts
            .iter()
            .map(|start| (start.slot.get(), start.who.as_ref().map(|who| who.label.as_str()), start.count))
            .collect()
    }

    #[test]
    fn heads_that_move_are_starts_at_the_slots_before_free_at() {
        let before = Scene::new(100).at(1000).ticket(6).current(2).free_at(1040).shard("a", 3).shard("b", 4);
        // Shard a has moved on to its next ticket, and b has nothing left.
        let after = Scene::new(100).at(1200).ticket(6).current(4).free_at(1240).shard("a", 5);
        let starts = starts_between(&before.build(), &after.build());
        assert_eq!(slots_and_labels(&starts), [(1040, Some("a"), 1), (1140, Some("b"), 1)]);
    }

    #[test]
    fn nothing_starts_where_nothing_moves() {
        let scene = Scene::new(100).at(1000).ticket(6).current(2).free_at(1040).shard("a", 3);
        assert_eq!(starts_between(&scene.build(), &scene.clone().at(1200).build()), []);
        assert_eq!(starts_between(&scene.build(), &scene.clone().ticket(9).at(1200).build()), []);
    }

    #[test]
    fn tickets_of_unseen_shards_are_starts_within_the_slots() {
        let before = Scene::new(100).at(1000).ticket(2).current(2).free_at(900);
        let all = Scene::new(100).at(1500).ticket(5).current(5).free_at(1500).build();
        assert_eq!(starts_between(&before.build(), &all).len(), 3);
        // A thousand tickets of dead shards were passed in one step.
        let gaps = Scene::new(100).at(1200).ticket(1002).current(1002).free_at(1250).build();
        assert_eq!(starts_between(&before.build(), &gaps).len(), 2);
    }

    #[test]
    fn a_late_ticket_starts_without_moving_current() {
        let before =
            Scene::new(100).at(1000).ticket(9).current(8).free_at(1050).shard("late", 3).shard("b", 9);
        let after = Scene::new(100).at(1100).ticket(9).current(8).free_at(1150).shard("b", 9);
        assert_eq!(
            slots_and_labels(&starts_between(&before.build(), &after.build())),
            [(1050, Some("late"), 1)]
        );
    }

    #[test]
    fn the_dead_do_not_start() {
        let before = Scene::new(100).at(1000).ticket(9).current(2).free_at(1050).lease(80).shard("dead", 3);
        let before = before.lease(5000).shard("b", 4);
        let after = Scene::new(100).at(1200).ticket(9).current(4).free_at(1150);
        assert_eq!(
            slots_and_labels(&starts_between(&before.build(), &after.build())),
            [(1050, Some("b"), 1)]
        );
    }

    #[test]
    fn a_passed_ticket_that_is_still_held_has_not_started() {
        let before =
            Scene::new(100).at(1000).ticket(9).current(2).free_at(1050).shard("slow", 3).shard("b", 4);
        let after = Scene::new(100).at(1200).ticket(9).current(4).free_at(1250).shard("slow", 3);
        assert_eq!(
            slots_and_labels(&starts_between(&before.build(), &after.build())),
            [(1150, Some("b"), 1)]
        );
    }

    #[test]
    fn a_lost_record_or_a_stepped_clock_shows_no_starts() {
        let before = Scene::new(100).at(1000).ticket(9).current(8).free_at(1050);
        let forgot = Scene::new(100).at(1200).ticket(3).current(3).free_at(1250);
        assert_eq!(starts_between(&before.build(), &forgot.build()), []);
        assert_eq!(starts_between(&before.build(), &before.clone().at(900).current(9).build()), []);
    }

    #[test]
    fn as_many_as_there_are_cost_no_more_room() {
        let before = Scene::new(10).at(0).ticket(90_000).current(0).free_at(0).shard("a", 1);
        let after = Scene::new(10).at(100_000).ticket(90_000).current(10_000).free_at(100_000);
        let starts = starts_between(&before.build(), &after.shard("a", 10_001).build());
        assert!(starts.len() <= 65, "{}", starts.len());
        assert_eq!(starts.iter().map(|start| start.count).sum::<u64>(), 10_000);
        assert!(starts.is_sorted_by_key(|start| start.slot));
        let far = Scene::new(10).at(1_000_000).ticket(90_000).current(80_000).free_at(800_000).build();
        assert_eq!(
            starts_between(&before.build(), &far).iter().map(|start| start.count).sum::<u64>(),
            80_000
        );
    }
}
