//! Which of its queues a joint job turns to next. No I/O, no clock.
//!
//! Queues are ordered by how long a slot of the job takes there, slowest first. A ticket is taken where the
//! line is longest at once, elsewhere when the wait there is what is left of that. The slowest queue is
//! opened when no other would keep its slot waiting, the next one when its slot has come, and so on: a faster
//! queue has a slot sooner than the slot of a slower one gets stale.

use std::time::Duration;

/// How a job stands in one of its queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stand {
    /// It is not in its line.
    Absent,
    /// It holds a ticket and asks for no slot.
    Gated,
    /// It asks for its slot.
    Open,
    /// Its slot has come.
    InHand,
}

/// What is known of one queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outlook {
    pub(super) stand: Stand,
    /// In how long its slot could come; for a new ticket if it is absent. None: nobody can tell.
    pub(super) wait: Option<Duration>,
    /// From its slot to the next one.
    pub(super) interval: Duration,
    /// How early it asks for a slot.
    pub(super) lead: Duration,
    /// How long a slot can be in hand.
    pub(super) tolerance: Duration,
    /// Whether its slot comes when it is due.
    pub(super) sure: bool,
}

/// What to do next, by the place in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    /// Take a ticket and ask for no slot.
    Take(usize),
    /// Ask for a slot.
    Open(usize),
    /// Ask for no slot any more: it would have to wait.
    Close(usize),
    /// Look again when a slot has come, or after that time.
    Wait(Option<Duration>),
}

/// Nearer than this, lines are not looked at again for their length.
const GLANCE: Duration = Duration::from_secs(1);

/// Nearer than this, the time to take a ticket is waited for as a whole.
const SOON: Duration = Duration::from_millis(20);

/// The shortest wait for an estimate to come true.
const BLINK: Duration = Duration::from_millis(1);

impl Outlook {
    /// Whether the job uses its slot, if it comes, in a moment.
    pub(super) fn is_imminent(&self) -> bool {
        self.stand == Stand::Open && self.wait.is_some_and(|wait| wait <= self.lead + BLINK * 2)
    }

    /// Whether there is no line to hold a place in.
    fn is_near(&self) -> bool {
        self.wait.is_none_or(|wait| wait <= self.lead)
    }
}

/// The next move. `queues` are the slowest first; `suspect` is the one that did not bring its slot when it
/// was due.
pub(super) fn next(queues: &[Outlook], suspect: Option<usize>) -> Move {
    let find = |stand| queues.iter().position(|queue| queue.stand == stand);
    let open = find(Stand::Open);
    if find(Stand::InHand).is_some() {
        let missing = queues.iter().position(|queue| queue.stand != Stand::InHand);
        return missing.filter(|_| open.is_none()).map_or(Move::Wait(None), Move::Open);
    }
    let suspect = suspect.filter(|&suspect| queues[suspect].is_near() && !queues[suspect].sure);
    let unknown = || queues.iter().position(|queue| queue.wait.is_none());
    let first = open.or(suspect).or_else(unknown);
    // A job that waits for something that nobody can tell takes no other place: it would only be in the way.
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
    let mut look_again = if open.is_none() { ready } else { last_look(&queues[first]) };
    for (number, queue) in queues.iter().enumerate().filter(|(_, queue)| queue.stand == Stand::Absent) {
        let left = longest.saturating_sub(queue.wait.unwrap_or_default());
        if left <= queue.interval / 2 {
            if !queue.is_near() {
                return Move::Take(number);
            }
        } else if left > GLANCE.max(queue.interval * 2) || !queue.is_near() {
            let look = (left / 2).max(left.min(SOON));
            look_again = Some(look_again.map_or(look, |again| again.min(look)));
        }
    }
    Move::Wait(look_again)
}

fn others(queues: &[Outlook], first: usize) -> impl Iterator<Item = &Outlook> {
    queues.iter().enumerate().filter(move |(number, _)| *number != first).map(|(_, queue)| queue)
}

/// Whether the slot of an open queue would be given back for want of this one.
fn keeps_waiting(open: &Outlook, queue: &Outlook) -> bool {
    let ahead = open.wait.unwrap_or_default().max(queue.lead);
    queue.wait.is_none_or(|wait| wait > ahead + open.tolerance)
}

/// In how long to see whether all is still as it was, before the slot of an open queue is granted.
fn last_look(open: &Outlook) -> Option<Duration> {
    open.wait.and_then(|wait| wait.checked_sub(open.lead + BLINK)).filter(|look| !look.is_zero())
}

/// In how long no other queue would keep the slot of `first` waiting; none: it is so now.
fn ready(queues: &[Outlook], first: usize) -> Option<Duration> {
    let wait_of = |queue: &Outlook| queue.wait.unwrap_or_default();
    let ahead = wait_of(&queues[first]);
    let waits = others(queues, first).filter_map(|queue| {
        // A slot more or less, as long as the first one bears it, rather than one that goes by unused. Where
        // its slot comes at any time there is no need.
        let slack = match ahead.is_zero() {
            true => Duration::ZERO,
            false => queue.interval.min(queues[first].tolerance / 4),
        };
        let near = queue.lead + slack;
        (wait_of(queue) > ahead.max(queue.lead) + slack).then(|| (wait_of(queue) - near).max(BLINK))
    });
    waits.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn queue(stand: Stand, interval: u64, wait: Option<u64>) -> Outlook {
        let tolerance = ms(interval.max(10));
        Outlook { stand, wait: wait.map(ms), interval: ms(interval), lead: ms(4), tolerance, sure: true }
    }

    use Stand::{Absent, Gated, InHand, Open};

    #[test]
    fn idle_queues_are_opened_one_after_the_other_the_slowest_first() {
        let slow = |stand| queue(stand, 100, Some(0));
        let fast = |stand| queue(stand, 10, Some(0));
        assert_eq!(next(&[slow(Absent), fast(Absent)], None), Move::Open(0));
        assert_eq!(next(&[slow(Open), fast(Absent)], None), Move::Wait(None));
        assert_eq!(next(&[slow(InHand), fast(Absent)], None), Move::Open(1));
        assert_eq!(next(&[slow(InHand), fast(Open)], None), Move::Wait(None));
    }

    #[test]
    fn a_place_in_the_longest_line_is_taken_at_once() {
        let idle = queue(Absent, 100, Some(0));
        assert_eq!(next(&[idle, queue(Absent, 10, Some(800))], None), Move::Take(1));
        // The idle one is opened when the slot is near.
        let wait = next(&[idle, queue(Gated, 10, Some(800))], None);
        assert_eq!(wait, Move::Wait(Some(ms(796))));
        assert_eq!(next(&[idle, queue(Gated, 10, Some(4))], None), Move::Open(0));
    }

    #[test]
    fn a_place_in_a_shorter_line_is_taken_when_what_is_left_of_the_longest_is_as_long() {
        let slow = queue(Open, 100, Some(1000));
        assert_eq!(next(&[slow, queue(Absent, 10, Some(200))], None), Move::Wait(Some(ms(400))));
        assert_eq!(next(&[slow, queue(Absent, 10, Some(996))], None), Move::Take(1));
        // There is no line.
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
        // Nor any more, if that turns out later.
        assert_eq!(next(&[queue(Open, 100, Some(150)), queue(Gated, 10, Some(300))], None), Move::Close(0));
        assert_eq!(
            next(&[queue(Open, 100, Some(260)), queue(Gated, 10, Some(300))], None),
            Move::Wait(Some(ms(255)))
        );
    }

    #[test]
    fn the_one_of_which_nobody_can_tell_when_it_goes_on_comes_first() {
        let paused = |stand| queue(stand, 10, None);
        assert_eq!(next(&[queue(Absent, 100, Some(0)), paused(Absent)], None), Move::Open(1));
        assert_eq!(next(&[queue(Gated, 100, Some(0)), paused(Open)], None), Move::Wait(None));
        assert_eq!(next(&[queue(Gated, 100, Some(0)), paused(InHand)], None), Move::Open(0));
    }

    #[test]
    fn so_does_the_one_that_was_due_and_did_not_come() {
        let slow = queue(Gated, 100, Some(50));
        let full = |wait| Outlook { sure: false, ..queue(Gated, 10, Some(wait)) };
        assert_eq!(next(&[slow, full(3)], Some(1)), Move::Open(1));
        assert_eq!(next(&[slow, queue(Gated, 10, Some(3))], Some(1)), Move::Open(0));
        // Not if one knows by now when it will.
        assert_eq!(next(&[slow, full(500)], Some(1)), Move::Wait(Some(ms(486))));
    }
}
