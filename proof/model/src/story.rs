//! A way through the states in words.

use interval_queue_contract::{Micros, Record, Step, Ticket, WaitReason};
use stateright::Model;

use crate::{
    Action, Queue, Setup, World,
    setup::{NOW, TICK},
    shard::{Answer, Shard, Wire, micros},
};

/// One line for each thing that happens; times are in intervals from the beginning. Time that passes is told
/// with what happens next.
pub(crate) fn tell(queue: &Queue, actions: &[Action]) -> Vec<String> {
    let mut world = queue.init_states().remove(0);
    let mut teller = Teller { setup: queue.setup.clone(), passed: Micros::ZERO };
    let mut lines = Vec::new();
    for &action in actions {
        let Some(next) = queue.next_state(&world, action) else { continue };
        match action {
            Action::Pass => teller.passed = teller.passed + TICK,
            _ => lines.push(format!("at {}: {}", teller.time(NOW), teller.line(&world, &next, action))),
        }
        world = next;
    }
    let left = world.stored.as_ref().map_or("the record is lost".to_owned(), |record| teller.record(record));
    lines.push(format!("at {}: {left}", teller.time(NOW)));
    lines
}

struct Teller {
    setup: Setup,
    passed: Micros,
}

impl Teller {
    fn time(&self, instant: Micros) -> String {
        let past_the_beginning = instant + self.passed;
        let (to_come, gone) = (past_the_beginning - NOW, NOW - past_the_beginning);
        let intervals =
            |span: Micros| span.to_duration().div_duration_f64(self.setup.interval().to_duration());
        (intervals(to_come) - intervals(gone)).to_string()
    }

    fn line(&self, before: &World, after: &World, action: Action) -> String {
        let name = |n: usize| Shard::id(n).to_string().to_uppercase();
        match action {
            Action::Pass => String::new(),
            Action::Add(n) => format!("{} adds a job", name(n)),
            Action::Send(n) => match &after.shards[n].wire {
                Wire::Sent(step) => format!("{} sends {}", name(n), self.step(step)),
                Wire::Answered(answer) => {
                    let mut shard = before.shards[n].clone();
                    let step = shard.step(&self.setup, n);
                    let step = step.map(|step| self.step(&step)).unwrap_or_default();
                    format!("{} sends {step}; the state answers: {}", name(n), self.answer(answer))
                }
                Wire::Idle => String::new(),
            },
            Action::Arrive(n) => match &after.shards[n].wire {
                Wire::Answered(answer) => format!("the state answers {}: {}", name(n), self.answer(answer)),
                _ => format!("the step of {} arrives", name(n)),
            },
            Action::Receive(n) => format!("{} gets the answer", name(n)),
            Action::ReceiveLate(n) => format!("{} gets an answer it waited for no more", name(n)),
            Action::TimeOut(n) => match &before.shards[n].wire {
                Wire::Sent(_) => format!("{} waits no more; its request is still on its way", name(n)),
                _ => format!("the answer to {} is lost or late", name(n)),
            },
            Action::Stray(n) => {
                let at = after.stored.as_ref().map(|record| self.record(record)).unwrap_or_default();
                format!("the request that {} waits for no more arrives: {at}", name(n))
            }
            Action::Start(n) => {
                let grant = before.shards[n].line.held.grants.front();
                let grant = grant.map(|grant| {
                    format!("ticket {} for slot {}", grant.ticket, self.time(micros(grant.slot)))
                });
                format!("{} starts {}", name(n), grant.unwrap_or_default())
            }
            Action::Finish(n) => format!("a job of {} ends", name(n)),
            Action::Cancel(n) => format!("{} withdraws a job", name(n)),
            Action::Crash(n) => format!("{} dies", name(n)),
            Action::Pause => "the queue is paused".to_owned(),
            Action::Resume => "the queue is resumed".to_owned(),
            Action::Hold => "the queue is held for 2 intervals".to_owned(),
            Action::Save => "the record is copied".to_owned(),
            Action::Lose(loss) => format!("the record is lost: {loss:?}"),
        }
    }

    fn step(&self, step: &Step) -> String {
        let mut said = vec![format!("step {}", step.sequence)];
        if let Some(take) = &step.take {
            said.push(format!("request {} for {} tickets", take.request, take.count));
        }
        if !step.ask.is_empty() {
            said.push(format!("asks for {}", list(step.ask.iter().map(|ask| ask.ticket))));
        }
        said.join(", ")
    }

    fn answer(&self, answer: &Option<Answer>) -> String {
        let Some(answer) = answer else { return "refused".to_owned() };
        let mut said = Vec::new();
        if let Some(taken) = answer.taken {
            said.push(format!("took {}", list(taken.tickets())));
        }
        for grant in &answer.grants {
            let weight =
                if grant.weight > 1 { format!(" of weight {}", grant.weight) } else { String::new() };
            said.push(format!("ticket {}{weight} has slot {}", grant.ticket, self.time(grant.slot)));
        }
        if let Some(ask_at) = answer.wait {
            let reason = match &answer.reason {
                Some(WaitReason::Behind { ticket, .. }) => format!("waits behind ticket {ticket}"),
                Some(WaitReason::Paused) => "waits for the end of the pause".to_owned(),
                Some(WaitReason::AtMaxRunning) => "waits for room to run".to_owned(),
                _ => "waits for its slot".to_owned(),
            };
            let ask_at = ask_at.map(|at| format!(", is to ask at {}", self.time(at)));
            said.push(reason + &ask_at.unwrap_or_default());
        }
        if said.is_empty() { "nothing to wait for".to_owned() } else { said.join(", ") }
    }

    fn record(&self, record: &Record) -> String {
        let heads = record.shards.iter().map(|(id, presence)| {
            let head = presence.head.map_or("no head".to_owned(), |head| format!("head {head}"));
            format!("{} {head}", id.to_string().to_uppercase())
        });
        let Record { ticket, current, .. } = record;
        let free_at = self.time(record.next_slot(1));
        let heads: Vec<_> = heads.collect();
        format!("ticket {ticket}, current {current}, free at {free_at}, shards [{}]", heads.join(", "))
    }
}

fn list(tickets: impl Iterator<Item = Ticket>) -> String {
    tickets.map(|ticket| ticket.to_string()).collect::<Vec<_>>().join(" and ")
}
