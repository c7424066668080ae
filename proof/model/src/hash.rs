//! The hash that tells states apart. The types of the contract have none; they are taken apart without `..`,
//! so that a new field cannot be overlooked.

use std::hash::{DefaultHasher, Hash, Hasher};

use interval_queue_contract::{LastTake, Memory, Presence, Record, ShardId, Step, Taken};
use interval_queue_line::{Arriving, Backlog, Contact, Hand, Line};

use crate::{
    World,
    shard::{Answer, Shard, Wire},
};

/// What hashes tell apart.
impl PartialEq for World {
    fn eq(&self, other: &Self) -> bool {
        let hash = |world: &Self| {
            let mut state = DefaultHasher::new();
            world.hash(&mut state);
            state.finish()
        };
        hash(self) == hash(other)
    }
}

impl Hash for World {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self {
            stored,
            saved,
            incarnation,
            shards,
            ledger,
            started,
            left,
            losses,
            early,
            excused,
            broken,
            seen: _,
        } = self;
        for record in [stored, saved] {
            record.is_some().hash(state);
            record.iter().for_each(|record| hash_record(record, state));
        }
        shards.iter().for_each(|shard| hash_shard(shard, state));
        (incarnation, ledger, started, left, losses, early, excused, broken).hash(state);
    }
}

fn hash_record<H: Hasher>(record: &Record, state: &mut H) {
    let Record {
        version,
        incarnation,
        interval,
        max_running,
        paused,
        revision,
        ticket,
        current,
        free_at,
        held_until,
        line_from,
        gaps_until,
        longest_lead,
        lifted_at,
        seen_at,
        shards,
    } = record;
    (version, incarnation, interval, max_running, paused, revision, ticket, current).hash(state);
    (free_at, held_until, line_from, gaps_until, longest_lead, lifted_at, seen_at).hash(state);
    shards.len().hash(state);
    for (id, presence) in shards {
        let Presence { head, running, expires_at, sequence, last_take, label: _ } = presence;
        hash_id(id, state);
        (head, running, expires_at, sequence).hash(state);
        let last_take = last_take.map(|LastTake { request, first, count }| (request, first, count));
        last_take.hash(state);
    }
}

fn hash_id<H: Hasher>(id: &ShardId, state: &mut H) {
    id.as_str().hash(state);
}

fn hash_memory<H: Hasher>(memory: &Memory, state: &mut H) {
    let Memory {
        at,
        sequence,
        ticket,
        current,
        free_at,
        revision,
        interval,
        max_running,
        paused,
        held_until,
        longest_lead,
        // For people and outages only.
        shards: _,
    } = memory;
    (at, sequence, ticket, current, free_at, revision).hash(state);
    (interval, max_running, paused, held_until, longest_lead).hash(state);
}

fn hash_step<H: Hasher>(step: &Step, state: &mut H) {
    // The rest is the same for every step of a shard.
    let Step {
        shard: _,
        label: _,
        sequence,
        memory,
        lease: _,
        lead: _,
        take,
        ask,
        then,
        late: _,
        running,
        given_up,
    } = step;
    hash_memory(memory, state);
    (sequence, then, running, given_up, ask.len(), take.is_some()).hash(state);
    ask.iter().for_each(|ask| (ask.ticket, ask.weight).hash(state));
    take.iter().for_each(|take| (take.request, take.count, &take.weights).hash(state));
}

fn hash_answer<H: Hasher>(answer: &Answer, state: &mut H) {
    // The reason is for people only.
    let Answer { memory, taken, grants, wait, reason: _, present, running, given_up } = answer;
    hash_memory(memory, state);
    let taken = taken.map(|Taken { first, count }| (first, count));
    (taken, grants, wait, present, running, given_up).hash(state);
}

fn hash_shard<H: Hasher>(shard: &Shard, state: &mut H) {
    let Shard { alive, added, line, lapsed, wire, stray, resend, last, stale } = shard;
    (alive, added, lapsed).hash(state);
    hash_line(line, state);
    match wire {
        Wire::Idle => 0.hash(state),
        Wire::Sent(step) => {
            1.hash(state);
            hash_step(step, state);
        }
        Wire::Answered(answer) => {
            (2, answer.is_some()).hash(state);
            answer.iter().for_each(|answer| hash_answer(answer, state));
        }
    }
    for step in [stray, resend, last] {
        step.is_some().hash(state);
        step.iter().for_each(|step| hash_step(step, state));
    }
    stale.is_some().hash(state);
    stale.iter().for_each(|answer| hash_answer(answer, state));
}

fn hash_line<H: Hasher>(line: &Line<()>, state: &mut H) {
    // The clock is exact, nothing runs alone, and the rest is fixed.
    let Line { identity: _, clock: _, contact, backlog, hand, running, alone: _ } = line;
    let Contact {
        memory,
        present,
        report,
        sequence,
        answered: _,
        request,
        ask_again,
        ask_at,
        last_step,
        heard: _,
        told: _,
        looked: _,
        failing: _,
    } = contact;
    hash_memory(memory, state);
    (present, report, sequence, request, ask_again, ask_at, last_step).hash(state);
    // Jobs differ in nothing but their weights and their order; none has terms or a gate.
    let Backlog { last_id: _, arriving, taking, is_ranked: _, hurry: _, waiting, gated: _, index: _ } =
        backlog;
    let weight = |arriving: &Arriving<()>| arriving.job.weight;
    arriving.iter().map(weight).collect::<Vec<_>>().hash(state);
    let taking = taking.as_ref();
    let taking = taking.map(|taking| (taking.request, taking.batch.iter().map(weight).collect::<Vec<_>>()));
    taking.hash(state);
    waiting.values().map(|job| job.weight).collect::<Vec<_>>().hash(state);
    // The tolerance is the same for all grants, and what was lost has been told.
    let Hand {
        tickets,
        grants,
        retake,
        given_up,
        started_at,
        overran: _,
        overruns: _,
        tolerance: _,
        lost: _,
    } = hand;
    (tickets, retake, given_up, started_at, running.len(), grants.len()).hash(state);
    grants.iter().for_each(|grant| (grant.slot, grant.ticket, grant.weight, grant.heard).hash(state));
}
