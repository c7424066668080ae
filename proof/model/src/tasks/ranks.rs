//! What is only compared is told by its rank: tokens of a task, and the numbers of the steps of a worker.

use interval_queue_task_contract::{Presence, Step, TaskId, Token};

use super::{
    member::{Member, Wire},
    task_setup::number,
    task_world::World,
};

/// Every token that is anywhere, in its order.
pub(crate) struct Tokens(Vec<(TaskId, Token)>);

impl Tokens {
    pub(crate) fn of(world: &World) -> Self {
        let mut tokens: Vec<_> = world.stored.tasks.values().map(|x| (x.id, x.token)).collect();
        tokens.extend(world.begun.iter().map(|run| (run.id, run.token)));
        for member in &world.members {
            tokens.extend(member.holds().map(|run| (run.id, run.token)));
            let held = &member.worker.held;
            tokens.extend(held.ended.values().map(|completion| (completion.id, completion.token)));
            tokens.extend(held.void.keys().map(|run| (run.id, run.token)));
            let under_way = member.worker.connection.under_way.iter();
            tokens.extend(under_way.flat_map(|step| &step.completed).map(|run| (run.id, run.token)));
            for step in member.steps() {
                tokens.extend(step.complete.iter().map(|completion| (completion.id, completion.token)));
                tokens.extend(step.held.iter().flatten().copied());
            }
            let answered = if let Wire::Answered(_, answer) = &member.wire { Some(answer) } else { None };
            let stale = member.stale.iter().map(|(_, answer)| answer);
            for stepped in
                answered.into_iter().chain(stale).filter_map(|answer| answer.as_ref().as_ref().ok())
            {
                tokens.extend(stepped.leased.iter().map(|leased| (leased.task.id, leased.task.token)));
            }
        }
        tokens.sort();
        tokens.dedup();
        Self(tokens)
    }

    /// Tokens are only compared with those of the same task.
    pub(crate) fn rank(&self, id: TaskId, token: Token) -> (u32, usize) {
        let first = self.0.partition_point(|(other, _)| *other < id);
        let place = self.0.partition_point(|other| *other < (id, token));
        (number(id), place - first)
    }
}

/// The numbers of steps are only compared with those of the same worker.
pub(crate) struct Numbers(Vec<u64>);

impl Numbers {
    pub(crate) fn of(member: &Member, presence: Option<&Presence>) -> Self {
        let connection = &member.worker.connection;
        let mut numbers = vec![connection.sequence];
        numbers.extend(connection.under_way.iter().map(|step| step.sequence));
        numbers.extend(member.steps().map(|step| step.sequence));
        if let Wire::Answered(sequence, _) = &member.wire {
            numbers.push(*sequence);
        }
        numbers.extend(presence.map(|presence| presence.sequence));
        numbers.sort_unstable();
        numbers.dedup();
        Self(numbers)
    }

    pub(crate) fn rank(&self, number: u64) -> usize {
        self.0.partition_point(|other| *other < number)
    }
}

impl Member {
    /// Every step that may still arrive at the store.
    fn steps(&self) -> impl Iterator<Item = &Step> {
        let sent = if let Wire::Sent(step) = &self.wire { Some(step) } else { None };
        sent.into_iter().chain(&self.strays).map(AsRef::as_ref)
    }
}
