//! Checks after all faults are over: every task ends, and idle workers are quiet.

use std::time::Duration;

use interval_queue_contract::MaxRunning;
use interval_queue_task_contract::{EdgeState, State, TaskId, judge::Dump};
use interval_queue_tasks::{ErrorKind, Selector, SettingsChange, TaskQueue, Verb};
use tokio::time::sleep;

use super::{
    plan_generator::{KEYS, KINDS},
    task_execution::{Execution, Host, helper},
};
use crate::{plan::ms, service::locked};

/// Leases, backoffs and retries, one after the other.
const END_TIMEOUT: Duration = Duration::from_secs(600);

const IDLE_PERIOD: Duration = Duration::from_secs(10);

impl Execution {
    pub(super) async fn end(&self) {
        let world = &self.world;
        world.heal();
        let back = self.plan.steps_back();
        if back > 0 {
            // Stated limit: delays end by the store's clock, so a step back prolongs them.
            world.step_clock(back);
        }
        // It handles all kinds, and ends what operators have begun.
        let helper = self.open(&helper(), "the helper".into());
        let deadline = world.now() + END_TIMEOUT;
        self.recover(&helper).await;
        let mut rounds = 0_u32;
        loop {
            sleep(ms(100)).await;
            let notified =
                world.inside(|inside| inside.tasks.monitor.all_notified(world.now() - world.began()));
            world.judged(notified);
            if self.is_done() {
                break;
            }
            rounds += 1;
            if rounds.is_multiple_of(50) {
                // Operators may have paused something meanwhile.
                self.recover(&helper).await;
            }
            if world.now() > deadline {
                break;
            }
        }
        let dump = self.dump();
        let judged = world.inside(|inside| inside.tasks.kept(&self.queue).judge.ending(&dump));
        world.judged(judged);
        if world.inside(|inside| inside.tasks.monitor.running()) > 0 {
            world.judged(Err("T3: a run goes on, and no task is left".into()));
        }
        if self.plan.seed.is_multiple_of(4) {
            self.check_quiet(&helper).await;
        }
    }

    /// Whether all is added, ended and notified, and nothing runs.
    fn is_done(&self) -> bool {
        let dump = self.dump();
        let is_ended = dump.rows().all(|x| x.state.is_ended() && x.notified);
        // Besides the worker with its watch and the shard of the pace, that still add or operate.
        is_ended && !self.is_busy() && self.world.inside(|inside| inside.tasks.monitor.running()) == 0
    }

    async fn recover(&self, helper: &Host) {
        let queue = helper.open.queue().await;
        let waits = async {
            queue.resume().await?;
            for kind in KINDS {
                queue.pause_kind(kind, false).await?;
            }
            for key in KEYS {
                queue.set_key_limit(key, None).await?;
            }
            if locked(&self.tally).starts.len() > 10 * self.plan.tasks.len() {
                queue
                    .set(SettingsChange { max_running: MaxRunning::Unlimited, ..SettingsChange::default() })
                    .await?;
            }
            self.retry_what_is_waited_for(&queue).await
        };
        match waits.await {
            Err(error) if error.kind() != ErrorKind::Missing => {
                self.world.judged(Err(format!("T9: the queue does not recover: {error}")));
            }
            _ => {}
        }
    }

    /// A task that waits for a failed one needs a retry of that one, and of those whose failure
    /// cancelled it.
    async fn retry_what_is_waited_for(&self, queue: &TaskQueue) -> Result<(), interval_queue_tasks::Error> {
        let dump = self.dump();
        let waiting = dump.rows().filter(|x| x.state == State::Waiting);
        let mut to_retry: Vec<TaskId> = waiting.flat_map(|x| ups(&dump, x.id, &[EdgeState::Held])).collect();
        let mut at = 0;
        while let Some(&id) = to_retry.get(at) {
            let more = ups(&dump, id, &[EdgeState::Cut, EdgeState::Held]);
            let more: Vec<_> = more.into_iter().filter(|up| !to_retry.contains(up)).collect();
            to_retry.extend(more);
            at += 1;
        }
        // A task that has succeeded would only take its unique name again.
        let has_failed = |id: &TaskId| dump.task(*id).is_some_and(|x| x.state != State::Done);
        for id in to_retry.into_iter().rev().filter(has_failed) {
            let retry = queue.change_at_most(1, &Selector::ids([id]), Verb::Retry, false).await?;
            // A waiting task can have the name of its upstream, direct or not: one of them must
            // give way.
            for (_, holder) in retry.taken {
                let waiting = Selector { states: vec![State::Waiting], ..Selector::ids([holder]) };
                queue.change(&waiting, Verb::Cancel, false).await?;
                queue.change_at_most(1, &Selector::ids([id]), Verb::Retry, false).await?;
            }
        }
        Ok(())
    }

    /// T11: an idle worker polls once per interval, which grows to a quarter of a lease.
    async fn check_quiet(&self, helper: &Host) {
        let world = &self.world;
        let steps = |process: usize| world.inside(|inside| inside.tasks.monitor.steps(process));
        let ids: Vec<_> =
            self.hosts.iter().map(|host| locked(host).process.id).chain([helper.process.id]).collect();
        sleep(ms(2_000)).await;
        let leases = || world.inside(|inside| inside.tasks.monitor.leases());
        let (before, leased) = (ids.iter().map(|&process| steps(process).1).collect::<Vec<_>>(), leases());
        sleep(IDLE_PERIOD).await;
        if leases() != leased {
            // An earlier request has arrived again, and the store lost what it added: there was
            // work.
            return;
        }
        for (&process, before) in ids.iter().zip(before) {
            let (lease, after) = steps(process);
            let poll = (lease / 4).min(ms(1_000)).max(ms(200));
            // The successor of a dead worker introduces itself.
            let most = IDLE_PERIOD.as_millis() / poll.as_millis() + 5;
            if u128::from(after - before) > most {
                let what = format!(
                    "T11: process {process} is idle, and has stepped {} times in {IDLE_PERIOD:?}",
                    after - before
                );
                world.judged(Err(what));
            }
        }
    }
}

fn ups(dump: &Dump, id: TaskId, states: &[EdgeState]) -> Vec<TaskId> {
    let stored = dump.tasks.get(&id);
    let edges = stored.map(|stored| stored.upstreams.as_slice()).unwrap_or_default();
    edges.iter().filter(|edge| states.contains(&edge.state)).map(|edge| edge.up).collect()
}
