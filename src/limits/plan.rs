//! Decides the next move of a joint job. No I/O, no clock.
//!
//! Queues are ordered by the job's interval, slowest first. The job takes a ticket at once in the
//! longest line, and in another when the rest of the longest wait equals its own. The slowest queue
//! is opened when no other would keep its slot waiting, the next one when that slot has come: a
//! faster queue has a slot before the slower one's is stale.

use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemberState {
    Absent,
    /// Has a ticket and requests no slot.
    Gated,
    Open,
    InHand,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Estimate {
    pub(super) state: MemberState,
    /// With a new ticket, if absent. `None`: unknown.
    pub(super) wait: Option<Duration>,
    pub(super) interval: Duration,
    pub(super) lead: Duration,
    pub(super) tolerance: Duration,
    /// Whether the slot comes when due.
    pub(super) sure: bool,
}

/// The next action, on the queue at this index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    Take(usize),
    Open(usize),
    /// Its slot would have to wait.
    Close(usize),
    /// Plan again when a slot has come, or after this time.
    Wait(Option<Duration>),
}

/// Nearer to its ticket than this, a queue without a line is not read again.
const REREAD_MIN: Duration = Duration::from_secs(1);

/// Does not apply if a ticket is due sooner.
const MIN_REREAD_DELAY: Duration = Duration::from_millis(20);

/// Also the margin of an estimate.
const MIN_WAIT: Duration = Duration::from_millis(1);

impl Estimate {
    pub(super) fn is_imminent(&self) -> bool {
        self.state == MemberState::Open && self.wait.is_some_and(|wait| wait <= self.lead + MIN_WAIT * 2)
    }

    /// A slot could come within the lead.
    fn is_near(&self) -> bool {
        self.wait.is_none_or(|wait| wait <= self.lead)
    }
}

/// `queues`: slowest first. `suspect`: its slot did not come when due.
pub(super) fn next(queues: &[Estimate], suspect: Option<usize>) -> Move {
    let find = |state| queues.iter().position(|queue| queue.state == state);
    let open = find(MemberState::Open);
    if find(MemberState::InHand).is_some() {
        let missing = queues.iter().position(|queue| queue.state != MemberState::InHand);
        return missing.filter(|_| open.is_none()).map_or(Move::Wait(None), Move::Open);
    }
    let suspect = suspect.filter(|&suspect| queues[suspect].is_near() && !queues[suspect].sure);
    let unknown = || queues.iter().position(|queue| queue.wait.is_none());
    let first = open.or(suspect).or_else(unknown);
    // If a wait is unknown, the job takes no other position, which would only block that line.
    if let Some(first) = first.filter(|&first| suspect == Some(first) || queues[first].wait.is_none()) {
        return if open.is_some() { Move::Wait(None) } else { Move::Open(first) };
    }
    let first = first.unwrap_or(0);
    let ready = ready(queues, first);
    if open.is_none() && ready.is_none() {
        return Move::Open(first);
    }
    if open.is_some() && others(queues, first).any(|queue| keeps_waiting(&queues[first], queue)) {
        return Move::Close(first);
    }
    let longest = queues.iter().filter_map(|queue| queue.wait).max().unwrap_or_default();
    let mut reread_in = if open.is_none() { ready } else { last_check(&queues[first]) };
    for (number, queue) in queues.iter().enumerate().filter(|(_, queue)| queue.state == MemberState::Absent) {
        let left = longest.saturating_sub(queue.wait.unwrap_or_default());
        if left <= queue.interval / 2 {
            if !queue.is_near() {
                return Move::Take(number);
            }
        } else if left > REREAD_MIN.max(queue.interval * 2) || !queue.is_near() {
            let delay = (left / 2).max(left.min(MIN_REREAD_DELAY));
            reread_in = Some(reread_in.map_or(delay, |again| again.min(delay)));
        }
    }
    Move::Wait(reread_in)
}

fn others(queues: &[Estimate], first: usize) -> impl Iterator<Item = &Estimate> {
    queues.iter().enumerate().filter(move |(number, _)| *number != first).map(|(_, queue)| queue)
}

/// Whether the slot of `open` would be stale before `queue` has one.
fn keeps_waiting(open: &Estimate, queue: &Estimate) -> bool {
    let ahead = open.wait.unwrap_or_default().max(queue.lead);
    queue.wait.is_none_or(|wait| wait > ahead + open.tolerance)
}

/// `None`: too late.
fn last_check(open: &Estimate) -> Option<Duration> {
    open.wait.and_then(|wait| wait.checked_sub(open.lead + MIN_WAIT)).filter(|delay| !delay.is_zero())
}

/// `None`: now.
fn ready(queues: &[Estimate], first: usize) -> Option<Duration> {
    let wait_of = |queue: &Estimate| queue.wait.unwrap_or_default();
    let ahead = wait_of(&queues[first]);
    let waits = others(queues, first).filter_map(|queue| {
        // Slack of one slot, as far as `first` can wait, so that no slot goes unused. Not needed if
        // `first` has a slot at any time.
        let slack = match ahead.is_zero() {
            true => Duration::ZERO,
            false => queue.interval.min(queues[first].tolerance / 4),
        };
        let near = queue.lead + slack;
        (wait_of(queue) > ahead.max(queue.lead) + slack).then(|| (wait_of(queue) - near).max(MIN_WAIT))
    });
    waits.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn queue(state: MemberState, interval: u64, wait: Option<u64>) -> Estimate {
        let tolerance = ms(interval.max(10));
        Estimate { state, wait: wait.map(ms), interval: ms(interval), lead: ms(4), tolerance, sure: true }
    }

    use MemberState::{Absent, Gated, InHand, Open};

    #[test]
    fn idle_queues_are_opened_one_after_the_other_the_slowest_first() {
        let slow = |state| queue(state, 100, Some(0));
        let fast = |state| queue(state, 10, Some(0));
        assert_eq!(next(&[slow(Absent), fast(Absent)], None), Move::Open(0));
        assert_eq!(next(&[slow(Open), fast(Absent)], None), Move::Wait(None));
        assert_eq!(next(&[slow(InHand), fast(Absent)], None), Move::Open(1));
        assert_eq!(next(&[slow(InHand), fast(Open)], None), Move::Wait(None));
    }

    #[test]
    fn a_place_in_the_longest_line_is_taken_at_once() {
        let idle = queue(Absent, 100, Some(0));
        assert_eq!(next(&[idle, queue(Absent, 10, Some(800))], None), Move::Take(1));
        // The idle queue is opened when the other slot is near.
        let wait = next(&[idle, queue(Gated, 10, Some(800))], None);
        assert_eq!(wait, Move::Wait(Some(ms(796))));
        assert_eq!(next(&[idle, queue(Gated, 10, Some(4))], None), Move::Open(0));
    }

    #[test]
    fn a_shorter_line_is_joined_when_the_longest_has_as_long_left() {
        let slow = queue(Open, 100, Some(1000));
        assert_eq!(next(&[slow, queue(Absent, 10, Some(200))], None), Move::Wait(Some(ms(400))));
        assert_eq!(next(&[slow, queue(Absent, 10, Some(996))], None), Move::Take(1));
        // The other queue has no line.
        assert_eq!(
            next(&[queue(Open, 100, Some(15)), queue(Absent, 10, Some(0))], None),
            Move::Wait(Some(ms(10)))
        );
    }

    #[test]
    fn a_slot_is_not_asked_for_that_would_have_to_wait() {
        let late = queue(Gated, 100, Some(0));
        assert_eq!(next(&[late, queue(Gated, 10, Some(300))], None), Move::Wait(Some(ms(296))));
        assert_eq!(next(&[queue(Gated, 100, Some(290)), queue(Gated, 10, Some(300))], None), Move::Open(0));
        // The request is withdrawn if the wait turns out longer.
        assert_eq!(next(&[queue(Open, 100, Some(150)), queue(Gated, 10, Some(300))], None), Move::Close(0));
        assert_eq!(
            next(&[queue(Open, 100, Some(260)), queue(Gated, 10, Some(300))], None),
            Move::Wait(Some(ms(255)))
        );
    }

    #[test]
    fn a_queue_with_an_unknown_wait_is_opened_first() {
        let paused = |state| queue(state, 10, None);
        assert_eq!(next(&[queue(Absent, 100, Some(0)), paused(Absent)], None), Move::Open(1));
        assert_eq!(next(&[queue(Gated, 100, Some(0)), paused(Open)], None), Move::Wait(None));
        assert_eq!(next(&[queue(Gated, 100, Some(0)), paused(InHand)], None), Move::Open(0));
    }

    #[test]
    fn a_queue_whose_slot_was_due_and_did_not_come_is_opened_first() {
        let slow = queue(Gated, 100, Some(50));
        let full = |wait| Estimate { sure: false, ..queue(Gated, 10, Some(wait)) };
        assert_eq!(next(&[slow, full(3)], Some(1)), Move::Open(1));
        assert_eq!(next(&[slow, queue(Gated, 10, Some(3))], Some(1)), Move::Open(0));
        // A wait that is known to be long does not come first.
        assert_eq!(next(&[slow, full(500)], Some(1)), Move::Wait(Some(ms(486))));
    }
}
