//! The hash that tells states apart. The types of the contract have none; they are taken apart without `..`,
//! so that a new field cannot be overlooked.

use std::hash::{Hash, Hasher};

use interval_queue_contract::{LastTake, Memory, Presence, Record, ShardId, Step};

use crate::{
    World,
    shard::{Answer, Shard, Wire},
};

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
    (taken, grants, wait, present, running, given_up).hash(state);
}

fn hash_shard<H: Hasher>(shard: &Shard, state: &mut H) {
    let Shard {
        alive,
        added,
        arriving,
        taking,
        waiting,
        tickets,
        grants,
        running,
        memory,
        sequence,
        request,
        given_up,
        report,
        present,
        ask_at,
        ask_again,
        lapsed,
        wire,
        stray,
        resend,
        last,
        stale,
    } = shard;
    (alive, added, arriving, taking, waiting, tickets, grants, running).hash(state);
    (sequence, request, given_up, report, present, ask_at, ask_again, lapsed).hash(state);
    hash_memory(memory, state);
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
