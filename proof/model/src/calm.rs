//! A continuation without further trouble: messages arrive at once, everybody acts when told, and nobody adds
//! a job.

use crate::{Setup, World, model::Action, shard::Wire};

/// How often a shard may step within one tick before it counts as spinning.
const MOST_STEPS: usize = 12;

/// How many ticks go by until every job that a living shard has accepted has started. None: they do not
/// within the bound.
pub(crate) fn settle(setup: &Setup, world: &World) -> Option<u64> {
    let mut world = world.clone();
    let shards = 0..world.shards.len();
    // The dead keep their places for a lease; nothing else takes longer than the slots of all jobs, twice for
    // those that are granted in vain, a hold, and the lead.
    let lead = setup.leads.iter().max().copied().unwrap_or(0);
    let bound = setup.lease + lead + setup.longest_interval() * (2 * setup.weight() + 4);
    if setup.trouble.pauses > 0 {
        world.nudge();
    }
    for passed in 0..=bound {
        for round in 0.. {
            if round > MOST_STEPS {
                return None;
            }
            let acted = shards.clone().filter(|&n| act(setup, &mut world, n)).count();
            if acted == 0 {
                break;
            }
        }
        let done = world.shards.iter().all(|shard| !shard.alive || shard.has_started_all());
        if done {
            return Some(passed);
        }
        world.happen(setup, Action::Pass);
    }
    None
}

/// Lets a shard do all that is due. Says whether there was anything.
fn act(setup: &Setup, world: &mut World, n: usize) -> bool {
    if !world.shards[n].alive {
        return false;
    }
    if world.stored.as_ref().is_some_and(|record| record.paused) {
        // Also a pause that came back with a shard's memory of it.
        world.happen(setup, Action::Resume);
    }
    let (mut acted, mut sent) = (false, false);
    loop {
        let action = match &world.shards[n].wire {
            Wire::Sent(_) => Action::Arrive(n),
            Wire::Answered(_) => Action::Receive(n),
            Wire::Idle if !world.shards[n].line.running.is_empty() => Action::Finish(n),
            Wire::Idle if world.shards[n].can_start() => Action::Start(n),
            Wire::Idle if !acted && !sent => Action::Send(n),
            Wire::Idle => return acted,
        };
        sent = action == Action::Send(n);
        world.happen(setup, action);
        acted |= !sent || world.shards[n].wire != Wire::Idle;
    }
}
